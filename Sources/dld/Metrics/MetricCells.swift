import CoreMetrics
import Synchronization

/// The value of a counter.
final class CounterCell: CounterHandler {
    private let count = Atomic<Int64>(0)

    var value: Double { Double(count.load(ordering: .relaxed)) }

    func increment(by amount: Int64) { count.wrappingAdd(amount, ordering: .relaxed) }

    func reset() { count.store(0, ordering: .relaxed) }
}

/// The value of a gauge.
final class GaugeCell: MeterHandler {
    private let bits = Atomic<UInt64>(0)

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    func increment(by amount: Double) {
        var known = bits.load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: known) + amount).bitPattern
            let (isExchanged, found) = bits.weakCompareExchange(expected: known, desired: new, ordering: .relaxed)
            if isExchanged { return }
            known = found
        }
    }

    func decrement(by amount: Double) { increment(by: -amount) }
}

/// The values of a histogram of times. Recording a time is two atomic additions.
final class HistogramCell: TimerHandler {
    /// The maximum number of bounds; further ones are left out.
    static let capacity = 15

    private let bounds: [Double]
    private let limits: [Int64]
    /// The number of times in each bucket alone; the last is for times above all bounds.
    private let counts = InlineArray<16, Atomic<Int64>> { _ in Atomic(0) }
    private let nanoseconds = Atomic<UInt64>(0)

    /// - Parameter bounds: the upper bounds of the buckets in seconds, in ascending order.
    init(bounds: [Double]) {
        self.bounds = Array(bounds.prefix(Self.capacity))
        limits = self.bounds.map { Int64(clamping: UInt64(max(0, $0 * 1_000_000_000).rounded())) }
    }

    func recordNanoseconds(_ duration: Int64) {
        let duration = max(0, duration)
        let index = limits.firstIndex { duration <= $0 } ?? limits.count
        counts[index].wrappingAdd(1, ordering: .relaxed)
        nanoseconds.wrappingAdd(UInt64(duration), ordering: .relaxed)
    }

    var value: HistogramValue {
        var count: Int64 = 0
        var buckets: [HistogramValue.Bucket] = []
        for (index, bound) in bounds.enumerated() {
            count &+= counts[index].load(ordering: .relaxed)
            buckets.append(.init(bound: bound, count: count))
        }
        count &+= counts[bounds.count].load(ordering: .relaxed)
        return HistogramValue(
            buckets: buckets, count: count, sum: Double(nanoseconds.load(ordering: .relaxed)) / 1_000_000_000)
    }
}
