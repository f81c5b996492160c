public import TaskModel

extension DaemonStatus {
    /// The state of a receiver of events by HTTP.
    public struct Webhook: Codable, Sendable, Equatable {
        /// The place in `notify`, from 1.
        public var number: Int
        /// The scheme, host and port of the URL. The rest may be secret.
        public var origin: String
        /// The path of the URL, with at most three characters of each component.
        public var path: String
        /// The types of events that are sent, sorted.
        public var types: [TaskEvent.Kind]
        /// The batch whose events are sent; `null` for all events.
        public var batch: String?
        /// The number of events that wait to be sent, at most ``EventLanes/capacity``; the rest waits in the journal.
        public var waiting: Int
        /// The number of those that were sent and not accepted.
        public var failed: Int
        /// The number of events that the receiver has accepted since the start of the daemon, or the last change of
        /// its webhooks.
        public var delivered: Int
        /// The last failure; `null` if the receiver works and no event waits for another attempt.
        public var failure: Failure?
        /// The number of events that were given up, since the webhook is configured.
        public var givenUp: Int
        /// The last event that was given up; `null` if there is none.
        public var lastGivenUp: GivenUp?

        /// A failure to send an event.
        public struct Failure: Codable, Sendable, Equatable {
            /// The time of the first failure since the last success, in milliseconds since 1970.
            public var since: Milliseconds
            public var message: String
            /// The time of the earliest next attempt; `null` while one is under way.
            public var nextAttempt: Milliseconds?

            public init(since: Milliseconds, message: String, nextAttempt: Milliseconds?) {
                self.since = since
                self.message = message
                self.nextAttempt = nextAttempt
            }

            private enum CodingKeys: String, CodingKey { case since, message, nextAttempt }

            public func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: CodingKeys.self)
                try container.encode(since, forKey: .since)
                try container.encode(message, forKey: .message)
                try container.encode(nextAttempt, forKey: .nextAttempt)
            }
        }

        /// An event that was given up.
        public struct GivenUp: Codable, Sendable, Equatable {
            public var sequence: Int64
            /// The time at which it was given up, in milliseconds since 1970.
            public var at: Milliseconds
            public var message: String

            public init(sequence: Int64, at: Milliseconds, message: String) {
                self.sequence = sequence
                self.at = at
                self.message = message
            }
        }

        public init(
            number: Int, origin: String, path: String, types: Set<TaskEvent.Kind>, batch: String?, waiting: Int,
            failed: Int, delivered: Int, failure: Failure?, givenUp: Int, lastGivenUp: GivenUp?
        ) {
            self.number = number
            self.origin = origin
            self.path = path
            self.types = types.sorted { $0.rawValue < $1.rawValue }
            self.batch = batch
            self.waiting = waiting
            self.failed = failed
            self.delivered = delivered
            self.failure = failure
            self.givenUp = givenUp
            self.lastGivenUp = lastGivenUp
        }

        private enum CodingKeys: String, CodingKey {
            case number, origin, path, types, batch, waiting, failed, delivered, failure, givenUp, lastGivenUp
        }

        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(number, forKey: .number)
            try container.encode(origin, forKey: .origin)
            try container.encode(path, forKey: .path)
            try container.encode(types, forKey: .types)
            try container.encode(batch, forKey: .batch)
            try container.encode(waiting, forKey: .waiting)
            try container.encode(failed, forKey: .failed)
            try container.encode(delivered, forKey: .delivered)
            try container.encode(failure, forKey: .failure)
            try container.encode(givenUp, forKey: .givenUp)
            try container.encode(lastGivenUp, forKey: .lastGivenUp)
        }
    }
}
