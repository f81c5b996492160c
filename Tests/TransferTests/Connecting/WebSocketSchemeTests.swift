import Curl
import TestSupport
import Testing

@testable import Transfer

@Suite("WebSockets")
struct WebSocketSchemeTests {
    @Test("a request with a scheme of WebSockets fails at once and says what is missing")
    func requests() async throws {
        let manager = try SessionManager(configuration: .test())
        for url in ["ws://127.0.0.1:1/", "WSS://example.org/chat"] {
            let error = try #require(await manager.request(url).outcome.error)
            #expect(error.code == .protocolNotAllowed)
            #expect(error.message == WebSocketScheme.error().message)
            #expect(error.message.contains("WebSocket"))
        }
        let directory = try TemporaryDirectory()
        let download = await manager.download("ws://127.0.0.1:1/", to: directory.file("a")).outcome
        #expect(download.error?.code == .protocolNotAllowed)
    }

    @Test("the error names the version and what it lacks")
    func messages() {
        #expect(
            WebSocketScheme.error(version: "7.88.1", isAvailable: false).message
                == "this libcurl (7.88.1) has no WebSockets: 7.86 or later built with them is needed")
        #expect(
            WebSocketScheme.error(version: "8.14.1", isAvailable: true).message
                == "a URL with ws or wss needs a WebSocket request (SessionManager.webSocket)")
        #expect(WebSocketScheme(of: "http://example.org/") == nil)
        #expect(WebSocketScheme(of: "") == nil)
    }
}
