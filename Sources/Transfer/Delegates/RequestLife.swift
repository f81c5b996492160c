/// The state of a request, over all its attempts.
struct RequestLife {
    private(set) var isStarted = false
    private(set) var isSuspended = false
    private(set) var isCancelled = false
    private(set) var isComplete = false
    /// Whether the end is being announced and the handlers do not run yet.
    private var isEnding = false
    /// The number of times that the request began anew after its end.
    private(set) var generation = 0
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

    mutating func retry(in generation: Int) -> Bool {
        guard generation == self.generation else { return false }
        isWaiting = false
        guard !isCancelled, !isComplete else { return false }
        retryCount += 1
        return true
    }

    /// - Parameter generation: the value of ``generation`` when the attempt was decided on. An attempt of an earlier
    ///   one comes too late.
    mutating func beginAttempt(of generation: Int) -> Bool {
        guard !isCancelled, !isComplete, generation == self.generation else { return false }
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
        guard !isComplete else { return false }
        isComplete = true
        isEnding = true
        return true
    }

    /// Records that the end has been announced.
    mutating func endAnnouncement() { isEnding = false }

    /// Begins anew after the end.
    ///
    /// - Returns: `false` before the end, and until it has been announced.
    mutating func reopen() -> Bool {
        guard isComplete, !isEnding else { return false }
        generation += 1
        isWaiting = false
        isComplete = false
        isCancelled = false
        isSuspended = false
        isStarted = true
        retryCount += 1
        return true
    }
}
