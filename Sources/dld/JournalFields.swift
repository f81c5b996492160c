import Logging
import TaskQueue

/// The fields of a message in systemd's journal.
enum JournalFields {
    /// The fields of metadata that have names of their own. Those of other metadata begin with `DLD_`.
    static let names: [String: String] = [
        TaskLogKey.task.rawValue: "TASK_ID",
        TaskLogKey.batch.rawValue: "BATCH",
        TaskLogKey.host.rawValue: "HOST",
        TaskLogKey.url.rawValue: "URL",
        TaskLogKey.httpStatus.rawValue: "HTTP_STATUS",
        TaskLogKey.curlCode.rawValue: "CURL_CODE",
        TaskLogKey.systemError.rawValue: "ERRNO",
        TaskLogKey.bytes.rawValue: "BYTES",
        TaskLogKey.seconds.rawValue: "SECONDS",
        TaskLogKey.attempt.rawValue: "ATTEMPT",
        TaskLogKey.owner.rawValue: "OWNER_UID",
    ]

    /// Returns the fields of a message in the form `NAME=value`. A value may contain any characters: the journal
    /// receives each field with its length.
    static func fields(of message: LogMessage) -> [String] {
        var fields = [
            "MESSAGE=\(LogLine.journal(message))", "PRIORITY=\(priority(message.level))", "SYSLOG_IDENTIFIER=dld",
        ]
        for (key, value) in message.metadata.sorted(by: { $0.key < $1.key }) {
            if key == TaskLogKey.event.rawValue {
                if let id = TaskLogKind(rawValue: "\(value)")?.messageID { fields.append("MESSAGE_ID=\(id)") }
                fields.append("DLD_EVENT=\(value)")
                continue
            }
            let name = names[key] ?? ownName(key)
            for value in LogMessage.values(value) { fields.append("\(name)=\(value)") }
        }
        return fields
    }

    private static func ownName(_ key: String) -> String {
        let word = key.uppercased().map { $0 == "-" ? "_" : $0 }
        return "DLD_" + String(word.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
    }

    /// Returns the priority of syslog(3).
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
