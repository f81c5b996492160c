/// The memory of a task's values, from which any field is read without copying the others.
///
/// It is valid only during the call that passes it.
struct TaskMemory {
    fileprivate let task: UnsafePointer<TaskSpecification>
    fileprivate let details: UnsafePointer<DetailValues>
}

extension TaskSpecification {
    /// Calls the closure with the memory of the values.
    func withMemory<Result, Failure: Error>(
        _ body: (TaskMemory) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // An expression with `??` would copy all values.
        guard let details else { return try DetailValues.default.withMemory(beside: self, body) }
        return try details.values.withMemory(beside: self, body)
    }
}

extension UnpackedTask {
    /// Calls the closure with the memory of the values, including all changes.
    func withMemory<Result, Failure: Error>(
        _ body: (TaskMemory) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try details.withMemory(beside: task, body)
    }
}

extension DetailValues {
    /// Calls the closure with the memory of these values and of a specification's common values.
    func withMemory<Result, Failure: Error>(
        beside task: TaskSpecification = TaskSpecification(url: ""), _ body: (TaskMemory) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafePointer(to: task) { task throws(Failure) in
            try withUnsafePointer(to: self) { details throws(Failure) in
                try body(TaskMemory(task: task, details: details))
            }
        }
    }
}

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
            var values = UnpackedTask(memory.task.pointee)
            values.details = memory.details.pointee
            return values[keyPath: path]
        }
        let base = location.isRare ? UnsafeRawPointer(memory.details) : UnsafeRawPointer(memory.task)
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
