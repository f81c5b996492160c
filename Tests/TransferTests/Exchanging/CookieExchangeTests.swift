import Curl
import Glibc
import HTTPTypes
import TestSupport
import Testing

@testable import Transfer

@Suite("Cookies that come and go with requests")
struct CookieExchangeTests {
    private let manager: SessionManager
    private let storage: CookieStorage

    init() throws {
        (manager, storage) = try Self.make()
    }

    /// Creates a manager and its cookie storage, in a session where every name resolves to this machine.
    private static func make(
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws -> (SessionManager, CookieStorage) {
        let storage = CookieStorage()
        let configuration = SessionConfiguration.test {
            $0.cookieStorage = storage
            change(&$0)
        }
        let session = try Session(
            configuration: configuration, delegate: SessionDelegate(), resolver: .init { _ in .success(["127.0.0.1"]) })
        return (try #require(SessionManager(session: session, delegate: session.delegate)), storage)
    }

    /// Creates a server that sets these cookies at `/set` and none at other paths.
    private func server(_ cookies: [String], others: [String] = []) throws -> ScriptedServer {
        var script: [String: [ScriptedAnswer]] = [
            "/set": [.status(200, headers: cookies.map { "Set-Cookie: \($0)" })]
        ]
        for path in ["/"] + others { script[path] = [.status(200)] }
        return try ScriptedServer(script)
    }

    private func url(_ server: ScriptedServer, _ path: String = "/", host: String = "a.test") -> String {
        "http://\(host):\(server.port)\(path)"
    }

    /// Returns the cookies sorted by name.
    private func sorted(_ field: String?) -> [String]? {
        field?.split(separator: ";").map { String($0.drop { $0 == " " }) }.sorted()
    }

    /// Sends a request and returns the cookies that it carried.
    @discardableResult
    private func cookies(
        to server: ScriptedServer, _ path: String = "/", host: String = "a.test", fields: HTTPFields = [:]
    ) async throws -> String? {
        let request = TransferRequest(url: url(server, path, host: host), headerFields: fields)
        let outcome = await manager.request(request).outcome
        #expect(outcome.error == nil)
        return try #require(server.requests(for: path).last).header("cookie")
    }

    private func cookie(
        _ name: String, _ value: String = "1", domain: String = "a.test", beneath: Bool = false, secure: Bool = false,
        expires: Int64 = 0
    ) throws -> Cookie {
        try #require(
            Cookie(
                name: name, value: value, domain: domain, includesSubdomains: beneath, isSecure: secure,
                expires: expires))
    }

    // MARK: Sent cookies

    @Test("a cookie goes along with later requests, where its path and host match and nowhere else")
    func matching() async throws {
        let server = try server(["a=1; Path=/app", "b=2"], others: ["/app", "/app/deep", "/apple"])
        #expect(try await cookies(to: server, "/set") == nil)
        #expect(storage.cookies.map(\.name) == ["a", "b"])
        #expect(try await cookies(to: server, "/app") == "a=1; b=2")
        #expect(try await cookies(to: server, "/app/deep") == "a=1; b=2")
        #expect(try await cookies(to: server, "/apple") == "b=2")
        #expect(try await cookies(to: server, host: "b.test") == nil)
        #expect(try await cookies(to: server, host: "sub.a.test") == nil)
    }

    @Test("a domain's cookies go to the hosts beneath it; nobody sets them for a public suffix or another's domain")
    func domains() async throws {
        let server = try server([
            "host=1", "own=1; Domain=shop.co.uk", "suffix=1; Domain=co.uk", "top=1; Domain=uk",
            "other=1; Domain=example.com", "beneath=1; Domain=deep.www.shop.co.uk",
        ])
        try await cookies(to: server, "/set", host: "www.shop.co.uk")
        #expect(Set(storage.cookies.map(\.name)) == ["host", "own"])
        #expect(try await cookies(to: server, host: "www.shop.co.uk") == "host=1; own=1")
        #expect(try await cookies(to: server, host: "api.shop.co.uk") == "own=1")
        #expect(try await cookies(to: server, host: "other.co.uk") == nil)
    }

    @Test("a cookie whose time is over does not go along, and one that a server deletes is gone")
    func expiry() async throws {
        let now = Int64(time(nil))
        let server = try server([
            "gone=; Max-Age=0", "past=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "new=1; Max-Age=3600",
            "never=1; Max-Age=-1",
        ])
        for name in ["gone", "past", "kept"] { storage.set(try cookie(name)) }
        storage.set(try cookie("old", expires: now - 10))
        #expect(sorted(try await cookies(to: server)) == ["gone=1", "kept=1", "past=1"])
        try await cookies(to: server, "/set")
        #expect(sorted(try await cookies(to: server)) == ["kept=1", "new=1"])
        let new = try #require(storage.cookies.first { $0.name == "new" })
        #expect((3590...3700).contains(new.expires - now))
    }

    @Test("a secure cookie goes over TLS alone, and what comes without TLS cannot set, shadow or delete it")
    func secure() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [
                .custom("/set", "add_header Set-Cookie 'sid=right; Secure; HttpOnly'; return 200 'ok';"),
                .echo("/echo", headers: ["Cookie"]),
            ], tls: .init(certificate: certificates.wildcard))
        let (manager, storage) = try Self.make { $0.caFile = certificates.authority.path }
        let host = "a.wild.test"
        _ = try await manager.request(nginx.url("/set", host: host)).value
        #expect(storage.cookies.first?.isSecure == true && storage.cookies.first?.isHTTPOnly == true)
        #expect(try await manager.request(nginx.url("/echo", host: host)).string == "GET /echo\nCookie: sid=right\n")

        let plain = try server(["sid=wrong", "sid=; Max-Age=0", "other=1; Secure"])
        // The request's own cookies keep the stored one from being sent; it is protected from the response all the
        // same.
        for fields: HTTPFields in [[:], [.cookie: "own=1"]] {
            let request = TransferRequest(url: url(plain, "/set", host: host), headerFields: fields)
            #expect(await manager.request(request).outcome.error == nil)
            #expect(plain.requests().last?.header("cookie") == fields[.cookie])
            #expect(storage.cookies.map { "\($0.name)=\($0.value)" } == ["sid=right"])
        }
    }

    // MARK: A request's own cookies

    @Test("a request's own Cookie field goes as it is and alone; what the answer sets and deletes counts")
    func own() async throws {
        let server = try server(["stored=; Max-Age=0", "new=1"])
        for name in ["stored", "kept"] { storage.set(try cookie(name)) }
        #expect(try await cookies(to: server, "/set", fields: [.cookie: "own=1; stored=mine"]) == "own=1; stored=mine")
        let all = server.requests().flatMap { $0.headers.filter { $0.name == "cookie" } }
        #expect(all.count == 1)
        #expect(storage.cookies.map(\.name) == ["kept", "new"])
    }

    @Test("F75: the cookies of a request's own storage share one line with its own field, and replace equal names")
    func ownStorage() async throws {
        let server = try server(["stored=2", "new=1"])
        var request = TransferRequest(
            url: url(server, "/set"), headerFields: [.cookie: "own=1; stored=mine;; odd"])
        let own = CookieStorage()
        request.cookies = own
        for _ in 0..<2 { #expect(await manager.request(request).outcome.error == nil) }
        let all = server.requests().map { $0.headers.filter { $0.name == "cookie" }.map(\.value) }
        #expect(all == [["own=1; stored=mine;; odd"], ["own=1; odd; stored=2; new=1"]])
        #expect(storage.cookies.isEmpty && own.cookies.map(\.name) == ["stored", "new"])
    }

    @Test("one among the session's additional headers is the request's own too")
    func additional() async throws {
        let (manager, storage) = try Self.make { $0.additionalHeaders = ["cookie: mine=1"] }
        storage.set(try cookie("stored"))
        let server = try server([])
        #expect(await manager.request(url(server)).outcome.error == nil)
        let sent = server.requests().flatMap { $0.headers.filter { $0.name == "cookie" }.map(\.value) }
        #expect(sent == ["mine=1"])
    }

    @Test("without httpShouldSetCookies nothing that is stored goes along, and what servers set is kept")
    func notSent() async throws {
        let (manager, storage) = try Self.make { $0.httpShouldSetCookies = false }
        storage.set(try cookie("stored"))
        let server = try server(["new=1"])
        for _ in 0..<2 { #expect(await manager.request(url(server, "/set")).outcome.error == nil) }
        #expect(server.requests().allSatisfy { $0.header("cookie") == nil })
        #expect(storage.cookies.map(\.name) == ["stored", "new"])
    }

    @Test("where servers' cookies are not accepted, the program's own go along and stay")
    func notAccepted() async throws {
        storage.acceptPolicy = .never
        storage.set(try cookie("own"))
        let server = try server(["new=1", "own=; Max-Age=0"])
        #expect(try await cookies(to: server, "/set") == "own=1")
        #expect(try await cookies(to: server) == "own=1")
        #expect(storage.cookies.map(\.name) == ["own"])
    }

    @Test("a Host field of the request's own says whose cookies they are")
    func hostField() async throws {
        let name = try #require(HTTPField.Name("Host"))
        let server = try server(["new=1"])
        storage.set(try cookie("a"))
        storage.set(try cookie("b", domain: "b.test"))
        #expect(try await cookies(to: server, "/set", fields: [name: "B.test:80"]) == "b=1")
        #expect(storage.cookies.last?.domain == "b.test")
    }

    // MARK: Redirects and challenges

    @Test("M24: a redirect's cookies go along with what follows at its host, and none goes to another host")
    func redirects() async throws {
        let other = try ScriptedServer(["/": [.status(200)]])
        let answer = ScriptedAnswer.status(302, headers: ["Set-Cookie: sid=1", "Location: /home", "Content-Length: 0"])
        let server = try ScriptedServer([
            "/login": [answer],
            "/home": [
                .status(302, headers: ["Set-Cookie: more=1", "Location: http://b.test:\(other.port)/"])
            ],
        ])
        storage.set(try cookie("there", domain: "b.test"))
        let request = manager.request(TransferRequest(url: url(server, "/login"), headerFields: [.cookie: "own=1"]))
        #expect(await request.outcome.head?.status == 200)
        #expect(server.requests().map { $0.header("cookie") } == ["own=1", "own=1"])
        #expect(other.requests().map { $0.header("cookie") } == ["there=1"])
        #expect(await manager.request(url(server, "/home")).outcome.head?.status == 200)
        #expect(sorted(server.requests().last?.header("cookie")) == ["more=1", "sid=1"])
    }

    @Test("a challenge's cookies go along with the credential")
    func challenges() async throws {
        let server = try ScriptedServer([
            "/f": [
                .status(401, headers: ["WWW-Authenticate: Basic realm=\"vault\"", "Set-Cookie: nonce=1"]), .status(200),
            ]
        ])
        let request = manager.request(url(server, "/f")).authenticate(user: "u", password: "p")
        #expect(await request.outcome.head?.status == 200)
        #expect(server.requests().map { $0.header("cookie") } == [nil, "nonce=1"])
    }

    @Test("a head's cookies count though the body breaks, and downloads and uploads carry them too")
    func otherTasks() async throws {
        let place = try Place()
        let resource = Resource(size: 100)
        let server = try ScriptedServer([
            "/file": [.serve(resource)], "/put": [.status(204, headers: ["Set-Cookie: b=2"])],
        ])
        let broken = try RawServer([Array("HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 9\r\n\r\nab".utf8)])
        #expect(await manager.request("http://a.test:\(broken.port)/").outcome.error?.code == .truncated)
        let put = TransferRequest(url: url(server, "/put"), method: .put)
        #expect(await manager.upload(.data([1, 2, 3]), with: put).outcome.error == nil)
        let download = manager.download(TransferRequest(url: url(server, "/file")), to: place.target())
        #expect(resource.difference(fromFileAt: try await download.value.path) == nil)
        #expect(server.requests().map { sorted($0.header("cookie")) } == [["a=1"], ["a=1", "b=2"]])
    }

    @Test("100 requests at once that each set a cookie lose none", .timeLimit(.minutes(1)))
    func concurrent() async throws {
        var script: [String: [ScriptedAnswer]] = ["/": [.status(200)]]
        for number in 0..<100 {
            script["/\(number)"] = [
                .status(200, headers: ["c\(number)", "shared"].map { "Set-Cookie: \($0)=\(number); Path=/" })
            ]
        }
        let server = try ScriptedServer(script)
        let requests = (0..<100).map { manager.request(url(server, "/\($0)")).resume() }
        for request in requests { #expect(await request.outcome.error == nil) }
        let names = Set(storage.cookies.map(\.name))
        #expect(names == Set((0..<100).map { "c\($0)" }).union(["shared"]))
        let sent = try #require(try await cookies(to: server))
        #expect(sent.split(separator: ";").count == 101)
    }

    @Test("over HTTP/2 it is the same")
    func http2() async throws {
        let certificates = try await TestCertificates.shared
        let nginx = try await Nginx(
            [
                .custom(
                    "/set",
                    "add_header Set-Cookie 'a=1; Path=/'; add_header Set-Cookie 'b=2; Path=/; Secure'; return 200 'ok';"
                ),
                .custom("/delete", "add_header Set-Cookie 'a=; Max-Age=0; Path=/'; return 200 'ok';"),
                .echo("/echo", headers: ["Cookie"]),
            ], tls: .init(certificate: certificates.wildcard), http2: true)
        let (manager, storage) = try Self.make {
            $0.caFile = certificates.authority.path
            $0.httpVersion = .http2
        }
        func get(_ path: String, _ fields: HTTPFields = [:]) async throws -> String {
            let url = nginx.url(path, host: "a.wild.test")
            let response = await manager.request(TransferRequest(url: url, headerFields: fields))
                .serialized(using: StringSerializer())
            #expect(response.metrics.last?.protocolName == "h2")
            return try response.result.get()
        }
        _ = try await get("/set")
        #expect(try await get("/echo").utf8.count == "GET /echo\nCookie: a=1; b=2\n".utf8.count)
        #expect(try await get("/echo", [.cookie: "own=1"]) == "GET /echo\nCookie: own=1\n")
        _ = try await get("/delete", [.cookie: "own=1"])
        #expect(storage.cookies.map(\.name) == ["b"])
    }

    // MARK: Storages

    @Test("every configuration has a storage of its own, its copies share it, and without one there are no cookies")
    func storages() async throws {
        let one = SessionConfiguration()
        let copy = one
        #expect(one.cookieStorage != nil && one.cookieStorage === copy.cookieStorage)
        #expect(one.cookieStorage !== SessionConfiguration().cookieStorage)
        #expect(SessionConfiguration.default.cookieStorage !== SessionConfiguration.default.cookieStorage)
        #expect(SessionConfiguration.default.credentialStorage !== SessionConfiguration.default.credentialStorage)

        let server = try server(["new=1"])
        let (manager, storage) = try Self.make { $0.cookieStorage = nil }
        for fields: HTTPFields in [[:], [:], [.cookie: "own=1"]] {
            let request = TransferRequest(url: url(server, "/set"), headerFields: fields)
            #expect(await manager.request(request).outcome.error == nil)
        }
        #expect(server.requests().map { $0.header("cookie") } == [nil, nil, "own=1"])
        #expect(storage.cookies.isEmpty)
    }

    @Test("names that differ in case are two cookies, and a name whose prefix promises too much is kept but not sent")
    func names() async throws {
        for name in ["a", "A", "__Secure-x", "__Host-y"] { storage.set(try cookie(name)) }
        let server = try server(["new=1"])
        #expect(try await cookies(to: server, "/set") == "a=1; A=1")
        #expect(storage.cookies.map(\.name) == ["a", "A", "__Secure-x", "__Host-y", "new"])
    }

    @Test("a request has at most 150 cookies, and 8,190 bytes of them")
    func limits() async throws {
        let server = try server([])
        for number in 0..<160 { storage.set(try cookie("c\(number)")) }
        #expect(try #require(try await cookies(to: server)).split(separator: ";").count == 150)
        storage.removeAll()
        for number in 0..<3 { storage.set(try cookie("c\(number)", String(repeating: "v", count: 3000))) }
        #expect(try #require(try await cookies(to: server)).split(separator: ";").count == 2)
    }
}
