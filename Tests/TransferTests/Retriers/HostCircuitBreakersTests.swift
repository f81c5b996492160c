import Testing

@testable import Transfer

@Suite("Hosts that are left alone")
struct HostCircuitBreakersTests {
    private let policy = RetryPolicy(baseDelay: 1000, maximumDelay: 8000)
    private let host = "http://a:80"

    private func opened(at now: Int64 = 0) -> HostCircuitBreakers {
        var standings = HostCircuitBreakers(policy: policy)
        for _ in 0..<HostCircuitBreakers.failureLimit { _ = standings.record(.failed, of: host, now: now) }
        return standings
    }

    @Test("four failures in a row change nothing, the fifth opens the breaker for the base delay")
    func opens() {
        var standings = HostCircuitBreakers(policy: policy)
        for _ in 0..<4 {
            #expect(standings.record(.failed, of: host, now: 0) == false)
            #expect(standings.admit(to: host, now: 0) == .go)
        }
        #expect(standings.record(.failed, of: host, now: 0) == true)
        #expect(standings.admit(to: host, now: 0) == .wait(milliseconds: 1000))
        #expect(standings.admit(to: host, now: 999) == .wait(milliseconds: 1))
        #expect(standings.hold(of: host, now: 400) == 600)
        #expect(standings.admit(to: "http://b:80", now: 0) == .go)
    }

    @Test("an answer between failures starts the count anew")
    func interrupted() {
        var standings = HostCircuitBreakers(policy: policy)
        for number in 0..<20 {
            let outcome: HostCircuitBreakers.Outcome = number % 5 == 4 ? .alive : .failed
            _ = standings.record(outcome, of: host, now: 0)
        }
        #expect(standings.admit(to: host, now: 0) == .go)
        #expect(standings.count == 0)
    }

    @Test("failures of one source in a row count as one, those of several each, and a failed probe counts anyway")
    func sources() {
        var standings = HostCircuitBreakers(policy: policy)
        for _ in 0..<20 { #expect(standings.record(.failed, of: host, bySource: 7, now: 0) == false) }
        #expect(standings.admit(to: host, now: 0) == .go)
        for source in [8, 7, 8] as [Int64] {
            #expect(standings.record(.failed, of: host, bySource: source, now: 0) == false)
        }
        #expect(standings.record(.failed, of: host, bySource: 7, now: 0) == true)
        #expect(standings.admit(to: host, now: 1000) == .go)
        #expect(standings.record(.failed, of: host, bySource: 7, now: 1000) == true)
        #expect(standings.admit(to: host, now: 1000) == .wait(milliseconds: 2000))
    }

    @Test("a requested hold can be ended, and the count of failures stays")
    func endedHold() {
        var standings = HostCircuitBreakers(policy: policy)
        for _ in 0..<4 { _ = standings.record(.failed, of: host, retryAfter: 100, now: 0) }
        standings.endRequestedHold(of: host)
        #expect(standings.admit(to: host, now: 0) == .go)
        #expect(standings.record(.failed, of: host, now: 0) == true)
        var others = HostCircuitBreakers(policy: policy)
        others.hold(host, milliseconds: 100, now: 0)
        others.endRequestedHold(of: host)
        #expect(others.count == 0)
    }

    @Test("after the delay one request probes, the others wait for it")
    func probes() {
        var standings = opened()
        #expect(standings.admit(to: host, now: 1000) == .go)
        for _ in 0..<3 {
            #expect(
                standings.admit(to: host, now: 1000)
                    == .wait(milliseconds: HostCircuitBreakers.probeTime))
        }
        #expect(standings.record(.alive, of: host, now: 1200) == true)
        #expect(standings.admit(to: host, now: 1200) == .go)
        #expect(standings.admit(to: host, now: 1200) == .go)
    }

    @Test("each probe that fails doubles the delay, up to the longest")
    func doubles() {
        var standings = opened()
        var now: Int64 = 0
        for delay in [1000, 2000, 4000, 8000, 8000] as [Int64] {
            #expect(standings.admit(to: host, now: now) == .wait(milliseconds: delay))
            now += delay
            #expect(standings.admit(to: host, now: now) == .go)
            #expect(standings.record(.failed, of: host, now: now) == true)
        }
        #expect(standings.record(.alive, of: host, now: now) == true)
        #expect(standings.count == 0)
    }

    @Test("failures of requests that were on their way already do not lengthen the delay")
    func late() {
        var standings = opened()
        for _ in 0..<100 { #expect(standings.record(.failed, of: host, now: 500) == false) }
        #expect(standings.admit(to: host, now: 500) == .wait(milliseconds: 500))
        for _ in 0..<100 { #expect(standings.record(.failed, of: host, now: 1500) == false) }
        #expect(standings.admit(to: host, now: 1500) == .go)
    }

    @Test("a probe that ends without a word leaves its place to another")
    func unknown() {
        var standings = opened()
        #expect(standings.admit(to: host, now: 1000) == .go)
        #expect(standings.record(.unknown, of: host, now: 1100) == true)
        #expect(standings.admit(to: host, now: 1100) == .go)
        #expect(standings.record(.unknown, of: "http://b:80", now: 1100) == false)
    }

    @Test("a name that does not exist says nothing of a host that others of its tasks should wait for")
    func unknownName() {
        #expect(HostCircuitBreakers.Outcome(TransferError(.unknownHost, "m")) == .unknown)
        #expect(HostCircuitBreakers.Outcome(TransferError(.cannotConnect, "m")) == .failed)
    }

    @Test("a probe that goes on and on lets others follow, and one failure opens the breaker again, for longer")
    func longProbe() {
        var standings = opened()
        #expect(standings.admit(to: host, now: 1000) == .go)
        let later = 1000 + HostCircuitBreakers.probeTime
        #expect(standings.admit(to: host, now: later) == .go)
        #expect(standings.admit(to: host, now: later) == .go)
        #expect(standings.record(.failed, of: host, now: later) == true)
        #expect(standings.admit(to: host, now: later) == .wait(milliseconds: 2000))
    }

    @Test("a probe that brings bytes lets others follow at once, and one failure opens the breaker again, for longer")
    func probeWithBytes() {
        var standings = opened()
        standings.recordBytes(of: host)
        #expect(standings.admit(to: host, now: 500) == .wait(milliseconds: 500))
        #expect(standings.admit(to: host, now: 1000) == .go)
        #expect(standings.admit(to: host, now: 1001) != .go)
        standings.recordBytes(of: host)
        #expect(standings.admit(to: host, now: 1001) == .go)
        #expect(standings.admit(to: host, now: 1001) == .go)
        #expect(standings.record(.failed, of: host, now: 1002) == true)
        #expect(standings.admit(to: host, now: 1002) == .wait(milliseconds: 2000))
    }

    @Test("Retry-After holds the whole host, alive or not, for a day at most")
    func retryAfter() {
        var standings = HostCircuitBreakers(policy: policy)
        _ = standings.record(.alive, of: host, retryAfter: 7, now: 0)
        #expect(standings.admit(to: host, now: 1) == .wait(milliseconds: 6999))
        _ = standings.record(.failed, of: host, retryAfter: 3, now: 0)
        #expect(standings.hold(of: host, now: 0) == 7000)
        #expect(standings.admit(to: host, now: 7000) == .go)
        _ = standings.record(.failed, of: host, retryAfter: .max, now: 0)
        #expect(standings.hold(of: host, now: 0) == 86_400_000)
        _ = standings.record(.failed, of: "http://c:80", retryAfter: .min, now: 0)
        #expect(standings.hold(of: "http://c:80", now: 0) == 0)
    }

    @Test("an answer from elsewhere on the host does not end a hold that the server asked for")
    func heldOn() {
        var standings = HostCircuitBreakers(policy: policy)
        _ = standings.record(.failed, of: host, retryAfter: 5, now: 0)
        _ = standings.record(.alive, of: host, now: 1000)
        #expect(standings.admit(to: host, now: 1000) == .wait(milliseconds: 4000))
    }

    @Test("however many hosts fail, no more than the limit are remembered, and those that are free go first")
    func bounded() {
        var standings = opened(at: 1_000_000)
        for number in 0..<(3 * HostCircuitBreakers.maximumHosts) {
            _ = standings.record(.failed, of: "http://h\(number):80", now: 1_000_000)
            #expect(standings.count <= HostCircuitBreakers.maximumHosts)
        }
        #expect(standings.admit(to: host, now: 1_000_000) == .wait(milliseconds: 1000))
        for number in 0..<(2 * HostCircuitBreakers.maximumHosts) {
            _ = standings.record(
                .failed, of: "http://k\(number):80", retryAfter: Int64(1000 + number), now: 1_000_000)
        }
        #expect(standings.count <= HostCircuitBreakers.maximumHosts)
    }

    @Test("policies at the ends of the numbers do not end the process", arguments: [Int64.min, -1, 0, .max])
    func extremes(delay: Int64) {
        for maximum in [Int64.min, -1, 0, .max] {
            var standings = HostCircuitBreakers(policy: RetryPolicy(baseDelay: delay, maximumDelay: maximum))
            for now in 0..<100 as Range<Int64> {
                _ = standings.record(.failed, of: host, now: now)
                _ = standings.admit(to: host, now: now)
            }
        }
    }
}
