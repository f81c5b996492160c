import FoundationEssentials
import HTTPTypes
import TestSupport
import Testing
import Transfer

@Suite("httpbin: the response cache", .timeLimit(.minutes(1)))
struct HTTPBinCacheTests {
    let client: Client
    private let cache = ResponseCache(capacity: 16 << 20)

    init() async throws {
        let cache = cache
        client = try await Client { $0.responseCache = cache }
    }

    private func get(
        _ path: String, _ policy: RequestCachePolicy? = nil, _ fields: HTTPFields = [:]
    ) async -> DataResponse<JSONValue> {
        var request = client.request(path, .get, fields)
        request.cachePolicy = policy
        return await client.manager.request(request).serialized(using: JSONSerializer())
    }

    private static let fresh = "/response-headers?Cache-Control=max-age%3D600"
    private static let stale = "/response-headers?Cache-Control=max-age%3D0"

    // MARK: What is stored

    @Test("a fresh response is used again without the server", arguments: ["/cache/600", fresh])
    func hit(_ path: String) async throws {
        let first = await get(path)
        let second = await get(path)
        #expect(!first.isFromCache && second.isFromCache && second.data == first.data && cache.count == 1)
        #expect(second.statuses == [200] && second.metrics.last?.remoteAddress == nil)
    }

    @Test("without a cache, each request goes to the server")
    func withoutCache() async throws {
        let client = try await Client()
        for _ in 0..<2 {
            #expect(await client.manager.request(client.url("/cache/600")).outcome.isFromCache == false)
        }
    }

    @Test(
        "the Cache-Control of the response decides whether it is used again",
        arguments: [
            ("max-age=600", true), ("public, max-age=600", true), ("private, max-age=600", true), ("max-age=0", false),
            ("no-store", false), ("no-store, max-age=600", false), ("no-cache", false),
            ("max-age=600, no-cache", false),
            ("max-age=600, must-revalidate", true),
        ])
    func cacheControl(_ value: String, _ isUsed: Bool) async throws {
        let path = "/response-headers?Cache-Control=\(segment(value))"
        _ = await get(path)
        #expect(await get(path).isFromCache == isUsed)
    }

    @Test("each URL has a response of its own")
    func urls() async throws {
        _ = await get(Self.fresh + "&a=1")
        #expect(await get(Self.fresh + "&a=2").isFromCache == false)
        #expect(await get(Self.fresh + "&a=1").isFromCache)
        #expect(cache.count == 2)
    }

    @Test("a response to another method is not stored", arguments: [.post, .head] as [HTTPRequest.Method])
    func methods(_ method: HTTPRequest.Method) async throws {
        for _ in 0..<2 {
            #expect(await client.manager.request(client.request(Self.fresh, method)).outcome.isFromCache == false)
        }
        #expect(cache.count == 0)
    }

    @Test("a POST that succeeds removes the stored response")
    func invalidated() async throws {
        _ = await get(Self.fresh)
        _ = await client.manager.request(client.request(Self.fresh, .post)).outcome
        #expect(await get(Self.fresh).isFromCache == false)
    }

    @Test("a response that varies with a field is used only for the same value")
    func vary() async throws {
        let path = Self.fresh + "&Vary=Accept-Language"
        _ = await get(path, nil, [.acceptLanguage: "de"])
        #expect(await get(path, nil, [.acceptLanguage: "de"]).isFromCache)
        #expect(await get(path, nil, [.acceptLanguage: "en"]).isFromCache == false)
    }

    @Test("a response for one login is not used for another")
    func logins() async throws {
        _ = await get(Self.fresh, nil, [.authorization: "Bearer a"])
        #expect(await get(Self.fresh, nil, [.authorization: "Bearer b"]).isFromCache == false)
    }

    @Test("a response that is larger than an eighth of the cache is not stored")
    func tooLarge() async throws {
        let small = ResponseCache(capacity: 4096)
        let client = try await Client { $0.responseCache = small }
        for _ in 0..<2 {
            let url = client.url(Self.fresh + "&a=" + String(repeating: "a", count: 1000))
            #expect(await client.manager.request(url).outcome.isFromCache == false)
        }
        #expect(small.count == 0)
    }

    @Test("downloads do not use the cache")
    func downloads() async throws {
        _ = await get(Self.fresh)
        let directory = try TemporaryDirectory()
        let outcome = await client.manager.download(client.url(Self.fresh), to: directory.file("file")).outcome
        #expect(outcome.error == nil && outcome.metrics.last?.isFromCache == false)
    }

    @Test("a cache that is emptied has no response any more", arguments: [true, false])
    func emptied(all: Bool) async throws {
        _ = await get(Self.fresh)
        if all { cache.removeAll() } else { cache.remove(for: client.url(Self.fresh)) }
        #expect(cache.count == 0 && cache.size == 0)
        #expect(await get(Self.fresh).isFromCache == false)
    }

    // MARK: Validation by the server

    @Test("a stale response is used after the server has confirmed it", arguments: ["/cache", "/etag/abc"])
    func confirmed(_ path: String) async throws {
        let first = await get(path)
        let second = await get(path)
        #expect(second.isFromCache && second.status == 200 && second.data == first.data)
        #expect(second.statuses.contains(304))
    }

    @Test("the fields that confirm a response are sent by the cache alone")
    func conditions() async throws {
        let name = try #require(HTTPField.Name("If-None-Match"))
        _ = await get("/etag/abc")
        let own = await get("/etag/abc", nil, [name: "other"])
        #expect(own.status == 200 && !own.isFromCache && own.value?.field("If-None-Match") == "other")
        #expect(await get("/etag/abc", nil, [name: "abc"]).status == 304)
    }

    @Test(
        "the Cache-Control of the request restricts the cache",
        arguments: [
            ("no-cache", false), ("min-fresh=9999", false), ("no-store", false), ("max-age=600", true),
            ("only-if-cached", true),
        ])
    func requestControl(_ value: String, _ isUsed: Bool) async throws {
        _ = await get(Self.fresh)
        #expect(await get(Self.fresh, nil, [.cacheControl: value]).isFromCache == isUsed)
    }

    // MARK: Policies

    @Test(
        "the policy of the request decides where its response comes from",
        arguments: [
            (.useProtocolCachePolicy, fresh, true), (.useProtocolCachePolicy, stale, false),
            (.reloadIgnoringLocalCacheData, fresh, false), (.reloadIgnoringLocalCacheData, stale, false),
            (.returnCacheDataElseLoad, fresh, true), (.returnCacheDataElseLoad, stale, true),
            (.returnCacheDataDontLoad, fresh, true), (.returnCacheDataDontLoad, stale, true),
            (.reloadRevalidatingCacheData, fresh, false),
        ] as [(RequestCachePolicy, String, Bool)])
    func policy(_ policy: RequestCachePolicy, _ path: String, _ isUsed: Bool) async throws {
        _ = await get(path)
        let response = await get(path, policy)
        #expect(response.error == nil && response.isFromCache == isUsed)
    }

    @Test(
        "without a stored response, the server is asked unless the policy forbids it",
        arguments: [
            .useProtocolCachePolicy, .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad,
            .reloadRevalidatingCacheData, .returnCacheDataDontLoad,
        ] as [RequestCachePolicy])
    func policyWithoutResponse(_ policy: RequestCachePolicy) async throws {
        let response = await get(Self.fresh, policy)
        #expect(response.code == (policy == .returnCacheDataDontLoad ? .notCached : nil) && !response.isFromCache)
        #expect(response.metrics.exchanges.isEmpty == (policy == .returnCacheDataDontLoad))
    }

    @Test("the session's policy counts for requests without one")
    func sessionPolicy() async throws {
        let cache = cache
        let client = try await Client {
            $0.responseCache = cache
            $0.requestCachePolicy = .returnCacheDataDontLoad
        }
        #expect(await client.manager.request(client.url(Self.fresh)).outcome.code == .notCached)
        var request = client.request(Self.fresh)
        request.cachePolicy = .useProtocolCachePolicy
        #expect(await client.manager.request(request).outcome.error == nil)
        #expect(await client.manager.request(client.url(Self.fresh)).outcome.isFromCache)
    }

    // MARK: Closures

    @Test(
        "a closure decides whether a response is stored", arguments: ["session", "sessionLater", "request"],
        [true, false])
    func closure(_ place: String, isStored: Bool) async throws {
        let request = client.manager.request(client.url(Self.fresh))
        switch place {
        case "session": client.manager.delegate.dataTaskWillCacheResponse = { isStored ? $1 : nil }
        case "sessionLater":
            client.manager.delegate.dataTaskWillCacheResponseWithCompletion = { _, response, completion in
                Task.detached { completion(isStored ? response : nil) }
            }
        default:
            let delegate = try #require(request.delegate as? DataTaskDelegate)
            delegate.dataTaskWillCacheResponse = { isStored ? $1 : nil }
        }
        #expect(await request.outcome.error == nil && cache.count == (isStored ? 1 : 0))
    }

    @Test("validators and serializers judge a stored response like any other")
    func judged() async throws {
        _ = await get(Self.fresh)
        let outcome = await client.manager.request(client.url(Self.fresh)).validate(contentType: ["text/html"]).outcome
        #expect(outcome.isFromCache && outcome.code == .unacceptableContentType)
        #expect(await get(Self.fresh).value?["Cache-Control"]?.text == "max-age=600")
    }
}
