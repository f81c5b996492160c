/// The path of a field's value.
package typealias FieldPath<Value> = any WritableKeyPath<UnpackedTask, Value> & Sendable

/// The place of a field's value within the memory of a task.
///
/// Every task of a batch passes its fields a few times. Through a key path that takes several times as long.
struct FieldPlace<Value>: Sendable {
    private let path: FieldPath<Value>
    private let location: FieldLocation?

    init(_ path: FieldPath<Value>) {
        self.path = path
        location = FieldLocation(path)
    }

    func get(_ memory: TaskMemory) -> Value {
        guard let location else {
            var values = UnpackedTask(memory.task.load(as: TaskSpecification.self))
            values.details = memory.details.load(as: DetailValues.self)
            return values[keyPath: path]
        }
        let base = location.isRare ? memory.details : memory.task
        return base.load(fromByteOffset: location.offset, as: Value.self)
    }

    func set(_ value: Value, in values: inout UnpackedTask) {
        guard let location else { return values[keyPath: path] = value }
        func store(at base: UnsafeMutableRawPointer) {
            (base + location.offset).assumingMemoryBound(to: Value.self).pointee = value
        }
        if location.isRare {
            withUnsafeMutablePointer(to: &values.details) { store(at: $0) }
        } else {
            withUnsafeMutablePointer(to: &values.task) { store(at: $0) }
        }
    }
}

/// The location of a field's value in memory.
struct FieldLocation: Sendable {
    /// Whether the value is one of ``DetailValues``.
    let isRare: Bool
    /// The offset in ``DetailValues`` or ``TaskSpecification``, in bytes.
    let offset: Int
    /// The size in bytes.
    let size: Int

    /// Creates the location of a path; `nil` for a path that is not one of stored properties.
    init?<Value>(_ path: FieldPath<Value>) {
        guard let offset = MemoryLayout<UnpackedTask>.offset(of: path),
            let task = MemoryLayout<UnpackedTask>.offset(of: \.task),
            let details = MemoryLayout<UnpackedTask>.offset(of: \.details)
        else { return nil }
        isRare = details..<(details + MemoryLayout<DetailValues>.size) ~= offset
        self.offset = offset - (isRare ? details : task)
        size = MemoryLayout<Value>.size
    }
}
