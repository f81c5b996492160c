/// Why tasks wait: those that wait for one reason and failed alike, counted together.
package struct WaitingCause: Sendable, Equatable {
    /// The word of the tasks' `reason`.
    package var reason: String
    package var code: ErrorCode?
    /// What their last attempts came to, where that is the same of all.
    package var message: String?
    package var tasks: Int
    /// When the first of them is tried again.
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

/// The most frequent causes among so many waiting tasks.
package struct WaitingCauses: Sendable, Equatable {
    /// Tasks that were looked at: all that wait, or as many as there is time for.
    package var counted: Int
    /// The most frequent first.
    package var causes: [WaitingCause]

    package init(counted: Int = 0, causes: [WaitingCause] = []) {
        self.counted = counted
        self.causes = causes
    }
}
