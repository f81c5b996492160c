import ControlProtocol
import CoreMetrics
import Testing

@testable import dld

@Suite("The back end of the metrics")
struct MetricsRegistryTests {
    private static let families = [
        MetricFamily("c_total", .counter, "C."), MetricFamily("g", .gauge, "G."),
        MetricFamily("t_seconds", .histogram, "T.", bounds: [0.001, 1]), MetricFamily("unused", .gauge, "U."),
    ]

    @Test("series of the same labels are one, whatever the order; unknown names and other kinds are left out")
    func series() throws {
        let registry = MetricsRegistry(Self.families)
        Counter(label: "c_total", dimensions: [("b", "2"), ("a", "1")], factory: registry).increment(by: 2)
        Counter(label: "c_total", dimensions: [("a", "1"), ("b", "2")], factory: registry).increment()
        Counter(label: "c_total", dimensions: [("a", "0")], factory: registry).increment(by: 5)
        Meter(label: "g", factory: registry).set(1.5)
        Counter(label: "g", factory: registry).increment()
        Counter(label: "other_total", factory: registry).increment()
        let readings = registry.read()
        #expect(readings.map(\.family.name) == ["c_total", "g"])
        #expect(
            readings.first?.samples == [
                MetricSample(labels: [.init(name: "a", value: "0")], value: .number(5)),
                MetricSample(labels: [.init(name: "a", value: "1"), .init(name: "b", value: "2")], value: .number(3)),
            ])
        #expect(readings.last?.samples == [MetricSample(labels: [], value: .number(1.5))])
    }

    @Test("nothing is lost when many threads record and read")
    func concurrency() async {
        let registry = MetricsRegistry(Self.families)
        let (threads, times) = (8, 10_000)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<threads {
                group.addTask {
                    let counter = Counter(label: "c_total", dimensions: [("l", "\(thread % 2)")], factory: registry)
                    let timer = CoreMetrics.Timer(label: "t_seconds", factory: registry)
                    let meter = Meter(label: "g", factory: registry)
                    for step in 0..<times {
                        counter.increment()
                        timer.recordNanoseconds(step % 2 == 0 ? 1_000 : 500_000_000)
                        meter.increment(by: 1.0)
                        if step % 1_000 == 0 { _ = registry.read() }
                    }
                }
            }
        }
        let status = DaemonStatus.Metrics(registry.read())
        let all = threads * times
        #expect(
            status.values
                == [#"c_total{l="0"}"#: Double(all / 2), #"c_total{l="1"}"#: Double(all / 2), "g": Double(all)])
        #expect(status.histograms["t_seconds"]?.count == Int64(all))
        #expect(
            status.histograms["t_seconds"]?.buckets
                == [.init(le: 0.001, count: Int64(all / 2)), .init(le: 1, count: Int64(all))])
        let sum = Double(all / 2) * 0.500_001
        #expect(abs((status.histograms["t_seconds"]?.sum ?? 0) - sum) < 0.001)
    }

    @Test("values beyond all bounds do not trap")
    func extremes() {
        let cell = HistogramCell(bounds: (0..<40).map { Double($0) })
        for duration in [Int64.min, -1, 0, 1, .max, .max, .max] { cell.recordNanoseconds(duration) }
        #expect(cell.value.buckets.count == HistogramCell.capacity && cell.value.count == 7)
        #expect(cell.value.buckets.first?.count == 3)
        let gauge = GaugeCell()
        gauge.set(Int64.max)
        gauge.decrement(by: .infinity)
        #expect(gauge.value == -.infinity)
    }
}
