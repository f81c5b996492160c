import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Configurations, requests and credentials in a dump")
struct SessionConfigurationMirrorTests {
    /// Returns what `print`, `debugPrint` and `dump` write of a value.
    private func texts(_ value: Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        return ["\(value)", String(reflecting: value), dumped]
    }

    @Test("a configuration shows its properties without secrets")
    func configuration() throws {
        var configuration = SessionConfiguration()
        configuration.additionalHeaders = ["Authorization: Bearer hidden", "X-Trace: 9", "X-Key:hidden", "hidden"]
        configuration.proxy = "http://anna:hidden@proxy:3128"
        configuration.identities = ["h": ClientIdentity(certificate: "hidden", key: "hidden", passphrase: "hidden")]
        configuration.cookieStorage?.set(try #require(Cookie(name: "a", value: "hidden", domain: "h")))
        for text in texts(configuration) {
            #expect(!text.contains("hidden"))
            #expect(
                text.contains("Authorization: …") && text.contains("X-Trace: 9") && text.contains("http://proxy:3128"))
            #expect(text.contains("maximumRedirects: 20") && text.contains("stallTimeout: 60000"))
        }
    }

    @Test("a request shows its properties without secrets")
    func request() throws {
        var request = TransferRequest(
            url: "http://anna:hidden@h/?key=hidden",
            headerFields: [.authorization: "hidden", .cookie: "hidden", .accept: "text/plain"],
            credential: Credential(user: "anna", password: "hidden"))
        request.proxy = "http://anna:hidden@proxy:3128"
        request.mirrors = ["http://m/?key=hidden"]
        request.identity = ClientIdentity(pkcs12: Array("hidden".utf8), passphrase: "hidden")
        let texts = texts(request)
        #expect(texts[0] == "GET http://h/?key=…")
        #expect(!texts.contains { $0.contains("hidden") || $0.contains("104") })
        for shown in ["Authorization: …", "Accept: text/plain", "Credential(anna)", "http://proxy:3128", "m/?key=…"] {
            #expect(texts[2].contains(shown), "\(shown)")
        }
        let manager = try SessionManager(configuration: .test())
        #expect(!self.texts(manager.request(request)).contains { $0.contains("hidden") })
    }

    @Test("credentials, identities, cookies, fields and heads show no secrets")
    func parts() throws {
        let values: [Any] = [
            Credential(user: "anna", password: "hidden"), Credential.bearer("hidden"),
            Credential.privateKey(user: "anna", path: "/key", passphrase: "hidden"),
            ClientIdentity(certificate: "c", key: "hidden", passphrase: "hidden"),
            try #require(Cookie(name: "a", value: "hidden", domain: "h")),
            HTTPHeaders(["Authorization": "hidden", "Cookie": "hidden"]), HTTPHeader(name: "Cookie", value: "hidden"),
            ResponseHead(status: 200, reason: "OK", fields: [.setCookie: "hidden"]),
        ]
        for text in values.flatMap(texts) { #expect(!text.contains("hidden"), "\(text)") }
        #expect(texts(HTTPHeaders(["Accept": "text/plain"]))[2].contains("Accept: text/plain"))
    }
}
