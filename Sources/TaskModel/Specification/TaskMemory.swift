/// The memory of a task's values, from which any field is read without copying the others.
///
/// Valid only during the call that passes it.
struct TaskMemory {
    /// The address of the common values, a ``TaskSpecification``.
    let task: UnsafeRawPointer
    /// The address of the rarely used values, ``DetailValues``.
    let details: UnsafeRawPointer

    fileprivate init(task: UnsafeRawPointer, details: UnsafeRawPointer) {
        self.task = task
        self.details = details
    }
}

extension TaskMemory {
    /// The default values. Unlike other memory, theirs is always valid.
    ///
    /// `nonisolated(unsafe)`: the memory is written here only, and never released.
    nonisolated(unsafe) static let defaults: TaskMemory = {
        let task = UnsafeMutablePointer<TaskSpecification>.allocate(capacity: 1)
        task.initialize(to: TaskSpecification(url: ""))
        let details = UnsafeMutablePointer<DetailValues>.allocate(capacity: 1)
        details.initialize(to: .default)
        return TaskMemory(task: UnsafeRawPointer(task), details: UnsafeRawPointer(details))
    }()
}

extension TaskSpecification {
    /// Calls the closure with the memory of the values.
    func withMemory<Result, Failure: Error>(
        _ body: (TaskMemory) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        // An expression with `??` would copy all values.
        guard let details else { return try withCommonMemory(body) }
        return try details.values.withMemory(beside: self, body)
    }

    /// Calls the closure with the memory of these values, but of the defaults of the rarely used ones.
    func withCommonMemory<Result, Failure: Error>(
        _ body: (TaskMemory) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafePointer(to: self) { task throws(Failure) in
            try body(TaskMemory(task: UnsafeRawPointer(task), details: TaskMemory.defaults.details))
        }
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
    fileprivate func withMemory<Result, Failure: Error>(
        beside task: TaskSpecification, _ body: (TaskMemory) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try withUnsafePointer(to: task) { task throws(Failure) in
            try withUnsafePointer(to: self) { details throws(Failure) in
                try body(TaskMemory(task: UnsafeRawPointer(task), details: UnsafeRawPointer(details)))
            }
        }
    }

    /// Calls the closure with the memory of these values, but of the defaults of the common ones.
    func withMemory<Result>(_ body: (TaskMemory) -> Result) -> Result {
        withUnsafePointer(to: self) { body(TaskMemory(task: TaskMemory.defaults.task, details: UnsafeRawPointer($0))) }
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

/// The layout of fields in memory, by which the few fields whose values differ are found without a look at each.
struct FieldLayout: Sendable {
    /// A part of the memory.
    private struct Word {
        /// The bits that belong to values, in contrast to padding.
        var mask: UInt64 = 0
        var fields = TaskFieldSet()
    }

    private static let width = MemoryLayout<UInt64>.size
    private let isRare: Bool
    private let words: [Word]
    /// The fields that the words do not cover.
    private let others: TaskFieldSet

    /// The layout of the fields in ``TaskSpecification`` itself.
    static let common = FieldLayout(.common, isRare: false, size: MemoryLayout<TaskSpecification>.size)
    /// The layout of the fields in ``DetailValues``.
    static let rare = FieldLayout(.rare, isRare: true, size: MemoryLayout<DetailValues>.size)

    private init(_ fields: TaskFieldSet, isRare: Bool, size: Int) {
        var words = Array(repeating: Word(), count: size / Self.width)
        var others = TaskFieldSet()
        for field in fields {
            guard let location = field.operations.location,
                location.offset + location.size <= words.count * Self.width
            else {
                others.insert(field)
                continue
            }
            for byte in location.offset..<(location.offset + location.size) {
                words[byte / Self.width].fields.insert(field)
                withUnsafeMutableBytes(of: &words[byte / Self.width].mask) { $0[byte % Self.width] = .max }
            }
        }
        self.isRare = isRare
        self.words = words
        self.others = others
    }

    /// Returns the fields whose values differ in memory. Only these can have different values, but values that are the
    /// same may differ in memory too, such as the addresses of equal texts.
    func differences(_ one: TaskMemory, _ other: TaskMemory) -> TaskFieldSet {
        let (one, other) = isRare ? (one.details, other.details) : (one.task, other.task)
        var fields = others
        var offset = 0
        for word in words {
            let (value, known) = (
                one.load(fromByteOffset: offset, as: UInt64.self), other.load(fromByteOffset: offset, as: UInt64.self)
            )
            if (value ^ known) & word.mask != 0 { fields.formUnion(word.fields) }
            offset += Self.width
        }
        return fields
    }
}

extension TaskSpecification {
    /// The fields whose values differ from the defaults.
    package var setFields: TaskFieldSet {
        let common = withCommonMemory { FieldLayout.common.differences($0, .defaults).set(in: $0) }
        guard let details else { return common }
        return common.union(details.fields)
    }
}

extension DetailValues {
    /// The fields whose values differ from the defaults.
    var setFields: TaskFieldSet { withMemory { FieldLayout.rare.differences($0, .defaults).set(in: $0) } }
}
