import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("What requests say by default")
struct DefaultHTTPHeadersTests {
    private func languages(_ environment: [String: String]) -> String {
        AcceptLanguage.fieldValue(AcceptLanguage.tags { environment[$0] })
    }

    @Test("languages come from the environment, each less wanted than the one before")
    func languages() {
        #expect(languages(["LANG": "de_AT.UTF-8"]) == "de-AT, de;q=0.9")
        #expect(languages(["LANG": "de_AT@euro", "LC_ALL": "fr_FR"]) == "fr-FR, fr;q=0.9")
        #expect(languages(["LANG": "de_AT", "LC_MESSAGES": "sv"]) == "sv")
        #expect(languages(["LANG": "en_US", "LANGUAGE": "nl:en_GB"]) == "nl, en-GB;q=0.9, en-US;q=0.8, en;q=0.7")
        #expect(languages(["LANG": "es_419"]) == "es-419, es;q=0.9")
        #expect(languages(["LANG": "x", "LC_ALL": "", "LC_MESSAGES": "ast_ES"]) == "ast-ES, ast;q=0.9")
    }

    @Test("at most six of them")
    func most() {
        let value = languages(["LANG": "en_US", "LANGUAGE": "aa:bb:cc:dd:ee:ff:gg:hh"])
        #expect(value == "aa, bb;q=0.9, cc;q=0.8, dd;q=0.7, ee;q=0.6, ff;q=0.5")
        #expect(languages(["LANG": "en", "LANGUAGE": String(repeating: "aa:", count: 100_000)]) == "aa, en;q=0.9")
    }

    @Test(
        "what is no language is left out",
        arguments: [
            "", "C", "POSIX", "C.UTF-8", "de_", "_DE", "de_DE_x", "de\r\nX: y", "d", "deutsch", "de_D1", "de-DE",
            "ä_DE",
        ])
    func none(locale: String) {
        #expect(AcceptLanguage.tags { $0 == "LANG" ? locale : nil } == [])
        #expect(AcceptLanguage.tags { $0 == "LANG" ? "en" : $0 == "LANGUAGE" ? locale : nil } == ["en"])
    }

    @Test("the default configuration's requests say who asks and what they can read; a download wants no coding")
    func sent() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let place = try Place()
        let manager = try SessionManager()
        _ = try await manager.request(server.url("/f")).value
        _ = try await manager.download(TransferRequest(url: server.url("/f")), to: place.target()).value
        let headers = SessionManager.defaultHTTPHeaders
        let agent = try #require(headers[.userAgent])
        #expect(agent.hasPrefix("dld-transfer/0.1 libcurl/") && agent.contains("(Linux "))
        for request in server.requests() {
            #expect(request.header("user-agent") == agent)
            #expect(request.header("accept-language") == headers[.acceptLanguage])
        }
        let codings = server.requests().map { $0.headers.filter { $0.name == "accept-encoding" }.map(\.value) }
        #expect(codings == [[try #require(headers[.acceptEncoding])], ["identity"]])
    }

    @Test("a configuration's own fields do not speak against the engine's")
    func contradiction() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        let place = try Place()
        let manager = try SessionManager(
            configuration: .test { $0.additionalHeaders = ["Accept-Encoding: gzip", "X-Own: 1"] })
        var request = TransferRequest(url: server.url("/f"))
        request.headerFields[.acceptEncoding] = "br"
        _ = try await manager.download(request, to: place.target()).value
        let seen = try #require(server.requests().first)
        #expect(seen.headers.filter { $0.name == "accept-encoding" }.map(\.value) == ["identity"])
        #expect(seen.header("x-own") == "1")
    }

    @Test("a configuration of one's own says no more than it has to")
    func plain() async throws {
        let server = try ScriptedServer(["/f": [.status(200)]])
        let manager = try SessionManager(configuration: SessionConfiguration())
        _ = await manager.request(server.url("/f")).outcome
        let seen = try #require(server.requests().first)
        #expect(seen.header("accept-language") == nil)
        #expect(seen.header("user-agent") == "dld-transfer/0.1")
    }

    @Test("there is one manager for all who want no other")
    func shared() async throws {
        let server = try ScriptedServer(["/f": [.status(200, body: "abc")]])
        #expect(try SessionManager.default === SessionManager.default)
        #expect(try await SessionManager.default.request(server.url("/f")).string == "abc")
    }
}
