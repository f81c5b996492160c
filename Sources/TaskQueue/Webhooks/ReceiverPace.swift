import TaskModel
import Transfer

/// The pace of the messages to one receiver. A value without I/O and clock.
///
/// A receiver that works gets as many messages at once as there are jobs. After a failure of the receiver nothing is
/// sent for a while, and then one message at a time probes it. The time between two probes grows with each failure and
/// has jitter, by the rules for the retries of tasks. The first answer to a probe that is about the event, or accepts it,
/// ends this.
struct ReceiverPace {
    /// The failures of a receiver that does not work.
    struct Trouble: Equatable {
        /// The time of the first failure in milliseconds since 1970.
        var since: Milliseconds
        /// The last failure.
        var message: String
        /// The number of failures in a row.
        var failures = 1
    }

    /// The messages that may be sent.
    enum Permit: Equatable {
        case any
        case probe
    }

    /// The consequence of an outcome.
    enum Change: Equatable {
        case none
        case stopped
        case restored
    }

    private enum State {
        case open
        /// Nothing is sent before `until`, a monotonic time.
        case resting(Trouble, until: Milliseconds)
        case probing(Trouble, sequence: Int64)
    }

    private let policy: RetryPolicy
    private var state = State.open

    init(policy: RetryPolicy) { self.policy = policy }

    /// The failures; `nil` if the receiver works.
    var trouble: Trouble? {
        switch state {
        case .open: nil
        case .resting(let trouble, _), .probing(let trouble, _): trouble
        }
    }

    /// The monotonic time up to which nothing is sent; `nil` if there is none.
    var restsUntil: Milliseconds? { if case .resting(_, let until) = state { until } else { nil } }

    /// Returns whether the event probes the receiver.
    func isProbe(_ sequence: Int64) -> Bool {
        if case .probing(_, sequence) = state { true } else { false }
    }

    /// Returns what may be sent at the monotonic time `now`; `nil` for nothing.
    func permit(at now: Milliseconds) -> Permit? {
        switch state {
        case .open: .any
        case .resting(_, let until): now >= until ? .probe : nil
        case .probing: nil
        }
    }

    /// Records that a message is sent, which was permitted.
    mutating func begin(_ sequence: Int64) {
        if case .resting(let trouble, _) = state { state = .probing(trouble, sequence: sequence) }
    }

    /// Records the end of a message.
    ///
    /// - Parameters:
    ///   - now: the monotonic time.
    ///   - time: the time in milliseconds since 1970.
    ///   - generator: the source of the jitter.
    mutating func ended(
        _ sequence: Int64, _ outcome: WebhookOutcome, now: Milliseconds, time: Milliseconds,
        using generator: inout some RandomNumberGenerator
    ) -> Change {
        switch (state, outcome) {
        case (.open, .failed(let message, let retryAfter)):
            rest(Trouble(since: time, message: message), retryAfter, now: now, using: &generator)
            return .stopped
        case (.open, _): return .none
        case (.resting(let trouble, let until), .failed(_, let retryAfter?)):
            // A message that was under way when the receiver failed.
            let pause = policy.delay(failures: 1, retryAfter: retryAfter, using: &generator)
            state = .resting(trouble, until: max(until, now.addingClamped(pause)))
            return .none
        case (.resting, _): return .none
        case (.probing(_, let probe), _) where probe != sequence: return .none
        case (.probing(var trouble, _), .failed(let message, let retryAfter)):
            trouble.message = message
            trouble.failures = trouble.failures < .max ? trouble.failures + 1 : .max
            rest(trouble, retryAfter, now: now, using: &generator)
            return .none
        case (.probing, _):
            state = .open
            return .restored
        }
    }

    private mutating func rest(
        _ trouble: Trouble, _ retryAfter: Int64?, now: Milliseconds, using generator: inout some RandomNumberGenerator
    ) {
        let delay = policy.delay(failures: trouble.failures, retryAfter: retryAfter, using: &generator)
        state = .resting(trouble, until: now.addingClamped(max(1, delay)))
    }
}
