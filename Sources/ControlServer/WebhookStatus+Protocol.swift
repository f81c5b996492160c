import ControlProtocol
import TaskQueue

extension DaemonStatus.Webhook {
    init(_ status: WebhookStatus) {
        self.init(
            number: status.number, origin: status.address.origin, path: status.address.path, types: status.types,
            batch: status.batch, waiting: status.waiting, failed: status.failed, delivered: status.delivered,
            failure: status.failure.map { .init(since: $0.since, message: $0.message, nextAttempt: $0.nextAttempt) },
            givenUp: status.givenUpCount,
            lastGivenUp: status.lastGivenUp.map { .init(sequence: $0.sequence, at: $0.at, message: $0.message) })
    }
}
