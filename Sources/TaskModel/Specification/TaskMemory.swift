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
