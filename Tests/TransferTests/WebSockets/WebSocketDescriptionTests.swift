import Testing

@testable import Transfer

@Suite("Ends of WebSockets as text")
struct WebSocketDescriptionTests {
    @Test("a close code shows its number and its meaning")
    func codes() {
        #expect("\(WebSocketCloseCode.normal)" == "1000 (normal closure)")
        #expect("\(WebSocketCloseCode.noStatus)" == "1005 (no status)")
        #expect("\(WebSocketCloseCode(rawValue: 4321))" == "4321")
        for code in 1000...1014 where WebSocketCloseCode(rawValue: UInt16(code)).isSendable {
            #expect("\(WebSocketCloseCode(rawValue: UInt16(code)))".hasPrefix("\(code) ("))
        }
    }

    @Test("a closure shows its code and its reason in one line")
    func closures() {
        #expect("\(WebSocketClosure(code: .goingAway))" == "1001 (going away)")
        #expect("\(WebSocketClosure(code: .goingAway, reason: "a\nb"))" == "1001 (going away): a b")
    }

    @Test("a response shows its result")
    func responses() {
        let request = TransferRequest(url: "ws://u:hidden@h/")
        var response = WebSocketResponse(
            request: request, result: .success(WebSocketClosure(code: .normal, reason: "bye")),
            metrics: TransferMetrics())
        #expect("\(response)" == "success: closed with 1000 (normal closure): bye")
        #expect(
            response.debugDescription == """
                [Request]: GET ws://h/
                [Timeline]: none
                [Metrics]: 0 exchanges
                [Result]: success: closed with 1000 (normal closure): bye
                """)
        response.result = .failure(TransferError(.cannotConnect, "no\nway"))
        #expect("\(response)" == "failure: no way")
    }
}
