import Logging
import TaskModel
import TaskStore

/// Logs the ends of batches, which the event journal records with the change that ends the last task.
actor BatchLog {
    /// The time in milliseconds for which an end may remain unlogged.
    static let delay: Milliseconds = 100
    private static let page = 256

    private let store: TaskStore
    private let clock: QueueClock
    private let logger: Logger
    /// The last event that was looked at.
    private var position: Int64 = 0
    private var isScheduled = false

    init(store: TaskStore, clock: QueueClock, logger: Logger) {
        self.store = store
        self.clock = clock
        self.logger = logger
    }

    /// Skips the events of earlier daemons.
    func start() {
        position = (try? store.lastEvent()) ?? 0
    }

    /// Looks at new events soon.
    func notify() {
        guard !isScheduled else { return }
        isScheduled = true
        Task { [clock] in
            await clock.sleep(Self.delay)
            isScheduled = false
            look()
        }
    }

    /// Logs the ends since the last look. After an error the next look finds them.
    func look() {
        let filter = EventFilter(types: [.batchFinished])
        while let page = try? store.events(after: position, limit: Self.page, filter: filter),
            page.position > position
        {
            position = page.position
            for event in page.events {
                if let entry = Self.entry(event) { logger.log(entry) }
            }
        }
    }

    /// Returns the entry about the end of a batch; `nil` for other events.
    static func entry(_ event: TaskEvent) -> TaskLogEntry? {
        guard event.type == .batchFinished, let batch = event.batch, let totals = event.totals else { return nil }
        let counts = [(totals.completed, "completed"), (totals.failed, "failed"), (totals.cancelled, "cancelled")]
            .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        let remedy = totals.failed > 0 ? "; dlctl list --batch \(batch) --state failed" : ""
        var entry = TaskLogEntry(.batchFinished, .info, "batch \(batch) finished: \(counts)\(remedy)")
        entry.set(.batch, batch)
        entry.set(.owner, event.owner)
        entry.set(.bytes, totals.bytesDone)
        return entry
    }
}
