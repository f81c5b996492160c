import Logging
import TaskQueue

/// The line of a message for people: `text (key=value, …)`.
enum LogLine {
    /// The keys that the text of an entry about tasks tells already.
    private static let told: Set<String> = Set(
        [TaskLogKey.event, .task, .host, .bytes, .seconds, .attempt].map(\.rawValue) + ["caller", "count", "reason"])

    /// Returns the line for standard error, with its end.
    static func standardError(_ message: LogMessage) -> String {
        "dld: \(message.level.rawValue): \(text(message, without: isOfTasks(message) ? told : []))\n"
    }

    /// Returns the text for the journal, which has fields for the values of an entry about tasks.
    static func journal(_ message: LogMessage) -> String {
        isOfTasks(message) ? text(message.text) : text(message, without: [])
    }

    private static func isOfTasks(_ message: LogMessage) -> Bool {
        message.metadata[TaskLogKey.event.rawValue] != nil
    }

    private static func text(_ text: String) -> String {
        LogText.cut(LogText.printable(text), to: LogMessage.longestText)
    }

    private static func text(_ message: LogMessage, without hidden: Set<String>) -> String {
        let shown = message.metadata.filter { !hidden.contains($0.key) }.sorted { $0.key < $1.key }
        guard !shown.isEmpty else { return text(message.text) }
        let words = shown.map { "\($0.key)=\(LogText.cut("\($0.value)", to: LogMessage.longestValue))" }
        return text("\(message.text) (\(words.joined(separator: ", ")))")
    }
}
