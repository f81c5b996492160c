import TestSupport
import Testing

@testable import Transfer

@Suite("How fast a connection is")
struct ThroughputMeterTests {
    /// Records `rate` bytes per second in steps of 50 ms.
    private func steady(_ pace: inout ThroughputMeter, rate: Double, from: Int64, until: Int64, bytes: inout Double) {
        for time in stride(from: from, through: until, by: 50) {
            bytes += rate / 20
            pace.record(Int64(bytes), at: time)
        }
    }

    @Test("nothing is known before two looks, and what lies closer together than 20 ms says nothing")
    func beginning() {
        var pace = ThroughputMeter()
        #expect(pace.rate == 0)
        pace.record(5_000_000, at: 1_000)
        #expect(pace.rate == 0)
        pace.record(9_000_000, at: 1_019)
        #expect(pace.rate == 0)
        pace.record(6_000_000, at: 2_000)
        #expect(pace.rate == 1_000_000)
    }

    @Test("a steady rate is told as it is")
    func steadyRate() {
        var (pace, bytes) = (ThroughputMeter(), 0.0)
        steady(&pace, rate: 2e6, from: 0, until: 3_000, bytes: &bytes)
        #expect(abs(pace.rate - 2e6) < 1)
    }

    @Test("two seconds after it slowed down or stalled the old rate hardly counts", arguments: [0, 1e5, 1e7])
    func change(to rate: Double) {
        var (pace, bytes) = (ThroughputMeter(), 0.0)
        steady(&pace, rate: 2e6, from: 0, until: 1_000, bytes: &bytes)
        steady(&pace, rate: rate, from: 1_050, until: 3_500, bytes: &bytes)
        #expect(abs(pace.rate - rate) < 0.05 * max(2e6, rate))
    }

    @Test("bytes that come once a second have the rate of their seconds, at whatever moment it is asked for")
    func bursts() {
        var pace = ThroughputMeter()
        for time in stride(from: Int64(0), through: 12_000, by: 50) {
            pace.record((time / 1_000 + 1) * 200_000, at: time + 1)
            if time > 4_000 { #expect(pace.rate > 1.2e5 && pace.rate < 3e5) }
        }
        // A stall is no pause between two bursts.
        for time in stride(from: Int64(12_050), through: 17_000, by: 50) { pace.record(13 * 200_000, at: time) }
        #expect(pace.rate < 2e4)
    }

    @Test("the time in which an answer is waited for does not count")
    func pause() {
        var (pace, bytes) = (ThroughputMeter(), 0.0)
        steady(&pace, rate: 2e6, from: 0, until: 1_000, bytes: &bytes)
        pace.pause()
        pace.record(Int64(bytes), at: 60_000)
        #expect(abs(pace.rate - 2e6) < 1)
        pace.record(Int64(bytes) + 100_000, at: 60_050)
        #expect(abs(pace.rate - 2e6) < 1)
    }

    @Test("the rate lies between the slowest and the fastest that was seen", arguments: 1...50 as ClosedRange<UInt64>)
    func bounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var pace = ThroughputMeter()
        var (time, bytes, slowest, fastest) = (Int64(0), Int64(0), Double.infinity, 0.0)
        pace.record(0, at: 0)
        for _ in 0..<200 {
            let elapsed = Int64.random(in: 20...5_000, using: &generator)
            let count = Int64.random(in: 1...10_000_000, using: &generator)
            time += elapsed
            bytes += count
            let present = Double(count) / Double(elapsed) * 1000
            (slowest, fastest) = (min(slowest, present), max(fastest, present))
            pace.record(bytes, at: time)
            #expect(pace.rate >= slowest * 0.999 && pace.rate <= fastest * 1.001)
        }
    }
}
