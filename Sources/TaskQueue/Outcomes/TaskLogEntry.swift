import Logging
import TaskModel

/// A log entry about one task or several.
struct TaskLogEntry: Sendable, Equatable {
    var kind: TaskLogKind
    var level: Logger.Level
    /// The line for a human reader.
    var text: String
    var metadata: Logger.Metadata

    init(_ kind: TaskLogKind, _ level: Logger.Level, _ text: String) {
        self.kind = kind
        self.level = level
        self.text = text
        metadata = [TaskLogKey.event.rawValue: .string(kind.rawValue)]
    }

    /// Sets a value. `nil` leaves it out.
    mutating func set(_ key: TaskLogKey, _ value: (some CustomStringConvertible)?) {
        if let value { metadata[key.rawValue] = .string(value.description) }
    }

    mutating func set(_ word: String, _ value: (some CustomStringConvertible)?) {
        if let value { metadata[word] = .string(value.description) }
    }
}

extension Logger {
    /// Logs an entry about tasks.
    func log(_ entry: TaskLogEntry) {
        log(level: entry.level, "\(entry.text)", metadata: entry.metadata)
    }

    /// Logs an entry about a command on tasks.
    func log(_ command: CommandLog, _ level: Logger.Level = .info) {
        guard logLevel <= level, let entry = command.entry(level) else { return }
        log(entry)
    }
}
