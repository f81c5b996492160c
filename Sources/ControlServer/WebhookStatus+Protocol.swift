import ControlProtocol
import TaskQueue

extension DaemonStatus.Webhook {
    init(_ status: WebhookStatus) {
        self.init(
            origin: status.origin, types: status.types, batch: status.batch, waiting: status.waiting,
            delivered: status.delivered,
            failure: status.failure.map { .init(since: $0.since, message: $0.message, nextAttempt: $0.nextAttempt) },
            givenUp: status.givenUpCount,
            lastGivenUp: status.lastGivenUp.map { .init(sequence: $0.sequence, at: $0.at, message: $0.message) })
    }
}
