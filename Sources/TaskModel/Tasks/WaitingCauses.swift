/// A group of waiting tasks with the same reason and the same error, with their number.
package struct WaitingCause: Sendable, Equatable {
    /// The raw value of the tasks' `reason`.
    package var reason: String
    package var code: ErrorCode?
    /// The error message of the last attempts, where it is the same for all tasks of the group.
    package var message: String?
    package var tasks: Int
    /// The earliest time of the next attempt among the tasks of the group.
    package var notBefore: Milliseconds?

    package init(
        reason: String, code: ErrorCode? = nil, message: String? = nil, tasks: Int, notBefore: Milliseconds? = nil
    ) {
        self.reason = reason
        self.code = code
        self.message = message
        self.tasks = tasks
        self.notBefore = notBefore
    }
}

/// The most frequent waiting causes among a number of waiting tasks.
package struct WaitingCauses: Sendable, Equatable {
    /// The number of tasks examined: all that wait, or as many as the time limit allows.
    package var counted: Int
    /// The causes, the most frequent first.
    package var causes: [WaitingCause]

    package init(counted: Int = 0, causes: [WaitingCause] = []) {
        self.counted = counted
        self.causes = causes
    }
}
