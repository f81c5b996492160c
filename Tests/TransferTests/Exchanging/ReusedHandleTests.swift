import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Handles of libcurl that later requests use again")
struct ReusedHandleTests {
    /// A session with one loop, whose handles are used one after the other.
    private func manager() throws -> SessionManager {
        try SessionManager(configuration: .test { $0.loops = 1 })
    }

    private func lines(_ request: ScriptedServer.Request?) -> [String]? {
        request.map {
            [$0.method] + $0.headers.map { "\($0.name): \($0.value)" } + [String(decoding: $0.body, as: UTF8.self)]
        }
    }

    @Test("a request sends nothing of the one before it", .timeLimit(.minutes(1)))
    func nothingRemains() async throws {
        let server = try ScriptedServer([
            "/plain": [.status(200, body: "plain")], "/put": [.status(417)],
            "/digest": [
                .status(401, headers: [#"WWW-Authenticate: Digest realm="r", nonce="n", qop="auth""#]),
                .status(200, body: "digest"),
            ],
        ])
        let fresh = try manager()
        #expect(try await fresh.request(server.url("/plain")).string == "plain")
        let expected = lines(server.requests(for: "/plain").last)

        let manager = try manager()
        func checkPlain(_ name: Comment) async throws {
            #expect(try await manager.request(server.url("/plain")).string == "plain", name)
            #expect(lines(server.requests(for: "/plain").last) == expected, name)
        }
        // A body, a method of its own, many fields and a credential, which the server refuses.
        var put = TransferRequest(url: server.url("/put"), method: .patch)
        put.headerFields = [
            .accept: "text/x", .acceptEncoding: "gzip", .cookie: "a=b", .referer: "x", .expect: "100-continue",
        ]
        put.credential = Credential(user: "user", password: "secret")
        _ = await manager.upload(.data(Array("body".utf8)), with: put).outcome
        try await checkPlain("after an upload")
        _ = await manager.request(TransferRequest(url: server.url("/plain"), method: .head)).outcome
        try await checkPlain("after HEAD")
        #expect(
            try await manager.request(server.url("/digest")).authenticate(user: "user", password: "secret").string
                == "digest")
        try await checkPlain("after a digest")
        var timed = TransferRequest(url: "http://127.0.0.1:1/")
        timed.timeout = 50
        _ = await manager.request(timed).outcome
        try await checkPlain("after a failure")
        let download = manager.request(server.url("/plain"))
        download.resume()
        download.cancel()
        _ = await download.outcome
        try await checkPlain("after a cancelled request")
    }

    @Test("many requests at once, more than handles are kept, all succeed", .timeLimit(.minutes(1)))
    func many() async throws {
        let server = try ScriptedServer(["/plain": [.status(200, body: "plain")]])
        let manager = try manager()
        for _ in 0..<3 {
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<80 { group.addTask { try await manager.request(server.url("/plain")).string } }
                for try await text in group { #expect(text == "plain") }
            }
        }
        #expect(server.requests().count == 240)
    }
}
