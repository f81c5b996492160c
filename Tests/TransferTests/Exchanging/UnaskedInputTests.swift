import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Bytes that nobody asked for", .timeLimit(.minutes(1)))
struct UnaskedInputTests {
    static let wrong = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nWRONG"
    static let timeout = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    @Test(
        "F86: a response that comes between two requests is not that of the second one",
        arguments: [wrong, timeout, "H"], [TalkativeServer.Framing.length, .chunks])
    func between(text: String, framing: TalkativeServer.Framing) async throws {
        let server = try TalkativeServer(.later(text), framing: framing)
        let manager = try SessionManager(configuration: .test())
        #expect(try await manager.request(server.url("/a")).string == "1.1")
        server.speak()
        #expect(try await manager.request(server.url("/b")).string == "2.1")
        #expect(try await manager.request(server.url("/c")).string == "2.2", "the second connection is kept")
        #expect(server.requests.map(\.count) == [1, 2])
    }

    @Test("F86: a connection that the server has ended costs a request nothing")
    func ended() async throws {
        let server = try TalkativeServer(.end)
        let manager = try SessionManager(configuration: .test())
        #expect(try await manager.request(server.url("/a")).string == "1.1")
        server.speak()
        let second = manager.request(server.url("/b"))
        #expect(try await second.string == "2.1")
        #expect(second.metrics.exchanges.count == 1)
    }

    @Test("F86: an upload does not get the response that was sent before it")
    func upload() async throws {
        let server = try TalkativeServer(.later("HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n\r\n"))
        let manager = try SessionManager(configuration: .test())
        #expect(try await manager.request(server.url("/a")).string == "1.1")
        server.speak()
        var request = TransferRequest(url: server.url("/b"))
        request.method = .put
        #expect(try await manager.upload(.data(Array("body".utf8)), with: request).string == "2.1")
        #expect(server.requests.map(\.count) == [1, 1])
    }

    @Test(
        "F86: a connection on which bytes followed the response is not used again",
        arguments: [TalkativeServer.Framing.length, .chunks, .none], ["H", wrong])
    func behind(framing: TalkativeServer.Framing, text: String) async throws {
        let server = try TalkativeServer(.behind(text), framing: framing)
        let manager = try SessionManager(configuration: .test())
        _ = try await manager.request(server.url("/a")).value
        let second = manager.request(server.url("/b"))
        _ = try await second.value
        #expect(server.requests == [["GET /a HTTP/1.1"], ["GET /b HTTP/1.1"]])
    }

    @Test("F86: behind TLS neither")
    func secure() async throws {
        let identity = try await TestCertificates.shared.server
        let server = try await RaggedServer("/dev/null", identity: identity)
        var request = TransferRequest(url: server.url("/kept"))
        request.caCertificates = try await TestCertificates.shared.authority.text
        let manager = try SessionManager(configuration: .test())
        #expect(try await manager.request(request).string == "1")
        let again = manager.request(request)
        #expect(try await again.string == "1" && again.metrics.last?.isReusedConnection == true)
        #expect(try await run(["curl", "-sk", server.url("/speak")]).succeeded)
        let text = try await manager.request(request).string
        #expect(text == "2")
    }
}
