import TaskModel

/// The plan of when the scheduler looks for work again without an event from outside: at the first moment at which a
/// waiting task becomes ready, a held host may be contacted again, or a failed query of the store is repeated.
///
/// A value without I/O and clock. The ``Scheduler`` sets the alarm.
struct AlarmPlan {
    /// The time of both clocks at one moment, in milliseconds.
    struct Times {
        var wall: Milliseconds
        var monotonic: Milliseconds

        /// The offset of the wall clock from the monotonic clock.
        var offset: Milliseconds { wall.subtractingClamped(monotonic) }

        /// Returns the wall-clock time of a monotonic time.
        func wall(of time: Milliseconds) -> Milliseconds {
            wall.addingClamped(time.subtractingClamped(monotonic))
        }
    }

    enum Action: Equatable {
        /// Leaves the alarm as it is.
        case none
        /// Sets the alarm to a wall-clock time, in the place of an earlier alarm.
        case set(Milliseconds)
        case cancel
    }

    private enum State: Equatable {
        case off
        case set(Milliseconds)
        case stopped
    }

    /// The pause before a failed query of the store is repeated, in milliseconds.
    static let pauseAfterFailure: Milliseconds = 1_000
    /// The smallest adjustment of the wall clock that counts, in milliseconds. Smaller steps come from clock
    /// synchronisation.
    private static let smallestStep: Milliseconds = 500
    /// The tolerance of the alarm, in milliseconds. Its time is derived from two clocks, each read with millisecond
    /// resolution.
    private static let tolerance: Milliseconds = 2

    private var state = State.off
    private var offset: Milliseconds
    /// The monotonic time of the last choice of tasks. Hosts that have opened since were closed during that choice.
    private(set) var lastChoice: Milliseconds = 0
    /// The wall-clock time at which the first waiting task becomes ready, as of the last update; `nil` for never.
    private(set) var nextTask: Milliseconds?
    /// Whether tasks may have begun or ceased to wait since the last update.
    private(set) var isNextTaskStale = true
    /// The monotonic time at which to repeat a failed query of the store; `nil` where none has failed.
    private var retryAt: Milliseconds?

    init(now: Times) { offset = now.offset }

    /// Whether a failed query of the store is to be repeated.
    var hasFailedQuery: Bool { retryAt != nil }

    /// Records that tasks may have begun or ceased to wait.
    mutating func waitsChanged() { isNextTaskStale = true }

    mutating func tasksChosen(at monotonic: Milliseconds) { lastChoice = monotonic }

    /// Records a failed query. Otherwise no event may ever trigger another attempt.
    mutating func queryFailed(at monotonic: Milliseconds) {
        retryAt = retryAt ?? monotonic.addingClamped(Self.pauseAfterFailure)
    }

    /// Decides when the alarm fires.
    ///
    /// - Parameters:
    ///   - task: the wall-clock time at which the first waiting task becomes ready; `nil` for never.
    ///   - host: the monotonic time at which the first held host opens; `nil` for never.
    mutating func update(task: Milliseconds?, host: Milliseconds?, now: Times) -> Action {
        nextTask = task
        isNextTaskStale = false
        guard state != .stopped else { return .none }
        let times = [task, host.map(now.wall(of:)), retryAt.map(now.wall(of:))].compactMap(\.self)
        guard let next = times.min() else {
            defer { state = .off }
            return state == .off ? .none : .cancel
        }
        if case .set(let current) = state, current.subtractingClamped(next).magnitude <= Self.tolerance {
            return .none
        }
        state = .set(next)
        return .set(next)
    }

    /// Records that the alarm fires.
    ///
    /// - Returns: Whether a query had failed, so that what depends on it is repeated.
    mutating func fired() -> Bool {
        if state != .stopped { state = .off }
        defer { retryAt = nil }
        return retryAt != nil
    }

    /// Records an adjustment of the wall clock, after which the alarm is planned anew.
    ///
    /// - Returns: the adjustment in milliseconds; `nil` where it does not count.
    mutating func clockWasSet(now: Times) -> Milliseconds? {
        let change = now.offset.subtractingClamped(offset)
        offset = now.offset
        return change.magnitude >= Self.smallestStep.magnitude ? change : nil
    }

    /// Turns the alarm off until the next update.
    mutating func reset() -> Action {
        guard case .set = state else { return .none }
        state = .off
        return .cancel
    }

    /// Turns the alarm off for good.
    mutating func stop() -> Action {
        defer { state = .stopped }
        return reset()
    }
}
