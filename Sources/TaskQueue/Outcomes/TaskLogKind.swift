/// The kinds of log entries about tasks. Each has a message id in the journal.
package enum TaskLogKind: String, Sendable, CaseIterable {
    /// Tasks were queued.
    case added = "task-added"
    /// A run of a task began.
    case started = "task-started"
    /// A run failed, and the task is tried again after a delay.
    case attemptFailed = "task-attempt-failed"
    /// A task waits for the network, a disk or its owner's quota.
    case waiting = "task-waiting"
    /// A task does not go on before a person has done something.
    case needsPerson = "task-needs-person"
    /// The file of a task is complete, or was sent.
    case completed = "task-completed"
    /// A task failed, and is not tried again by itself.
    case failed = "task-failed"
    /// A user changed options of tasks.
    case updated = "task-updated"
    /// A user paused tasks.
    case paused = "task-paused"
    /// A user resumed tasks.
    case resumed = "task-resumed"
    /// A user cancelled tasks.
    case cancelled = "task-cancelled"
    /// A user queued tasks again.
    case retried = "task-retried"
    /// The records of tasks were deleted.
    case removed = "task-removed"
    /// The last task of a batch ended.
    case batchFinished = "batch-finished"
}

/// The metadata keys of log entries for which the journal has fields of its own.
package enum TaskLogKey: String, Sendable, CaseIterable {
    /// The ``TaskLogKind``.
    case event
    /// The id of the task; several where one entry tells of several tasks.
    case task
    case batch
    /// The scheme, name and port of the task's server.
    case host
    /// The URL without its secrets.
    case url
    case httpStatus = "http-status"
    /// The error code of libcurl.
    case curlCode = "curl-code"
    /// The error number of the system.
    case systemError = "errno"
    /// The bytes of the file that are there or were sent.
    case bytes
    /// The duration of the run.
    case seconds
    /// The number of the attempt.
    case attempt
    /// The uid of the task's owner.
    case owner
}
