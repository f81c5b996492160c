import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: cookies", .timeLimit(.minutes(1)))
struct HTTPBinCookieTests {
    let client: Client

    init() async throws {
        client = try await Client()
    }

    /// Returns the cookies that the server receives.
    private func cookies(
        _ client: Client? = nil, _ path: String = "/cookies", _ fields: HTTPFields = [:], storage: CookieStorage? = nil
    ) async throws -> [String: String] {
        let client = client ?? self.client
        var request = client.request(path, .get, fields)
        request.cookies = storage
        let echo = try await client.manager.request(request).validate().decoded(as: JSONValue.self)
        return echo["cookies"]?.members.compactMapValues(\.text) ?? [:]
    }

    @Test("a cookie that a server sets is sent from then on", arguments: [("a", "b"), ("name", "1-2_3.4")])
    func set(_ name: String, _ value: String) async throws {
        #expect(try await cookies(nil, "/cookies/set/\(name)/\(value)") == [name: value])
        #expect(try await cookies() == [name: value])
        let stored = try #require(client.manager.session.configuration.cookieStorage?.cookies.first)
        #expect(stored.name == name && stored.value == value && stored.domain == "127.0.0.1" && stored.path == "/")
    }

    @Test("several cookies are set by one response, and replaced by the next")
    func several() async throws {
        #expect(try await cookies(nil, "/cookies/set?a=1&b=2") == ["a": "1", "b": "2"])
        #expect(try await cookies(nil, "/cookies/set?b=3&c=4") == ["a": "1", "b": "3", "c": "4"])
    }

    @Test("a cookie that the server deletes is not sent any more")
    func deleted() async throws {
        _ = try await cookies(nil, "/cookies/set?a=1&b=2")
        #expect(try await cookies(nil, "/cookies/delete?a") == ["b": "2"])
    }

    @Test("a cookie of the program is sent")
    func own() async throws {
        let storage = try #require(client.manager.session.configuration.cookieStorage)
        storage.set(try #require(Cookie(name: "a", value: "b", domain: "127.0.0.1")))
        #expect(try await cookies() == ["a": "b"])
    }

    @Test(
        "a cookie is sent only where it belongs",
        arguments: [
            // A plain connection to the local host counts as secure.
            ("127.0.0.1", "/", false, true), ("127.0.0.1", "/", true, true), ("127.0.0.1", "/other", false, false),
            ("localhost", "/", false, false), ("127.0.0.1", "/cookies", false, true),
        ])
    func place(_ domain: String, _ path: String, _ isSecure: Bool, _ isSent: Bool) async throws {
        let storage = try #require(client.manager.session.configuration.cookieStorage)
        storage.set(try #require(Cookie(name: "a", value: "b", domain: domain, path: path, isSecure: isSecure)))
        #expect(try await cookies() == (isSent ? ["a": "b"] : [:]))
    }

    @Test("a request with its own Cookie field sends only that")
    func field() async throws {
        _ = try await cookies(nil, "/cookies/set/a/b")
        #expect(try await cookies(nil, "/cookies", [.cookie: "c=d"]) == ["c": "d"])
    }

    @Test("without a storage, cookies are neither stored nor sent")
    func withoutStorage() async throws {
        let client = try await Client { $0.cookieStorage = nil }
        #expect(try await cookies(client, "/cookies/set/a/b") == [:])
    }

    @Test("a session may store cookies without sending them")
    func notSent() async throws {
        let client = try await Client { $0.httpShouldSetCookies = false }
        #expect(try await cookies(client, "/cookies/set/a/b") == [:])
        #expect(client.manager.session.configuration.cookieStorage?.cookies.count == 1)
    }

    @Test("a storage that accepts nothing still sends what the program stored")
    func neverAccepted() async throws {
        let storage = CookieStorage(acceptPolicy: .never)
        storage.set(try #require(Cookie(name: "own", value: "1", domain: "127.0.0.1")))
        let client = try await Client { $0.cookieStorage = storage }
        #expect(try await cookies(client, "/cookies/set/a/b") == ["own": "1"])
    }

    @Test("two sessions share cookies only if they share a storage", arguments: [true, false])
    func shared(isShared: Bool) async throws {
        let storage = client.manager.session.configuration.cookieStorage
        let other = try await Client { if isShared { $0.cookieStorage = storage } }
        _ = try await cookies(nil, "/cookies/set/a/b")
        #expect(try await cookies(other) == (isShared ? ["a": "b"] : [:]))
    }

    @Test("a request may have a storage of its own")
    func ownStorage() async throws {
        let storage = CookieStorage()
        #expect(try await cookies(nil, "/cookies/set/a/b", storage: storage) == ["a": "b"])
        #expect(try await cookies() == [:])
        #expect(try await cookies(storage: storage) == ["a": "b"])
    }

    @Test("the cookies of one server are not sent to another")
    func otherServer() async throws {
        _ = try await cookies(nil, "/cookies/set/a/b")
        let there = client.server.url("/cookies", host: "localhost")
        #expect(try await client.manager.request(there).decoded(as: JSONValue.self)["cookies"]?.members.isEmpty == true)
    }
}
