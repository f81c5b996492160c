import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Redirects as servers see them")
struct RedirectExchangeTests {
    private let other: ScriptedServer

    init() throws { other = try ScriptedServer(["/g": [.status(200, body: "in")]]) }

    /// Creates a server that redirects every request to the other one.
    private func server(_ status: Int) throws -> ScriptedServer {
        try ScriptedServer(["/f": [.status(status, headers: ["Location: \(other.url("/g"))"])]])
    }

    @Test("K24: what a session says of who asks stays behind where a redirect leads to another origin")
    func sessionFields() async throws {
        let server = try server(302)
        let manager = try SessionManager(
            configuration: .test {
                $0.additionalHeaders = [
                    "Authorization: Bearer t", "X-Api-Key: k", "Cookie: a=b", "Accept-Language: de",
                ]
            })
        #expect(try await manager.request(server.url("/f")).string == "in")
        let (first, second) = (try #require(server.requests().first), try #require(other.requests().first))
        for name in ["authorization", "x-api-key", "cookie"] {
            #expect(first.header(name) != nil && second.header(name) == nil, "\(name)")
        }
        #expect(second.header("accept-language") == "de")
    }

    @Test("K24: a body that goes along keeps its type on the way to another origin", arguments: [307, 308])
    func bodyType(status: Int) async throws {
        let server = try server(status)
        let manager = try SessionManager(configuration: .test())
        let request = TransferRequest(
            url: server.url("/f"), method: .post, headerFields: [.contentType: "application/json"])
        #expect(await manager.upload(.data(Array("{}".utf8)), with: request).outcome.error == nil)
        let got = try #require(other.requests().first)
        #expect(got.method == "POST" && got.body == Array("{}".utf8))
        #expect(got.header("content-type") == "application/json")
    }

    @Test("K24: a part that was asked for is asked for at another origin too")
    func part() async throws {
        let server = try server(302)
        let manager = try SessionManager(configuration: .test())
        let request = TransferRequest(url: server.url("/f"), headerFields: [.range: "bytes=5-9"])
        _ = await manager.request(request).outcome
        #expect(other.requests().first?.header("range") == "bytes=5-9")
    }

    @Test("a session's type of body counts before the one that is guessed")
    func sessionType() async throws {
        let manager = try SessionManager(
            configuration: .test { $0.additionalHeaders = ["Content-Type: application/json"] })
        _ = await manager.upload(.data([1]), with: TransferRequest(url: other.url("/g"), method: .post)).outcome
        #expect(other.requests().first?.header("content-type") == "application/json")
    }

    @Test(
        "K24: methods and bodies after each redirect (RFC 9110, section 15.4)",
        arguments: [301, 302, 303, 307, 308], [HTTPRequest.Method.get, .head, .post, .put, .delete, .patch])
    func methods(status: Int, method: HTTPRequest.Method) async throws {
        let server = try server(status)
        let manager = try SessionManager(configuration: .test())
        let body: [UInt8] = method == .get || method == .head ? [] : [1, 2, 3]
        let request = TransferRequest(url: server.url("/f"), method: method)
        let outcome =
            body.isEmpty
            ? await manager.request(request).outcome : await manager.upload(.data(body), with: request).outcome
        #expect(outcome.error == nil)
        let got = try #require(other.requests().first)
        let becomesGet = status == 303 && method != .head || status < 303 && method == .post
        #expect(got.method == (becomesGet ? "GET" : method.rawValue))
        #expect(got.body == (becomesGet ? [] : body))
        if becomesGet { #expect(got.header("content-type") == nil && got.header("content-length") == nil) }
    }

    @Test(
        "A8: a body that is to stay with its server goes to no other, and one that stays behind holds up no redirect",
        arguments: [301, 302, 303, 307, 308], [HTTPRequest.Method.post, .put, .patch])
    func keptBody(status: Int, method: HTTPRequest.Method) async throws {
        let server = try server(status)
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: server.url("/f"), method: method)
        request.keepsBodyWithinOrigin = true
        let error = await manager.upload(.data([1, 2, 3]), with: request).outcome.error
        if status == 303 || status < 303 && method == .post {
            #expect(error == nil && other.requests().map(\.method) == ["GET"])
            return
        }
        #expect(error?.code == .protocolNotAllowed && error.map { RetryClass($0) } == .never)
        let words = "the server http://127.0.0.1:\(server.port) redirects (\(status)) the request with its body to "
        #expect(error?.message.hasPrefix(words + "http://127.0.0.1:\(other.port), ") == true, "\(error?.message ?? "")")
        #expect(other.connectionsAccepted == 0)
    }

    @Test("a body that is to stay with its server follows it within its origin", arguments: [301, 302, 307, 308])
    func keptBodyWithin(status: Int) async throws {
        let server = try ScriptedServer([
            "/f": [.status(status, headers: ["Location: /g"])], "/g": [.status(201)],
        ])
        let manager = try SessionManager(configuration: .test())
        var request = TransferRequest(url: server.url("/f"), method: .put)
        request.keepsBodyWithinOrigin = true
        #expect(await manager.upload(.data([1, 2, 3]), with: request).outcome.head?.status == 201)
        #expect(server.requests(for: "/g").first?.body == [1, 2, 3])
    }
}
