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
        let fields = DetailMemory.fields(of: values)
        if fields.isEmpty { return nil }
        if let known, known.holds(values, fields) { return known }
        return Details(values, fields)
    }

    @usableFromInline
    static func == (one: Details, other: Details) -> Bool {
        one === other || one.holds(other.values, other.fields)
    }

    /// Returns whether the values are the same.
    ///
    /// - Parameter fields: the fields whose values differ from the defaults.
    private func holds(_ values: DetailValues, _ fields: TaskFieldSet) -> Bool {
        guard self.fields == fields else { return false }
        return self.values.withMemory { own in
            values.withMemory { others in
                for field in fields where field.operations.differs(own, others) { return false }
                return true
            }
        }
    }
}

/// The layout of ``DetailValues`` in memory, by which the few fields that differ from the defaults are found without a
/// look at each field.
private enum DetailMemory {
    /// A part of the memory.
    private struct Word {
        var value: UInt64 = 0
        /// The bits that belong to values, in contrast to padding.
        var mask: UInt64 = 0
        var fields = TaskFieldSet()
    }

    private static let width = MemoryLayout<UInt64>.size
    /// The words of the default values.
    private static let words: [Word] = {
        var words = Array(repeating: Word(), count: MemoryLayout<DetailValues>.size / width)
        withUnsafeBytes(of: DetailValues.default) { initial in
            for index in words.indices {
                words[index].value = initial.load(fromByteOffset: index * width, as: UInt64.self)
            }
        }
        for field in TaskField.all {
            guard let location = field.operations.location, location.isRare else { continue }
            for byte in location.offset..<(location.offset + location.size) where byte / width < words.count {
                words[byte / width].fields.insert(field)
                withUnsafeMutableBytes(of: &words[byte / width].mask) { $0[byte % width] = 0xFF }
            }
        }
        return words
    }()
    /// The fields that the words do not cover.
    private static let others: TaskFieldSet = {
        var covered = TaskFieldSet()
        for word in words { covered.formUnion(word.fields) }
        return TaskFieldSet.rare.subtracting(covered)
    }()

    /// Returns the fields whose values differ from the defaults.
    static func fields(of values: DetailValues) -> TaskFieldSet {
        var candidates = others
        withUnsafeBytes(of: values) { bytes in
            var offset = 0
            for word in words {
                let value = bytes.load(fromByteOffset: offset, as: UInt64.self)
                if (value ^ word.value) & word.mask != 0 { candidates.formUnion(word.fields) }
                offset += width
            }
        }
        if candidates.isEmpty { return candidates }
        // Equal values may differ in memory, such as empty arrays.
        return values.withMemory { candidates.set(in: $0) }
    }
}
