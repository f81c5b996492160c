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
