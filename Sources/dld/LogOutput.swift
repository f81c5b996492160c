import CSystemd
import Glibc

/// The place that the daemon logs to: systemd's journal, otherwise standard error.
enum LogOutput {
    /// The messages on their way there.
    static let queue =
        ProcessEnvironment.current.logsToJournal
        ? LogQueue(write: writeToJournal) : LogQueue(write: writeToStandardError)

    @Sendable
    private static func writeToStandardError(_ message: LogMessage) {
        var line = LogLine.standardError(message)
        line.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)[...]
            while !rest.isEmpty {
                let count = Glibc.write(2, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                if count < 0, errno == EINTR { continue }
                // A lost log message cannot be logged.
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Sends a message with its fields (sd_journal_sendv(3)).
    @Sendable
    private static func writeToJournal(_ message: LogMessage) {
        let fields = JournalFields.fields(of: message).map { Array($0.utf8) }
        let storage = fields.flatMap { $0 }
        storage.withUnsafeBytes { storage in
            var vectors: [iovec] = []
            var offset = 0
            for field in fields {
                let start = storage.baseAddress.map { UnsafeMutableRawPointer(mutating: $0 + offset) }
                vectors.append(iovec(iov_base: start, iov_len: field.count))
                offset += field.count
            }
            _ = sd_journal_sendv(vectors, Int32(vectors.count))  // a lost log message cannot be logged
        }
    }
}
