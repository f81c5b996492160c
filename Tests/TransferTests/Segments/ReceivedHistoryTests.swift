import Testing

@testable import Transfer

@Suite("Rates of the last seconds")
struct ReceivedHistoryTests {
    private func history(_ milliseconds: Int64, _ bytes: (Int64) -> Int64) -> ReceivedHistory {
        var history = ReceivedHistory()
        for now in stride(from: 0, through: milliseconds, by: 50) { history.record(bytes(now), at: now) }
        return history
    }

    @Test("an even line has its rate over any part of the time")
    func even() throws {
        let history = history(2_000) { $0 * 1_000 }
        for (from, end) in [(0, 2_000), (500, 600), (1_025, 1_999)] as [(Int64, Int64)] {
            let measure = try #require(history.measure(from: from, to: end))
            #expect(abs(measure.rate - 1e6) < 1 && measure.error <= 0.15 && !measure.isBursty)
        }
        #expect(history.measure(from: 500, to: 550) == nil)
        #expect(history.measure(from: 0, to: 2_001) == nil)
    }

    @Test("bursts are seen as such, and their rate is taken over whole seconds")
    func bursts() throws {
        let history = history(4_500) { ($0 / 1_000 + 1) * 100_000 }
        let measure = try #require(history.measure(from: 0, to: 4_500))
        #expect(measure.isBursty && abs(measure.rate - 1e5) < 1e3)
    }

    @Test("a line that varies has an error that tells of it")
    func varying() throws {
        let history = history(2_000) { $0 * 1_000 + ($0 / 200 % 2 == 0 ? 0 : 50_000) }
        let measure = try #require(history.measure(from: 0, to: 2_000))
        #expect(measure.error > 0.02 && measure.error < 0.5)
    }

    @Test("what does not come has no rate, and a clock that stands still is no harm")
    func nothing() throws {
        var history = history(1_000) { _ in 7 }
        #expect(try #require(history.measure(from: 0, to: 1_000)).rate == 0)
        history.record(9, at: 1_000)
        history.record(9, at: 900)
        #expect(try #require(history.measure(from: 0, to: 1_000)).rate == 0)
        history.removeAll()
        #expect(history.measure(from: 0, to: 1_000) == nil)
    }
}
