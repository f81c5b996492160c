/// A specification with its rarely used values beside it, so that any field can be read and changed by a key path of
/// stored properties.
package struct UnpackedTask: Sendable, Equatable {
    /// The specification. Its own rarely used values are those before any change.
    package var task: TaskSpecification
    package var details: DetailValues

    package init(_ task: TaskSpecification) {
        self.task = task
        details = task.details?.values ?? .default
    }

    /// The specification with all changes.
    package var packed: TaskSpecification {
        var packed = task
        packed.details = details == .default ? nil : Details(details)
        return packed
    }
}

/// The path of a field's value.
package typealias FieldPath<Value> = any WritableKeyPath<UnpackedTask, Value> & Sendable

/// The place of a field's value within the memory of ``UnpackedTask``.
///
/// Every task of a batch passes all fields a few times. Through a key path that takes several times as long.
struct FieldPlace<Value>: Sendable {
    private let path: FieldPath<Value>
    /// The offset in bytes; `nil` for a path that is not one of stored properties.
    private let offset: Int?

    init(_ path: FieldPath<Value>) {
        self.path = path
        offset = MemoryLayout<UnpackedTask>.offset(of: path)
    }

    /// Returns the value. The argument is `inout` because passing it otherwise may copy all values.
    func get(_ values: inout UnpackedTask) -> Value {
        guard let offset else { return values[keyPath: path] }
        return withUnsafeMutableBytes(of: &values) { $0.load(fromByteOffset: offset, as: Value.self) }
    }

    func set(_ value: Value, in values: inout UnpackedTask) { values[keyPath: path] = value }
}
