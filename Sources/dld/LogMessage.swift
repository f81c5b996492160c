import Logging
import TaskModel

/// A message on its way to the log.
struct LogMessage: Sendable, Equatable {
    /// The maximum length of a value in bytes.
    static let longestValue = 4_096
    /// The maximum length of a text with its values in bytes.
    static let longestText = 16_384

    var level: Logger.Level
    var text: String
    var metadata: Logger.Metadata = [:]

    /// Returns the message that tells of lost ones.
    static func lost(_ count: Int) -> LogMessage {
        LogMessage(
            level: .warning, text: "\(count) log messages are lost, because the log did not take them in time")
    }

    /// The approximate size in memory in bytes.
    var size: Int {
        metadata.reduce(text.utf8.count + 128) { size, pair in
            switch pair.value {
            case .string(let text): size + text.utf8.count + 64
            case .array(let values): size + values.count * 64
            default: size + 128
            }
        }
    }

    /// Returns the values of a key: several for an array.
    static func values(_ value: Logger.MetadataValue) -> [String] {
        guard case .array(let values) = value else { return [LogText.cut("\(value)", to: longestValue)] }
        return values.map { LogText.cut("\($0)", to: longestValue) }
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

    /// Returns a text of at most `limit` bytes, whose end `…` stands for what is left out.
    static func cut(_ text: String, to limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var (kept, bytes) = ("", 0)
        for scalar in text.unicodeScalars {
            bytes += UTF8.width(scalar)
            if bytes > limit - 3 { break }
            kept.unicodeScalars.append(scalar)
        }
        return kept + "…"
    }
}
