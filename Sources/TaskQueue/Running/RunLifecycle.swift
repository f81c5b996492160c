/// The course of a task's run, from its start until its result is recorded.
///
/// A value without I/O and clock. An event goes in, and the ``Scheduler`` performs what comes back.
struct RunLifecycle: Equatable {
    /// The result of a run, as far as the owner of the task's disk space needs it.
    struct Result: Equatable {
        /// The file's bytes recorded in the store.
        var keptBytes: Int64 = 0
        /// Whether the task was not started because its owner's quota is used up.
        var neverBegan = false
    }

    enum Phase: Equatable {
        case running
        /// The run is about to end by this order.
        case stopping(RunOutcomePolicy.Order)
        /// The transfer has ended, and the result is being recorded.
        case recording(Result, order: RunOutcomePolicy.Order?)
        /// The store refuses the result. Recording it is being retried.
        case refused(Result, order: RunOutcomePolicy.Order?)
    }

    /// The continuation of a run after its metadata lookup.
    enum Continuation {
        case download
        /// The run ends by an order.
        case stop
        /// The run has ended.
        case none
    }

    private(set) var phase = Phase.running

    /// The order to end the run; `nil` where it ends by itself.
    var order: RunOutcomePolicy.Order? {
        switch phase {
        case .running: nil
        case .stopping(let order): order
        case .recording(_, let order), .refused(_, let order): order
        }
    }

    var result: Result {
        switch phase {
        case .running, .stopping: Result()
        case .recording(let result, _), .refused(let result, _): result
        }
    }

    /// Whether the transfer has ended.
    var hasEnded: Bool {
        switch phase {
        case .running, .stopping: false
        case .recording, .refused: true
        }
    }

    /// Whether a caller that needs the result must wait for it.
    var isAboutToEnd: Bool {
        switch phase {
        case .stopping, .recording: true
        case .running, .refused: false
        }
    }

    /// The continuation after the metadata lookup.
    var afterLookup: Continuation {
        switch phase {
        case .running: .download
        case .stopping: .stop
        case .recording, .refused: .none
        }
    }

    /// Orders the run to end. The first order applies, unless a stronger one follows.
    ///
    /// - Returns: Whether the run's request is to be cancelled.
    mutating func stop(_ order: RunOutcomePolicy.Order) -> Bool {
        switch phase {
        case .running: phase = .stopping(order)
        case .stopping: if order == .remove || order == .cancel { phase = .stopping(order) }
        case .recording, .refused: return false
        }
        return true
    }

    /// Ends the run after a failed checkpoint. The task restarts from the bytes of earlier checkpoints.
    mutating func checkpointFailed() {
        if phase == .running { phase = .stopping(.release) }
    }

    /// Records the end of the transfer.
    ///
    /// - Returns: `false` where the end has been recorded already.
    mutating func end() -> Bool {
        if hasEnded { return false }
        phase = .recording(Result(), order: order)
        return true
    }

    /// Records the result of the transfer.
    mutating func set(_ result: Result) {
        if case .recording(_, let order) = phase { phase = .recording(result, order: order) }
    }

    /// Records that the store refuses the result.
    mutating func storeRefused() {
        if case .recording(let result, let order) = phase { phase = .refused(result, order: order) }
    }
}
