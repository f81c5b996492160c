import CoreMetrics
import TaskModel

/// The metrics of the queue. Each is created once, with the queue, so that recording a value looks nothing up.
struct QueueMetrics: Sendable {
    private let attempts: [TaskKind: Counter]
    private let failures: [FailureClass: Counter]
    private let bytes: [TaskKind: Counter]
    private let rates: [TaskKind: Meter]
    private let tasks: [TaskKind: [TaskState: Meter]]
    private let hostsOnHold: Meter
    private let logSize: Meter
    private let queueWait: CoreMetrics.Timer
    private let firstByte: CoreMetrics.Timer
    /// The time of a sync of received bytes.
    let sync: CoreMetrics.Timer
    /// The time until the event loops have carried out work that is posted to them.
    let loopLag: CoreMetrics.Timer

    init(factory: any MetricsFactory = MetricsSystem.factory) {
        func each<Key: Hashable, Metric>(_ keys: [Key], _ make: (Key) -> Metric) -> [Key: Metric] {
            Dictionary(keys.map { ($0, make($0)) }) { first, _ in first }
        }
        let kinds = TaskKind.allCases
        attempts = each(kinds) {
            Counter(label: "dld_attempts_total", dimensions: [("kind", $0.rawValue)], factory: factory)
        }
        failures = each(FailureClass.allCases) {
            Counter(label: "dld_failures_total", dimensions: [("class", $0.rawValue)], factory: factory)
        }
        bytes = each(kinds) { Counter(label: "dld_\($0.rawValue)ed_bytes_total", factory: factory) }
        rates = each(kinds) { Meter(label: "dld_\($0.rawValue)_rate_bytes_per_second", factory: factory) }
        tasks = each(kinds) { kind in
            each(TaskState.allCases) { state in
                Meter(
                    label: "dld_tasks", dimensions: [("kind", kind.rawValue), ("state", state.rawValue)],
                    factory: factory)
            }
        }
        hostsOnHold = Meter(label: "dld_hosts_on_hold", factory: factory)
        logSize = Meter(label: "dld_wal_bytes", factory: factory)
        queueWait = CoreMetrics.Timer(label: "dld_queue_wait_seconds", factory: factory)
        firstByte = CoreMetrics.Timer(label: "dld_time_to_first_byte_seconds", factory: factory)
        sync = CoreMetrics.Timer(label: "dld_sync_seconds", factory: factory)
        loopLag = CoreMetrics.Timer(label: "dld_loop_lag_seconds", factory: factory)
    }

    // MARK: Events

    /// Records the first start of a task. A task that waited for another one, or that ran before, does not count.
    func started(_ record: TaskRecord, at now: Milliseconds) {
        guard record.startedAt == nil, record.attempts == 0, record.specification.afterTask == nil else { return }
        let ready = max(record.createdAt, record.specification.startAt ?? 0)
        queueWait.recordNanoseconds(max(0, now.subtractingClamped(ready)).multipliedClamped(by: 1_000_000))
    }

    /// Records the end of a run.
    ///
    /// - Parameters:
    ///   - count: the number of attempts.
    ///   - known: those of them of which more is known.
    func ended(_ count: Int, _ known: [TaskAttempt], of kind: TaskKind) {
        attempts[kind]?.increment(by: count)
        for attempt in known {
            if let milliseconds = attempt.firstByte {
                firstByte.recordNanoseconds(milliseconds.multipliedClamped(by: 1_000_000))
            }
            if let error = attempt.error { failures[FailureClass(error.code)]?.increment() }
        }
    }

    /// Counts bytes that were received or sent.
    func count(_ new: Int64, of kind: TaskKind) {
        if new > 0 { bytes[kind]?.increment(by: new) }
    }

    // MARK: Present values

    /// Records the present numbers of tasks and the throughput.
    func record(tasks counts: [TaskKind: [TaskState: Int]], downloadRate: Int64, uploadRate: Int64) {
        for (kind, meters) in tasks {
            for (state, meter) in meters { meter.set(counts[kind]?[state] ?? 0) }
        }
        rates[.download]?.set(downloadRate)
        rates[.upload]?.set(uploadRate)
    }

    /// Records the number of hosts on hold and the size of the write-ahead log in bytes.
    func record(hostsOnHold hosts: Int, logSize size: Int64?) {
        hostsOnHold.set(hosts)
        logSize.set(size ?? 0)
    }
}
