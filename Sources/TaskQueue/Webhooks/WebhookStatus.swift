package import TaskModel

/// The state of a webhook, as reported to administrators.
package struct WebhookStatus: Sendable, Equatable {
    /// The place in `notify`, from 1.
    package var number: Int
    package var address: WebhookAddress
    package var types: Set<TaskEvent.Kind>
    package var batch: String?
    /// The number of events that wait to be sent; in the journal at most 10,000 are counted.
    package var waiting: Int
    /// The number of those that were sent and not accepted.
    package var failed: Int
    /// The number of events that the receiver has accepted since the start of the daemon, or the last change of its
    /// configuration.
    package var delivered: Int
    /// The last failure; `nil` if the receiver works and no event waits for another attempt.
    package var failure: Failure?
    /// The number of events that were given up.
    package var givenUpCount: Int
    package var lastGivenUp: GivenUp?

    /// A failure to send an event.
    package struct Failure: Sendable, Equatable {
        /// The time of the first failure since the last success, in milliseconds since 1970.
        package var since: Milliseconds
        package var message: String
        /// The time of the earliest next attempt; `nil` while one is under way.
        package var nextAttempt: Milliseconds?
    }

    /// An event that was given up.
    package struct GivenUp: Sendable, Equatable {
        package var sequence: Int64
        /// The time at which it was given up, in milliseconds since 1970.
        package var at: Milliseconds
        package var message: String
    }
}
