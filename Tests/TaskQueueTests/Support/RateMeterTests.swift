import Testing

@testable import TaskQueue

@Suite("Rates")
struct RateMeterTests {
    @Test("a rate is known once two counts lie apart")
    func beginning() {
        var meter = RateMeter()
        #expect(meter.rate(5, at: 0) == nil)
        meter.record(0, at: 1_000)
        #expect(meter.rate(100, at: 1_100) == nil)
        #expect(meter.rate(100, at: 1_200) == 500)
    }

    @Test("only the last seconds count")
    func window() {
        var meter = RateMeter()
        for second in 0...20 { meter.record(Int64(min(second, 10)) * 1_000, at: Int64(second) * 1_000) }
        #expect(meter.rate(10_000, at: 20_000) == 0)
        meter.record(16_000, at: 21_000)
        #expect(meter.rate(16_000, at: 21_000) == 1_200)
    }

    @Test("many counts close together are one, and a count that falls is none")
    func close() {
        var meter = RateMeter()
        for millisecond in 0..<200 { meter.record(Int64(millisecond), at: Int64(millisecond)) }
        #expect(meter.rate(1_000, at: 1_000) == 1_000)
        #expect(meter.rate(-5, at: 1_000) == 0)
    }
}
