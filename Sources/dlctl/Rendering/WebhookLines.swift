import ControlProtocol
import TaskModel

/// The lines of `status` about webhooks.
enum WebhookLines {
    /// Returns a line for each receiver that does not accept events, or of which events were given up, and one for the
    /// others together.
    static func lines(
        _ webhooks: [DaemonStatus.Webhook], now: Milliseconds, clock: (Milliseconds) -> String
    ) -> [String] {
        let troubled = webhooks.filter { $0.failure != nil || $0.givenUp > 0 }
        var lines = troubled.map { line($0, now: now, clock: clock) }
        let others = webhooks.count - troubled.count
        if others > 0 {
            let delivered = webhooks.reduce(0) { $0 + ($1.failure == nil && $1.givenUp == 0 ? $1.delivered : 0) }
            lines.append("\(others) \(others == 1 ? "receiver" : "receivers"), \(delivered) events accepted")
        }
        return lines
    }

    private static func line(
        _ webhook: DaemonStatus.Webhook, now: Milliseconds, clock: (Milliseconds) -> String
    ) -> String {
        var parts: [String] = []
        if let failure = webhook.failure {
            let since = Describe.span(milliseconds: max(0, now.subtractingClamped(failure.since)))
            let next = failure.nextAttempt.map {
                "next try in " + Describe.span(milliseconds: max(0, $0.subtractingClamped(now)))
            }
            let events = "\(webhook.waiting) \(webhook.waiting == 1 ? "event waits" : "events wait")"
            let failed = webhook.failed > 0 ? " (\(webhook.failed) failed)" : ""
            parts.append(
                "fails for \(since): \(failure.message); \(events)\(failed), " + (next ?? "a try is under way"))
        }
        if let last = webhook.lastGivenUp {
            parts.append(
                "\(webhook.givenUp) \(webhook.givenUp == 1 ? "event" : "events") given up, the last one (number \(last.sequence)) at \(clock(last.at)): "
                    + last.message)
        }
        return "\(webhook.number). \(webhook.origin)\(webhook.path): " + parts.joined(separator: "; ")
    }
}
