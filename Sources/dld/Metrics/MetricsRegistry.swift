import CoreMetrics
import Synchronization

/// The back end of swift-metrics: it keeps the values of the metrics that ``MetricFamily`` lists.
///
/// The lock is taken when a series is created or all are read, never when a value is recorded.
final class MetricsRegistry: MetricsFactory {
    /// The registry of this process.
    static let shared = MetricsRegistry(MetricFamily.all)

    private enum Cell {
        case counter(CounterCell)
        case gauge(GaugeCell)
        case histogram(HistogramCell)

        var value: MetricSample.Value {
            switch self {
            case .counter(let cell): .number(cell.value)
            case .gauge(let cell): .number(cell.value)
            case .histogram(let cell): .histogram(cell.value)
            }
        }
    }

    private let families: [MetricFamily]
    private let familiesByName: [String: MetricFamily]
    private let cells = Mutex<[String: [[MetricSample.Label]: Cell]]>([:])

    init(_ families: [MetricFamily]) {
        self.families = families
        familiesByName = Dictionary(families.map { ($0.name, $0) }) { first, _ in first }
    }

    /// Returns the present values of all series, in the order of the families. Families without a series are absent.
    func read() -> [MetricReading] {
        let cells = cells.withLock { $0 }
        return families.compactMap { family in
            guard let series = cells[family.name] else { return nil }
            let samples = series.sorted { $0.key.lexicographicallyPrecedes($1.key) }
                .map { MetricSample(labels: $0.key, value: $0.value.value) }
            return MetricReading(family: family, samples: samples)
        }
    }

    /// Returns the cell of a series, which is created if needed; `nil` if no family of the kind has the name.
    private func cell(_ kind: MetricFamily.Kind, _ label: String, _ dimensions: [(String, String)]) -> Cell? {
        guard let family = familiesByName[label], family.kind == kind else { return nil }
        let labels = dimensions.map { MetricSample.Label(name: $0.0, value: $0.1) }.sorted()
        return cells.withLock { cells in
            if let known = cells[label]?[labels] { return known }
            let cell: Cell =
                switch kind {
                case .counter: .counter(CounterCell())
                case .gauge: .gauge(GaugeCell())
                case .histogram: .histogram(HistogramCell(bounds: family.bounds))
                }
            cells[label, default: [:]][labels] = cell
            return cell
        }
    }

    // MARK: MetricsFactory

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        guard case .counter(let cell) = cell(.counter, label, dimensions) else { return NOOPMetricsHandler.instance }
        return cell
    }

    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        guard case .gauge(let cell) = cell(.gauge, label, dimensions) else { return NOOPMetricsHandler.instance }
        return cell
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        guard case .histogram(let cell) = cell(.histogram, label, dimensions) else {
            return NOOPMetricsHandler.instance
        }
        return cell
    }

    /// Returns a recorder that keeps nothing: the daemon has none.
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }

    // A series lives as long as the process, so that its value never goes back.
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}
