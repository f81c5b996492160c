import ControlProtocol
import TaskModel
import Testing

@testable import dlctl

@Suite("The lines of webhooks")
struct WebhookLinesTests {
    private func webhook(_ change: (inout DaemonStatus.Webhook) -> Void = { _ in }) -> DaemonStatus.Webhook {
        var webhook = DaemonStatus.Webhook(
            number: 2, origin: "https://h.example:443", path: "/abc…", types: [.completed], batch: nil, waiting: 0,
            failed: 0, delivered: 4, failure: nil, givenUp: 0, lastGivenUp: nil)
        change(&webhook)
        return webhook
    }

    private func lines(_ webhooks: [DaemonStatus.Webhook]) -> [String] {
        WebhookLines.lines(webhooks, now: 10_000) { "\($0)" }
    }

    @Test("receivers without trouble share a line")
    func quiet() {
        #expect(lines([]) == [])
        #expect(lines([webhook()]) == ["1 receiver, 4 events accepted"])
        #expect(lines([webhook(), webhook()]) == ["2 receivers, 8 events accepted"])
    }

    @Test("a receiver that fails, and one of which events were given up, say why and what follows")
    func troubled() {
        let failing = webhook {
            ($0.waiting, $0.failed) = (7, 2)
            $0.failure = .init(since: 1_000, message: "server replied 500", nextAttempt: 18_000)
        }
        let trying = webhook {
            ($0.waiting, $0.failure) = (1, .init(since: 1_000, message: "no response", nextAttempt: nil))
        }
        let given = webhook { ($0.givenUp, $0.lastGivenUp) = (2, .init(sequence: 9, at: 3, message: "no response")) }
        #expect(
            lines([failing, trying, given, webhook()]) == [
                "2. https://h.example:443/abc…: fails for 9 s: server replied 500; 7 events wait (2 failed), "
                    + "next try in 8 s",
                "2. https://h.example:443/abc…: fails for 9 s: no response; 1 event waits, a try is under way",
                "2. https://h.example:443/abc…: 2 events given up, the last one (number 9) at 3: no response",
                "1 receiver, 4 events accepted",
            ])
    }
}
