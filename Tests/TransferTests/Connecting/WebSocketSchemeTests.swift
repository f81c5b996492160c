import TestSupport
import Testing

@testable import Transfer

@Suite("WebSockets")
struct WebSocketSchemeTests {
    @Test("a request of another kind with a scheme of WebSockets fails at once and says what to use")
    func requests() async throws {
        let manager = try SessionManager(configuration: .test())
        for url in ["ws://127.0.0.1:1/", "WSS://example.org/chat"] {
            let error = try #require(await manager.request(url).outcome.error)
            #expect(error.code == .protocolNotAllowed)
            #expect(error == WebSocketScheme.error)
            #expect(error.message.contains("WebSocket"))
        }
        let directory = try TemporaryDirectory()
        let download = await manager.download("ws://127.0.0.1:1/", to: directory.file("a")).outcome
        #expect(download.error?.code == .protocolNotAllowed)
    }

    @Test("only ws and wss are schemes of WebSockets, in any case")
    func schemes() {
        #expect(WebSocketScheme(of: "WS://h/") == .ws && WebSocketScheme(of: "wss://h/") == .wss)
        #expect(WebSocketScheme(of: "http://example.org/") == nil)
        #expect(WebSocketScheme(of: "") == nil)
    }
}
