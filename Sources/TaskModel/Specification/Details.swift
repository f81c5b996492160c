/// A reference-counted box of rarely used values that all copies of a specification share. At least one value differs
/// from its default.
@usableFromInline
final class Details: Sendable, Equatable {
    @usableFromInline let values: DetailValues
    /// The fields whose values differ from the defaults.
    let fields: TaskFieldSet

    private init(_ values: DetailValues, _ fields: TaskFieldSet) {
        self.values = values
        self.fields = fields
    }

    /// Returns a box of the values; `nil` where all of them have their defaults.
    ///
    /// - Parameter known: a box that is returned if its values are the same. This saves memory.
    static func holding(_ values: DetailValues, sharing known: Details? = nil) -> Details? {
        if let known, known.holds(values) { return known }
        let fields = values.setFields
        return fields.isEmpty ? nil : Details(values, fields)
    }

    @usableFromInline
    static func == (one: Details, other: Details) -> Bool {
        one === other || one.fields == other.fields && one.holds(other.values)
    }

    /// Returns whether the values are the same.
    private func holds(_ values: DetailValues) -> Bool {
        self.values.withMemory { own in
            values.withMemory { others in
                for field in FieldLayout.rare.differences(own, others) where field.operations.differs(own, others) {
                    return false
                }
                return true
            }
        }
    }
}
