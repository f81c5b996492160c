/// The state of a request, over all its attempts.
struct RequestLife {
    private(set) var isStarted = false
    private(set) var isSuspended = false
    private(set) var isCancelled = false
    private(set) var isComplete = false
    private(set) var retryCount = 0
    /// Whether the next attempt is certain and waits for its time.
    var isWaiting = false
    /// Whether an attempt has a task, which then has to be ended when the request is cancelled.
    private(set) var isUnderWay = false

    enum Start { case begin, resume, nothing }
    enum Cancellation { case complete, endAttempt, nothing }

    mutating func start() -> Start {
        guard !isCancelled, !isComplete else { return .nothing }
        defer {
            isStarted = true
            isSuspended = false
        }
        if !isStarted { return .begin }
        return isSuspended ? .resume : .nothing
    }

    /// - Returns: whether a task may have to be suspended.
    mutating func suspend() -> Bool {
        guard isStarted, !isCancelled, !isComplete, !isSuspended else { return false }
        isSuspended = true
        return true
    }

    mutating func retry() -> Bool {
        isWaiting = false
        guard !isCancelled, !isComplete else { return false }
        retryCount += 1
        return true
    }

    mutating func beginAttempt() -> Bool {
        guard !isCancelled, !isComplete else { return false }
        isUnderWay = true
        return true
    }

    mutating func endAttempt() { isUnderWay = false }

    mutating func cancel() -> Cancellation {
        guard !isCancelled, !isComplete else { return .nothing }
        isCancelled = true
        return isUnderWay ? .endAttempt : .complete
    }

    mutating func complete() -> Bool {
        defer { isComplete = true }
        return !isComplete
    }

    /// Begins anew after the end.
    ///
    /// - Returns: `false` before the end.
    mutating func reopen() -> Bool {
        guard isComplete else { return false }
        isComplete = false
        isCancelled = false
        isSuspended = false
        isStarted = true
        retryCount += 1
        return true
    }
}
