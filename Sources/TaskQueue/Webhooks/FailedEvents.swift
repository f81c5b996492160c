import TaskModel
import Transfer

/// The events that a receiver has not accepted yet, though they were sent. A value without I/O and clock.
///
/// An event that fails while the receiver works is sent again after a delay of its own, which grows. One that probed a
/// receiver that does not work has no delay but the receiver's (see ``ReceiverPace``).
struct FailedEvents {
    private struct Failure {
        let event: TaskEvent
        /// The time of the first failure in milliseconds since 1970, and as a monotonic time.
        let since: Milliseconds
        let began: Milliseconds
        /// The number of failures while the receiver worked.
        var ownCount = 0
        /// The monotonic time of the next attempt; `nil` if it may be made, or is under way.
        var due: Milliseconds?
    }

    private let policy: RetryPolicy
    private var failures: [Int64: Failure] = [:]
    /// The message of the last failure.
    private(set) var lastMessage: String?

    init(policy: RetryPolicy) { self.policy = policy }

    var count: Int { failures.count }
    /// The time of the first failure of an event that is not accepted yet, in milliseconds since 1970.
    var since: Milliseconds? { failures.values.lazy.map(\.since).min() }
    /// The monotonic time of the earliest attempt that has a delay of its own.
    var nextDue: Milliseconds? { failures.values.lazy.compactMap(\.due).min() }

    /// Returns the time since the first failure of an event; 0 if there was none.
    func age(of sequence: Int64, now: Milliseconds) -> Milliseconds {
        failures[sequence].map { now.subtractingClamped($0.began) } ?? 0
    }

    /// Records a failure.
    ///
    /// - Parameters:
    ///   - isProbe: whether the receiver did not work before.
    ///   - now: the monotonic time.
    ///   - time: the time in milliseconds since 1970.
    ///   - generator: the source of the jitter.
    mutating func add(
        _ event: TaskEvent, _ message: String, isProbe: Bool, now: Milliseconds, time: Milliseconds,
        using generator: inout some RandomNumberGenerator
    ) {
        var failure = failures[event.sequence] ?? Failure(event: event, since: time, began: now)
        failure.due = now
        if !isProbe {
            failure.ownCount = min(failure.ownCount, .max - 1) + 1
            let delay = policy.delay(failures: failure.ownCount, using: &generator)
            failure.due = now.addingClamped(max(1, delay))
        }
        failures[event.sequence] = failure
        lastMessage = message
    }

    /// Takes the events whose next attempt may be made.
    mutating func takeDue(now: Milliseconds) -> [TaskEvent] {
        let due = failures.values.filter { $0.due.map { $0 <= now } ?? false }.map(\.event)
        for event in due { failures[event.sequence]?.due = nil }
        return due
    }

    /// Removes an event that is done.
    mutating func remove(_ sequence: Int64) { failures[sequence] = nil }
}
