import ControlProtocol
import CoreMetrics
import Logging
import TaskModel
import TaskQueue

/// The reader of the daemon's metrics: it writes them to the text file and gives them to `daemon.status`.
///
/// While tasks run, the file is due every ``interval``. While none runs, the reporter sleeps until the queue changes.
struct MetricsReporter: Sendable {
    let queue: TaskQueue
    let registry: MetricsRegistry
    let file: MetricsFile
    let logger: Logger
    /// The name of the daemon beside others.
    private let instance: String?
    private let isUp: Meter
    private let time: Meter

    static let interval: Duration = .seconds(15)

    /// - Parameter libcurl: the version of libcurl.
    init(
        queue: TaskQueue, registry: MetricsRegistry, file: MetricsFile, instance: String?, libcurl: String,
        logger: Logger
    ) {
        self.instance = instance
        self.queue = queue
        self.registry = registry
        self.file = file
        self.logger = logger
        isUp = Meter(label: "dld_up", factory: registry)
        isUp.set(1)
        time = Meter(label: "dld_metrics_time_seconds", factory: registry)
        Meter(
            label: "dld_build_info", dimensions: [("version", ProductVersion.version), ("libcurl", libcurl)],
            factory: registry
        ).set(1)
        Meter(label: "dld_start_time_seconds", factory: registry).set(Self.now)
    }

    /// The time in seconds since 1970.
    private static var now: Double { Double(QueueClock.system.now()) / 1_000 }

    /// Returns the present metrics.
    func metrics() async -> DaemonStatus.Metrics { .init(await read()) }

    /// Writes the file when it is due, until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            let (seen, path) = (queue.changes.value, file.changes.value)
            await write()
            let isIdle = await queue.runningCount() == 0
            await withTaskGroup(of: Void.self) { group in
                group.addTask { [file] in await file.changes.change(since: path) }
                if file.path != nil {
                    group.addTask { [queue] in
                        if isIdle { await queue.changes.change(since: seen) }
                        try? await Task.sleep(for: Self.interval)
                    }
                }
                await group.next()
                group.cancelAll()
            }
        }
    }

    /// Writes the last values. The file stays, so that nobody takes the end of the daemon for the loss of its file.
    func finish() async {
        isUp.set(0)
        guard file.path != nil else { return }
        file.writeLast(Exposition.text(await read(), instance: instance))
    }

    private func write() async {
        guard file.path != nil else { return }
        guard let problem = await file.write(Exposition.text(await read(), instance: instance)) else { return }
        logger.error("the metrics are not written", metadata: ["error": "\(problem)"])
    }

    private func read() async -> [MetricReading] {
        // Values that cannot be read stay as they are.
        do throws(QueueError) { try await queue.recordPresentValues() } catch {}
        time.set(Self.now)
        return registry.read()
    }
}
