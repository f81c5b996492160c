import TaskModel

/// The lines that end a wait on a terminal: how many tasks completed, their bytes, the time and the mean rate, and what
/// to do about the others.
struct WaitSummary {
    /// The maximum number of tasks that did not complete and are named.
    private static let named = 10

    var tally: WaitTally
    var tasks: Int
    /// The duration of the wait in milliseconds.
    var elapsed: Milliseconds
    /// The tasks that did not complete, with their final status; `nil` for a removed task.
    var others: [(id: TaskID, task: TaskStatus?)]
    /// Whether the lines of the tasks that did not complete are on the screen already.
    var areOthersShown: Bool

    func lines() -> [String] {
        var headline = "\(tally.completed) of \(Describe.count(tasks, "task")) completed\(tally.others.words)"
        if tally.completed > 0 { headline += ": \(ByteSize.describe(tally.completedBytes))" }
        if tally.completed > 0, tally.fetched > 0, elapsed > 0 {
            headline += " in \(Describe.span(milliseconds: elapsed))"
            let rate = Double(tally.fetched) * 1000 / Double(elapsed)
            if rate >= 1, rate < 9e18 { headline += ", \(Describe.rate(Int64(rate)))" }
        }
        return [Escape.visible(headline)] + remedies()
    }

    /// Returns the lines about the tasks that did not complete.
    func remedies() -> [String] {
        var lines: [String] = []
        if !areOthersShown {
            for other in others.prefix(Self.named) {
                lines.append(
                    "  "
                        + (other.task.map { "\(Describe.name($0)): \(Describe.ending($0))" }
                            ?? "task \(other.id) was removed"))
            }
        }
        if others.count > Self.named {
            lines.append("  … and \(others.count - Self.named) more; see: dlctl list failed cancelled paused")
        }
        let ended = others.compactMap { $0.task }.filter { $0.state == .failed || $0.state == .cancelled }
        if ended.count > Self.named {
            lines.append("to try again: dlctl retry --state failed (or the ids)")
        } else {
            var groups: [(error: TaskFailure, ids: [TaskID])] = []
            for task in ended {
                let failure = task.state == .failed ? task.error : nil
                let error = failure ?? TaskFailure(code: .internal, message: "")
                let index = groups.firstIndex { group in
                    group.error.code == error.code && group.error.isOfChecksumList == error.isOfChecksumList
                }
                if let index { groups[index].ids.append(task.id) } else { groups.append((error, [task.id])) }
            }
            lines += groups.map { FailureAdvice.text(for: $0.error, tasks: $0.ids) }
        }
        return lines.map(Escape.visible)
    }
}
