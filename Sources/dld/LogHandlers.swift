import Logging
import Synchronization

/// The current log level of all loggers, which a changed configuration may set.
enum LogLevelSwitch {
    private static let state = Atomic<Int>(index(of: .info))

    static var level: Logger.Level {
        get { Logger.Level.allCases[state.load(ordering: .relaxed)] }
        set { state.store(index(of: newValue), ordering: .relaxed) }
    }

    private static func index(of level: Logger.Level) -> Int {
        Logger.Level.allCases.firstIndex(of: level) ?? 0
    }
}

/// A log handler that queues each message for the log.
struct QueueLogHandler: LogHandler {
    let queue: LogQueue
    /// The lowest level logged by this handler, whatever the switch says.
    var least = Logger.Level.trace
    var logLevel: Logger.Level {
        get { max(LogLevelSwitch.level, least) }
        set { least = newValue }
    }
    var metadata: Logger.Metadata = [:]

    init(_ queue: LogQueue) {
        self.queue = queue
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = event.metadata.map { metadata.merging($0) { $1 } } ?? metadata
        queue.add(LogMessage(level: event.level, text: "\(event.message)", metadata: all))
        // The process may be about to end.
        if event.level == .critical { queue.flush() }
    }
}
