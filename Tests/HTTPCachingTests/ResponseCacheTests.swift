import TestSupport
import Testing

@testable import HTTPCaching
@testable import HTTPMessages

@Suite("Responses in memory")
struct ResponseCacheTests {
    private func response(_ size: Int, mark: UInt8 = 0) -> CachedResponse {
        CachedResponse(
            head: head(200), body: Array(repeating: mark, count: size), requestedAt: 0, storedAt: 0, varying: [])
    }

    @Test("what was stored comes back, a second one takes the place of the first")
    func stores() {
        let cache = ResponseCache(capacity: 100_000)
        #expect(cache.response(for: "a") == nil)
        #expect(cache.store(response(10, mark: 1), for: "a"))
        #expect(cache.store(response(20, mark: 2), for: "a"))
        #expect(cache.response(for: "a")?.body == Array(repeating: 2, count: 20))
        #expect(cache.count == 1)
        cache.remove(for: "a")
        cache.remove(for: "never")
        #expect(cache.count == 0 && cache.size == 0)
    }

    @Test("the one used the longest ago goes first, and what is asked for counts as used")
    func leastRecent() {
        let cache = ResponseCache(capacity: 16_000)
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] { #expect(cache.store(response(1700), for: name)) }
        #expect(cache.response(for: "a") != nil)
        cache.store(response(1700), for: "i")
        #expect(cache.response(for: "b") == nil)
        #expect(cache.response(for: "a") != nil)
        cache.store(response(1700), for: "j")
        #expect(cache.response(for: "c") == nil)
        #expect(cache.size <= cache.capacity)
    }

    @Test("a response over an eighth of the capacity is not kept, nor is the one that it would replace")
    func tooLarge() {
        let cache = ResponseCache(capacity: 8000)
        #expect(cache.store(response(500), for: "a"))
        #expect(!cache.store(response(1000), for: "a"))
        #expect(cache.response(for: "a") == nil)
        #expect(!ResponseCache(capacity: 0).store(response(0), for: "a"))
        #expect(!ResponseCache(capacity: -5).store(response(0), for: "a"))
    }

    @Test("a long name counts too")
    func longName() {
        let cache = ResponseCache(capacity: 8000)
        #expect(!cache.store(response(0), for: String(repeating: "x", count: 1000)))
    }

    @Test("many stores, uses and removals leave the sums right")
    func sums() {
        let cache = ResponseCache(capacity: 50_000)
        var seed: UInt64 = 1
        for _ in 0..<20_000 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let name = "n\((seed >> 33) % 50)"
            switch (seed >> 50) % 4 {
            case 0: cache.remove(for: name)
            case 1: _ = cache.response(for: name)
            default: cache.store(response(Int((seed >> 20) % 7000)), for: name)
            }
            #expect(cache.size <= cache.capacity)
        }
        let left = (0..<50).compactMap { index in cache.response(for: "n\(index)").map { ("n\(index)", $0) } }
        #expect(left.count == cache.count)
        #expect(left.reduce(0) { $0 + $1.1.size + 2 * $1.0.utf8.count } == cache.size)
        for (name, _) in left { cache.remove(for: name) }
        #expect(cache.size == 0)
        cache.store(response(1), for: "a")
        cache.removeAll()
        #expect(cache.count == 0 && cache.size == 0)
    }
}
