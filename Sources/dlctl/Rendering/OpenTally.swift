import ControlProtocol
import TaskModel

/// The numbers of a watch without an end: what runs and waits, and what ended meanwhile.
struct OpenTally {
    private(set) var active = 0
    /// The number of tasks that are queued or wait.
    private(set) var held = 0
    private(set) var completed = 0
    private(set) var unsuccessful = 0
    private var rate: Int64 = 0
    /// The bytes that the rates so far amount to.
    private var transferred = 0.0
    private var lastLook: Milliseconds?

    var open: Int { active.addingClamped(held) }

    /// Records the state of the daemon. Its rate counts for the time since the last record.
    mutating func record(_ status: DaemonStatus, at moment: Milliseconds) {
        func count(_ state: TaskState) -> Int { max(0, status.tasks[state.rawValue] ?? 0) }
        active = count(.active)
        held = count(.queued).addingClamped(count(.waiting))
        rate = status.downloadRate.addingClamped(status.uploadRate)
        // A longer time is one in which the daemon was away.
        if let lastLook, (0...5_000).contains(moment.subtractingClamped(lastLook)) {
            transferred += Double(max(0, rate)) * Double(moment - lastLook) / 1000
        }
        lastLook = moment
    }

    mutating func end(_ event: TaskEvent) {
        if event.type == .completed { completed += 1 } else { unsuccessful += 1 }
    }

    /// The values of the total line.
    struct Total: Equatable {
        var active: Int
        var held: Int
        var completed: Int
        var unsuccessful: Int
        var bytes: Int64
        /// The size of the running tasks; `nil` if that of any is unknown.
        var bytesTotal: Int64?
        var rate: Int64

        /// The time left for the running tasks in seconds; `nil` if it is unknown.
        var eta: Int64? {
            guard let bytesTotal, rate > 0 else { return nil }
            return max(0, bytesTotal.subtractingClamped(bytes)) / rate
        }
    }

    /// Returns the totals, with the bytes of running tasks.
    func total(of tasks: [TaskStatus]) -> Total {
        let bytes = tasks.reduce(Int64(0)) { $0.addingClamped($1.bytesDone) }
        let sizes = tasks.map(\.bytesTotal)
        let isKnown = !tasks.isEmpty && tasks.count >= active && !sizes.contains(nil)
        return Total(
            active: active, held: held, completed: completed, unsuccessful: unsuccessful, bytes: bytes,
            bytesTotal: isKnown ? sizes.reduce(Int64(0)) { $0.addingClamped($1 ?? 0) } : nil, rate: rate)
    }

    /// Returns the first line of the summary.
    func headline(elapsed: Milliseconds) -> String {
        var text = "\(Describe.count(completed, "task")) completed"
        if unsuccessful > 0 { text += ", \(unsuccessful) not" }
        text += "; \(ByteSize.describe(Int64(min(transferred, 9e18)))) in \(Describe.span(milliseconds: elapsed))"
        let mean = elapsed > 0 ? transferred * 1000 / Double(elapsed) : 0
        if mean >= 1, mean < 9e18 { text += ", \(Describe.rate(Int64(mean)))" }
        return text
    }
}
