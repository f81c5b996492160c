import TestSupport
import Testing

@testable import Transfer

@Suite("What is taken out of URLs before anyone sees them")
struct URLRedactionTests {
    @Test(
        "M28: user and password are hidden in whatever libcurl takes for a URL, and in what it does not",
        arguments: [
            ("http://u:secret@host/p", "http://host/p"), ("http:/u:secret@host/p", "http:/host/p"),
            ("http:///u:secret@host/p", "http:///host/p"), ("u:secret@host:1/p", "host:1/p"),
            ("HTTP://secret@host?x", "HTTP://host?x"), ("http://u:secret@host#f", "http://host"),
            ("http://u:secret@\u{301}host/", "http://\u{301}host/"), ("http://host:1/a@b", "http://host:1/a@b"),
            ("host:1", "host:1"), ("", ""), (":", ":"), ("http:", "http:"), ("http://", "http://"),
        ])
    func user(url: String, redacted: String) throws {
        #expect(Array(URLRedaction.redact(url).utf8) == Array(redacted.utf8))
        let request = try SessionManager(configuration: .test()).request(url)
        #expect(!"\(request) \(request.debugDescription)".contains("secret"))
    }

    @Test(
        "the message about an invalid URL contains the URL without secrets and control characters",
        arguments: [
            ("example.org/p", "example.org/p"), ("http://", "http://"),
            ("http://host:port/?t=secret", "http://host:port/?t=…"),
            ("http://u:secret@host:port/p", "http://host:port/p"), ("http://u:secret/@host/p", "http://host/p"),
            ("http://u:x?secret@host/p", "http://host/p"), ("http://u:x#secret@host/p", "http://host/p"),
            ("http://ho\u{1B}[2Jst/", "http://ho [2Jst/"), ("u:secret@:x/p", ":x/p"),
        ])
    func invalid(url: String, shown: String) async throws {
        let manager = try SessionManager(configuration: .test())
        let message = await manager.request(url).outcome.error?.message
        #expect(message == "the URL cannot be read: \(shown)")
        #expect(await manager.download(url).outcome.error?.message == message)
    }

    @Test("a long URL is shortened in a message, and an empty one is called empty")
    func lengths() async throws {
        let manager = try SessionManager(configuration: .test())
        let long = await manager.request("http://" + String(repeating: "e\u{301}:", count: 200)).outcome.error
        let shown = try #require(long?.message.dropFirst("the URL cannot be read: ".count))
        #expect(shown.unicodeScalars.count == 200 && shown.hasPrefix("http://") && shown.hasSuffix("…"))
        #expect(await manager.request("").outcome.error?.message == "the URL is empty")
        var request = TransferRequest(url: "http://127.0.0.1:1/")
        request.proxy = "http://u:secret@127.0.0.1:port"
        #expect(
            await manager.request(request).outcome.error?.message
                == "the proxy's URL cannot be read: http://127.0.0.1:port")
        let socket = await manager.webSocket("ws://u:secret@127.0.0.1:port/").outcome.error
        #expect(socket?.message == "the URL of the WebSocket cannot be read: ws://127.0.0.1:port/")
        let file = await manager.download("ftp://u:secret@127.0.0.1:port/f").outcome.error
        #expect(file?.message == "the URL cannot be read: ftp://127.0.0.1:port/f")
    }

    @Test("values of the query are hidden, and its names are not")
    func query() {
        #expect(URLRedaction.redact("http://h/?a=1&b=2;c=3&d&=4&") == "http://h/?a=…&b=…&d&=…&")
        #expect(URLRedaction.redact("http://h/?a=1", hidesQuery: false) == "http://h/?a=1")
    }

    @Test(
        "a proxy's password does not come into resume data, however the proxy is written",
        arguments: ["u:secret@proxy:3128", "http:/u:secret@proxy:3128", "socks5://u:secret@proxy:3128"])
    func proxy(text: String) {
        var request = TransferRequest(url: "http://host/")
        request.proxy = text
        let kept = RecordedRequest(request).request.proxy
        #expect(kept?.contains("secret") == false && kept?.contains("proxy:3128") == true)
    }
}
