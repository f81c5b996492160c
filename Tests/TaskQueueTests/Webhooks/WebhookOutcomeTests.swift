import Testing
import Transfer

@testable import TaskQueue

@Suite("The outcome of a message to a webhook")
struct WebhookOutcomeTests {
    @Test("a status from 200 to 299 accepts the event", arguments: [200, 201, 204, 299])
    func accepted(status: Int) { #expect(WebhookOutcome(status: status, retryAfter: nil) == .accepted) }

    @Test("a status of the client's fault refuses this event", arguments: [400, 401, 404, 410, 413, 422, 499])
    func refused(status: Int) {
        #expect(WebhookOutcome(status: status, retryAfter: 9) == .refused("server replied \(status)"))
    }

    @Test("any other one is a failure of the receiver", arguments: [302, 407, 408, 425, 429, 500, 503, 600, 0])
    func failed(status: Int) {
        #expect(
            WebhookOutcome(status: status, retryAfter: 9) == .failed("server replied \(status)", retryAfter: 9))
    }

    @Test("without a response the receiver fails; where its address is denied, the message says what to do")
    func errors() {
        #expect(WebhookOutcome(nil) == .failed("no response"))
        #expect(WebhookOutcome(TransferError(.cannotConnect, "closed")) == .failed("closed"))
        let denied = WebhookOutcome(TransferError(.addressNotAllowed, "the address 10.0.0.1 is denied"))
        #expect(
            denied.fault
                == "address-not-allowed: the address 10.0.0.1 is denied; remove the network from network.deny, "
                + "or set network.exempt to administrators")
    }
}
