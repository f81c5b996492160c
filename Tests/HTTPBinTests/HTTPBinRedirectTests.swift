import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: redirects", .timeLimit(.minutes(1)))
struct HTTPBinRedirectTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    private var manager: SessionManager { client.manager }

    private func path(to url: String, status: Int = 302) -> String {
        "/redirect-to?url=\(segment(url))&status_code=\(status)"
    }

    // MARK: By default

    @Test("redirects are followed to their end", arguments: ["relative", "absolute"], [1, 2, 5, 10])
    func followed(_ kind: String, _ count: Int) async throws {
        let outcome = await manager.request(client.url("/\(kind)-redirect/\(count)")).validate().outcome
        #expect(outcome.status == 200 && outcome.request?.url == client.url("/get"))
        #expect(outcome.statuses == Array(repeating: 302, count: count) + [200])
        #expect(outcome.metrics.redirectCount == count)
    }

    @Test("each status of a redirect is followed", arguments: [301, 302, 303, 307])
    func statuses(_ status: Int) async throws {
        let outcome = await manager.request(client.url("/status/\(status)")).outcome
        #expect(outcome.statuses == [status, 302, 200])
    }

    @Test("a status that is no redirect is the final response", arguments: [300, 304, 305, 306])
    func notFollowed(_ status: Int) async throws {
        let outcome = await manager.request(client.url("/status/\(status)")).outcome
        #expect(outcome.status == status && outcome.error == nil && outcome.metrics.exchanges.count == 1)
    }

    @Test(
        "the status of a redirect decides on the next method",
        arguments: [
            (301, .post, .get), (302, .post, .get), (303, .post, .get), (307, .post, .post), (308, .post, .post),
            (301, .put, .put), (302, .put, .put), (303, .put, .get), (307, .put, .put), (308, .put, .put),
            (301, .delete, .delete), (303, .delete, .get), (307, .patch, .patch), (302, .get, .get), (308, .get, .get),
        ] as [(Int, HTTPRequest.Method, HTTPRequest.Method)])
    func method(_ status: Int, _ method: HTTPRequest.Method, _ next: HTTPRequest.Method) async throws {
        let outcome = await manager.request(client.request(path(to: "/anything", status: status), method)).validate()
            .serialized(using: JSONSerializer())
        #expect(outcome.value?["method"]?.text == next.rawValue && outcome.request?.method == next)
    }

    @Test(
        "a target is resolved against the URL that redirects",
        arguments: ["/get?a=b", "get?a=b", "./get?a=b", "x/../get?a=b"])
    func relative(_ target: String) async throws {
        let outcome = await manager.request(client.url(path(to: target))).validate().outcome
        #expect(outcome.request?.url == client.url("/get?a=b"))
    }

    @Test("HEAD remains HEAD", arguments: [1, 3])
    func head(_ count: Int) async throws {
        let outcome = await manager.request(client.request("/redirect/\(count)", .head)).outcome
        #expect(outcome.request?.method == .head && outcome.status == 200 && outcome.data?.isEmpty == true)
    }

    // MARK: Limits and refusals

    @Test("more redirects than the session permits fail the request", arguments: [3, 4])
    func limit(_ count: Int) async throws {
        let client = try await Client { $0.maximumRedirects = 3 }
        let outcome = await client.manager.request(client.url("/redirect/\(count)")).outcome
        #expect(outcome.code == (count > 3 ? .tooManyRedirects : nil))
    }

    @Test("a server that redirects to itself fails the request")
    func loop() async throws {
        let outcome = await manager.request(client.url("/absolute-redirect/21")).outcome
        #expect(outcome.code == .tooManyRedirects && outcome.metrics.redirectCount == 21)
    }

    @Test(
        "a redirect to another protocol is refused",
        arguments: ["ftp://127.0.0.1/file", "file:///etc/passwd", "javascript:alert(1)", "gopher://127.0.0.1/"])
    func otherProtocol(_ target: String) async throws {
        #expect(await manager.request(client.url(path(to: target))).outcome.code == .protocolNotAllowed)
    }

    @Test(
        "the policy of the request decides what is followed",
        arguments: [
            (.follow, 302, .get, 200), (.stop, 302, .get, 302), (.stop, 307, .post, 307),
            (.followUnchanged, 302, .get, 200), (.followUnchanged, 303, .post, 303),
            (.followUnchanged, 307, .post, 200),
        ] as [(RedirectPolicy, Int, HTTPRequest.Method, Int)])
    func policy(_ policy: RedirectPolicy, _ status: Int, _ method: HTTPRequest.Method, _ final: Int) async throws {
        var request = client.request(path(to: "/anything", status: status), method)
        request.redirects = policy
        let outcome = await manager.request(request).outcome
        #expect(outcome.status == final && outcome.error == nil)
    }

    @Test("a body that must stay with its server is not sent to another", arguments: ["localhost", "127.0.0.1"])
    func body(_ host: String) async throws {
        var request = client.request(path(to: client.server.url("/anything", host: host), status: 307), .post)
        request.keepsBodyWithinOrigin = true
        let outcome = await manager.upload(.text("text"), with: request).outcome
        #expect(outcome.code == (host == "localhost" ? .protocolNotAllowed : nil))
    }

    // MARK: Fields

    @Test("header fields follow a redirect within the server")
    func fields() async throws {
        let name = try #require(HTTPField.Name("X-Own"))
        let echo = try await client.echo(path(to: "/headers"), .get, [name: "yes", .authorization: "Bearer a"])
        #expect(echo.field("X-Own") == "yes" && echo.field("Authorization") == "Bearer a")
    }

    @Test("only harmless header fields follow a redirect to another server")
    func fieldsElsewhere() async throws {
        let name = try #require(HTTPField.Name("X-Own"))
        let fields: HTTPFields = [
            name: "yes", .authorization: "Bearer a", .cookie: "a=b", .accept: "application/json", .acceptLanguage: "de",
        ]
        let echo = try await client.echo(path(to: client.server.url("/headers", host: "localhost")), .get, fields)
        #expect(echo.field("X-Own") == nil && echo.field("Authorization") == nil && echo.field("Cookie") == nil)
        #expect(echo.field("Accept") == "application/json" && echo.field("Accept-Language") == "de")
    }

    @Test("the session's secret fields do not follow a redirect to another server")
    func sessionFields() async throws {
        let client = try await Client { $0.additionalHeaders = ["X-Session: secret", "Accept: application/json"] }
        let there = try await client.echo("/headers")
        #expect(there.field("X-Session") == "secret")
        let echo = try await client.echo(path(to: client.server.url("/headers", host: "localhost")))
        #expect(echo.field("X-Session") == nil && echo.field("Accept") == "application/json")
    }

    // MARK: Closures

    /// The closures that decide on redirects.
    enum Closure: String, CaseIterable, Sendable { case session, sessionLater, request }

    private func request(
        _ path: String, _ closure: Closure,
        _ decide: @escaping @Sendable (ResponseHead, TransferRequest) -> TransferRequest?
    ) -> DataRequest {
        let request = manager.request(client.url(path))
        switch closure {
        case .session: manager.delegate.taskWillPerformHTTPRedirection = { decide($1, $2) }
        case .sessionLater:
            manager.delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, head, next, completion in
                Task.detached { completion(decide(head, next)) }
            }
        case .request: request.delegate.taskWillPerformHTTPRedirection = { decide($1, $2) }
        }
        return request
    }

    @Test("a closure is told of each redirect, and may follow it", arguments: Closure.allCases, [1, 4])
    func told(_ closure: Closure, _ count: Int) async throws {
        let seen = Record<Int>()
        let outcome = await request("/redirect/\(count)", closure) { head, next in
            seen.add(head.status)
            return next
        }.outcome
        #expect(outcome.status == 200 && seen.all == Array(repeating: 302, count: count))
    }

    @Test("a closure may stop a redirect, which is then the response", arguments: Closure.allCases)
    func stopped(_ closure: Closure) async throws {
        let outcome = await request("/redirect/3", closure) { _, _ in nil }.outcome
        #expect(outcome.status == 302 && outcome.error == nil && outcome.head?.value(of: "location") != nil)
        #expect(outcome.request?.url == client.url("/redirect/3"))
    }

    @Test("a closure may stop the second redirect", arguments: Closure.allCases)
    func stoppedLater(_ closure: Closure) async throws {
        let seen = Record<String>()
        let outcome = await request("/relative-redirect/3", closure) { _, next in
            seen.add(next.url)
            return seen.count < 2 ? next : nil
        }.outcome
        #expect(outcome.status == 302 && outcome.request?.url == client.url("/relative-redirect/2") && seen.count == 2)
    }

    @Test("a closure may lead elsewhere", arguments: Closure.allCases)
    func elsewhere(_ closure: Closure) async throws {
        let other = client.request("/anything/elsewhere", .post)
        let outcome = await request("/redirect/3", closure) { _, _ in other }.serialized(using: JSONSerializer())
        #expect(outcome.value?["method"]?.text == "POST" && outcome.request?.url == other.url)
    }

    @Test("a closure may add a field to the next request", arguments: Closure.allCases)
    func addedField(_ closure: Closure) async throws {
        let name = try #require(HTTPField.Name("X-Added"))
        let outcome = await request("/redirect/1", closure) { _, next in
            var next = next
            next.headerFields[name] = "yes"
            return next
        }.serialized(using: JSONSerializer())
        #expect(outcome.value?.field("X-Added") == "yes")
    }
}
