import Logging
import TaskModel
import TaskStore
import Transfer

/// The log entries about a run of a task.
///
/// A value without I/O and clock.
struct RunLog {
    /// The end of a run, as far as it is logged.
    struct End {
        /// The bytes of the file that are there or were sent.
        var bytesDone: Int64
        /// The bytes that this run received or sent.
        var transferred: Int64
        /// The duration of the run.
        var duration: Milliseconds
        /// The path of the finished file.
        var path: String?
        /// A warning about the finished file.
        var warning: String?
        var error: TransferError?
    }

    /// The record before the run.
    let record: TaskRecord
    let host: String
    let now: Milliseconds
    /// Returns the offset of local time from UTC at a moment, in seconds.
    let utcOffset: (Milliseconds) -> Int

    /// The level of a start. A run that ends at once has no line for its start at the usual level.
    static func levelOfStart(isBrief: Bool) -> Logger.Level { isBrief ? .debug : .info }

    /// Returns the entry about the start.
    func started(isBrief: Bool) -> TaskLogEntry {
        let number = record.attempts.addingClamped(1)
        let attempt = number > 1 ? " (attempt \(number))" : ""
        var entry = TaskLogEntry(
            .started, Self.levelOfStart(isBrief: isBrief), "task \(record.id) started: \(name(nil))\(attempt)")
        describe(&entry)
        entry.set(.attempt, number)
        if record.bytesDone > 0 { entry.set(.bytes, record.bytesDone) }
        return entry
    }

    /// The level of the entry about an end.
    ///
    /// - Parameters:
    ///   - isNews: Whether the failure has not been logged before.
    ///   - warning: What is suspicious about the finished file.
    /// - Returns: `nil` where the run has no entry, because a user's command ended it, or because the task returns to
    ///   the queue.
    static func level(of outcome: TaskConclusion, isNews: Bool, warning: String? = nil) -> Logger.Level? {
        let lifecycle = outcome.lifecycle
        switch lifecycle.state {
        case .completed: return warning == nil ? .info : .warning
        case .failed: return .warning
        case .waiting:
            guard isNews else { return .debug }
            return lifecycle.reason == .retry || lifecycle.reason == .network ? .notice : .warning
        case .paused: return lifecycle.reason?.needsPerson == true ? .warning : nil
        case .cancelled, .queued, .active: return nil
        }
    }

    /// Returns the entry about the end.
    func ended(_ outcome: TaskConclusion, _ end: End, isNews: Bool) -> TaskLogEntry? {
        guard let level = Self.level(of: outcome, isNews: isNews, warning: end.warning) else { return nil }
        let id = record.id
        var entry: TaskLogEntry
        switch outcome.lifecycle.state {
        case .completed:
            let warning = end.warning.map { "; warning: \($0)" } ?? ""
            entry = TaskLogEntry(.completed, level, "task \(id) completed: \(name(end.path)), \(amount(end))\(warning)")
        case .failed:
            entry = TaskLogEntry(.failed, level, "task \(id) failed: \(name(nil)): \(cause(outcome))")
        case .waiting:
            let kind: TaskLogKind = outcome.lifecycle.reason == .retry ? .attemptFailed : .waiting
            entry = TaskLogEntry(kind, level, "task \(id): \(sentence(outcome))")
        default:
            let cause = outcome.error.map { " (\($0.message))" } ?? ""
            entry = TaskLogEntry(.needsPerson, level, "task \(id) is paused\(cause): \(sentence(outcome))")
        }
        describe(&entry)
        entry.set(.attempt, max(1, outcome.attempts))
        entry.set(.bytes, end.bytesDone)
        entry.set(.seconds, Self.seconds(end.duration))
        entry.set(.httpStatus, outcome.error?.httpStatus)
        entry.set(.curlCode, end.error?.libcurlCode)
        entry.set(.systemError, end.error?.systemError)
        entry.set("error", outcome.error?.code.rawValue)
        entry.set("reason", outcome.lifecycle.reason?.rawValue)
        return entry
    }

    private func describe(_ entry: inout TaskLogEntry) {
        entry.set(.task, record.id)
        entry.set(.batch, record.specification.batch)
        entry.set(.host, host)
        entry.set(.url, record.specification.url)
        entry.set(.owner, record.owner)
    }

    // MARK: Words

    private func name(_ path: String?) -> String {
        (path ?? record.path).map(FileName.last) ?? FileName.fromURL(record.specification.url)
    }

    private func cause(_ outcome: TaskConclusion) -> String {
        guard let error = outcome.error else { return "dlctl retry \(record.id)" }
        let advice = FailureAdvice.text(for: error, tasks: [record.id])
        return "\(error.message) (\(error.code)); \(advice)"
    }

    private func sentence(_ outcome: TaskConclusion) -> String {
        var after = record
        after.lifecycle = outcome.lifecycle
        after.error = outcome.error
        return WaitingSentence(record: after, now: now, utcOffset: utcOffset, isOwn: false).text
            ?? outcome.lifecycle.state.rawValue
    }

    /// Returns the size and the time, as in `1.2 GiB in 31 s`; for a continued download the share of this run too.
    private func amount(_ end: End) -> String {
        let (size, time) = (ByteSize.describe(end.bytesDone), Self.span(end.duration))
        guard record.specification.kind == .download else { return "\(size) sent in \(time)" }
        guard end.transferred < end.bytesDone, record.bytesFetched > 0 || end.transferred > 0 else {
            return end.transferred == 0 && end.bytesDone > 0 ? "\(size), already there" : "\(size) in \(time)"
        }
        return "\(size), the last \(ByteSize.describe(end.transferred)) in \(time)"
    }

    /// Returns a duration in words: `0.4 s`, `31 s`, `2 min 5 s`, `3 h 20 min`.
    static func span(_ duration: Milliseconds) -> String {
        let milliseconds = max(0, duration)
        if milliseconds < 10_000 { return "\(milliseconds / 1_000).\(milliseconds % 1_000 / 100) s" }
        let seconds = milliseconds.addingClamped(500) / 1_000
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3_600 { return "\(seconds / 60) min \(seconds % 60) s" }
        return "\(seconds / 3_600) h \(seconds / 60 % 60) min"
    }

    /// Returns a duration in seconds with three decimals: `31.204`.
    static func seconds(_ duration: Milliseconds) -> String {
        let milliseconds = max(0, duration)
        let fraction = String(milliseconds % 1_000)
        return "\(milliseconds / 1_000)." + String(repeating: "0", count: 3 - fraction.utf8.count) + fraction
    }
}
