import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Rejected bearer tokens and logins", .timeLimit(.minutes(1)))
struct SentCredentialTests {
    private static let rejected = "the server rejected the bearer token (401)"
    private static let rejectedLogin = "the server rejected the user name and password (401)"
    private static let login = "the server requires a user name and password (401)"

    private func message(
        _ configuration: SessionConfiguration = .test(), headers: [String] = [], isDownload: Bool,
        _ change: (inout TransferRequest) -> Void = { _ in }, credential: Credential? = nil
    ) async throws -> String? {
        let server = try ScriptedServer(["/a": [.status(401, headers: headers)]])
        let manager = try SessionManager(configuration: configuration)
        var request = TransferRequest(url: server.url("/a"))
        change(&request)
        func completed<Made: Request>(_ made: Made) -> Made {
            if let credential { made.authenticate(with: credential) }
            return made
        }
        if isDownload { return await completed(manager.download(request)).outcome.error?.message }
        return await completed(manager.request(request).validate()).outcome.error?.message
    }

    @Test("the message speaks of a token if one was sent, and does not contain it", arguments: [false, true])
    func token(isDownload: Bool) async throws {
        #expect(try await message(isDownload: isDownload) { $0.credential = .bearer("hidden") } == Self.rejected)
        #expect(
            try await message(isDownload: isDownload) { $0.headerFields[.authorization] = "bearer hidden" }
                == Self.rejected)
        let session = SessionConfiguration.test { $0.additionalHeaders = ["Authorization: Bearer hidden"] }
        #expect(try await message(session, isDownload: isDownload) == Self.rejected)
        #expect(
            try await message(
                headers: ["WWW-Authenticate: Bearer realm=\"r\""], isDownload: isDownload, credential: .bearer("hidden")
            )
                == Self.rejected)
    }

    @Test("after a rejected token, another credential answers the challenge")
    func another() async throws {
        for (challenge, credential, field) in [
            ("Bearer realm=\"r\"", Credential.bearer("good"), "Bearer good"),
            ("Basic realm=\"r\"", Credential(user: "u", password: "p"), "Basic dTpw"),
        ] {
            let server = try ScriptedServer([
                "/a": [.status(401, headers: ["WWW-Authenticate: \(challenge)"]), .status(200, body: "in")]
            ])
            let manager = try SessionManager(configuration: .test())
            var request = TransferRequest(url: server.url("/a"))
            request.credential = .bearer("old")
            #expect(try await manager.request(request).authenticate(with: credential).validate().string == "in")
            #expect(server.requests().map { $0.header("authorization") } == ["Bearer old", field])
        }
    }

    @Test("a rejected token is not sent again", arguments: ["Bearer realm=\"r\"", "Basic realm=\"r\""])
    func once(challenge: String) async throws {
        let server = try ScriptedServer(["/a": [.status(401, headers: ["WWW-Authenticate: \(challenge)"])]])
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: server.url("/a"), method: .post)
        request.credential = .bearer("old")
        #expect(await manager.upload(.data([1, 2, 3]), with: request).validate().outcome.error != nil)
        #expect(server.requests().map { $0.header("authorization") } == ["Bearer old"])
    }

    @Test("the message says that a user name and password were rejected if they were sent", arguments: [false, true])
    func password(isDownload: Bool) async throws {
        let login = Credential(user: "u", password: "hidden")
        #expect(try await message(isDownload: isDownload) { $0.credential = login } == Self.rejectedLogin)
        #expect(
            try await message(isDownload: isDownload) { $0.url = $0.url.replacing("://", with: "://u:hidden@") }
                == Self.rejectedLogin)
        let session = SessionConfiguration.test { $0.additionalHeaders = ["Authorization: Basic eDp5"] }
        #expect(try await message(session, isDownload: isDownload) == Self.rejectedLogin)
        for challenge in ["Basic realm=\"r\"", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""] {
            let headers = ["WWW-Authenticate: \(challenge)"]
            #expect(try await message(headers: headers, isDownload: isDownload) == Self.login)
            #expect(
                try await message(headers: headers, isDownload: isDownload, credential: login) == Self.rejectedLogin)
        }
    }

    @Test("the message of a proxy says that too, with the login in its URL or in a field", arguments: [false, true])
    func proxy(isDownload: Bool) async throws {
        let head = "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"
        func message(_ login: String, _ field: String? = nil) async throws -> String? {
            let proxy = try RawServer([Array(head.utf8)])
            let manager = try SessionManager(configuration: .test())
            var request = TransferRequest(url: "http://127.0.0.1:1/a")
            request.proxy = "http://\(login)127.0.0.1:\(proxy.port)"
            request.headerFields[.proxyAuthorization] = field
            if isDownload { return await manager.download(request).outcome.error?.message }
            return await manager.request(request).validate().outcome.error?.message
        }
        let rejected = " rejected the user name and password (407)"
        #expect(try await message("u:hidden@")?.hasSuffix(rejected) == true)
        #expect(try await message("", "Basic eDp5")?.hasSuffix(rejected) == true)
        let missing = try await message("")
        #expect(missing?.hasPrefix("the proxy 127.0.0.1:") == true)
        #expect(missing?.hasSuffix(" requires a user name and password (407), which its URL can contain") == true)
    }

    @Test("a proxy's challenge is answered, although the request has a password of its own")
    func proxyChallenge() async throws {
        let target = "http://127.0.0.1:1/a"
        let proxy = try ScriptedServer([
            target: [.status(407, headers: ["Proxy-Authenticate: Basic realm=\"p\""]), .status(200, body: "in")]
        ])
        let configuration = SessionConfiguration.test()
        let space = ProtectionSpace(
            host: "127.0.0.1", port: proxy.port, scheme: "http", isProxy: true, realm: "p", method: .basic)
        configuration.credentialStorage.set(Credential(user: "u", password: "p"), for: space)
        var request = TransferRequest(url: target)
        request.proxy = "http://127.0.0.1:\(proxy.port)"
        request.credential = Credential(user: "own", password: "own")
        let manager = try SessionManager(configuration: configuration)
        #expect(try await manager.request(request).validate().string == "in")
        #expect(proxy.requests().map { $0.header("proxy-authorization") } == [nil, "Basic dTpw"])
    }

    @Test("the message speaks of a user name and password otherwise", arguments: [false, true])
    func other(isDownload: Bool) async throws {
        #expect(try await message(isDownload: isDownload) == Self.login)
        // A password takes precedence over the request's own field.
        let mixed = try await message(isDownload: isDownload) {
            $0.credential = Credential(user: "u", password: "p")
            $0.headerFields[.authorization] = "Bearer hidden"
        }
        #expect(mixed == Self.rejectedLogin)
        #expect(
            try await message(isDownload: isDownload) { $0.headerFields[.authorization] = "Basic x" }
                == Self.rejectedLogin)
        // A field of another scheme is neither.
        #expect(try await message(isDownload: isDownload) { $0.headerFields[.authorization] = "Odd x" } == Self.login)
        // Without a challenge, the token was not sent.
        #expect(try await message(isDownload: isDownload, credential: .bearer("hidden")) == Self.login)
    }
}
