import CSystemd
import Glibc
import Logging
import Synchronization
import TaskModel

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

/// A log handler that writes each message as one line to standard error: `level: message (key=value, …)`.
struct StandardErrorLogHandler: LogHandler {
    /// The lowest level logged by this handler, whatever the switch says.
    var least = Logger.Level.trace
    var logLevel: Logger.Level {
        get { max(LogLevelSwitch.level, least) }
        set { least = newValue }
    }
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        var line = "dld: \(event.level.rawValue): \(LogText.printable("\(event.message)"))"
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        if !all.isEmpty {
            let pairs = all.sorted { $0.key < $1.key }.map { "\($0.key)=\(LogText.printable("\($0.value)"))" }
            line += " (" + pairs.joined(separator: ", ") + ")"
        }
        line += "\n"
        var text = line
        _ = text.withUTF8 { write(2, $0.baseAddress, $0.count) }  // a lost log message cannot be logged
    }
}

/// A log handler that sends messages with their fields to systemd's journal (sd_journal_sendv(3)).
struct JournalLogHandler: LogHandler {
    /// The lowest level logged by this handler, whatever the switch says.
    var least = Logger.Level.trace
    var logLevel: Logger.Level {
        get { max(LogLevelSwitch.level, least) }
        set { least = newValue }
    }
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let pairs = all.sorted { $0.key < $1.key }
        let words = pairs.map { "\($0.key)=\(LogText.printable("\($0.value)"))" }.joined(separator: ", ")
        let message = LogText.printable("\(event.message)") + (words.isEmpty ? "" : " (\(words))")
        var fields = [
            "MESSAGE=\(message)", "PRIORITY=\(Self.priority(event.level))", "SYSLOG_IDENTIFIER=dld",
        ]
        for (key, value) in pairs {
            let name = key.uppercased().filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
            fields.append("DLD_\(name)=\(value)")
        }
        let bytes = fields.map { Array($0.utf8) }
        let storage = bytes.flatMap { $0 }
        storage.withUnsafeBytes { storage in
            var vectors: [iovec] = []
            var offset = 0
            for field in bytes {
                let start = storage.baseAddress.map { UnsafeMutableRawPointer(mutating: $0 + offset) }
                vectors.append(iovec(iov_base: start, iov_len: field.count))
                offset += field.count
            }
            _ = sd_journal_sendv(vectors, Int32(vectors.count))  // as for standard error
        }
    }

    private static func priority(_ level: Logger.Level) -> Int {
        switch level {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}

enum LogText {
    /// Escapes hidden characters. Text from outside must not forge a line or move a terminal's cursor.
    static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: \.isHidden) else { return text }
        var shown = ""
        for scalar in text.unicodeScalars {
            if scalar.isHidden {
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}
