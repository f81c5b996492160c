import ControlProtocol
import TaskModel

/// The numbers of a watch without an end: what runs and waits, and what ended meanwhile.
struct OpenTally {
    private(set) var active = 0
    /// The number of tasks that are queued or wait.
    private(set) var held = 0
    private(set) var completed = 0
    private(set) var others = OtherEndings()
    private var rate: Int64 = 0
    /// The bytes received or sent since the start.
    private var transferred: Int64 = 0
    /// The bytes of tasks that have not ended, when they were last seen.
    private var seen: [TaskID: Int64] = [:]

    /// The number of tasks in ``seen`` beyond which those that do not run are forgotten.
    private static let seenLimit = 10_000

    var open: Int { active.addingClamped(held) }

    /// Records the state of the daemon and the running tasks.
    ///
    /// - Parameter start: the start of the watch. The bytes of tasks that are older count from when they are first seen.
    mutating func record(_ status: DaemonStatus, _ tasks: [TaskStatus], since start: Milliseconds) {
        func count(_ state: TaskState) -> Int { max(0, status.tasks[state.rawValue] ?? 0) }
        active = count(.active)
        held = count(.queued).addingClamped(count(.waiting))
        rate = status.downloadRate.addingClamped(status.uploadRate)
        for task in tasks {
            transfer(task.bytesFetched, since: seen[task.id] ?? (task.createdAt >= start ? 0 : task.bytesFetched))
            seen[task.id] = task.bytesFetched
        }
        if seen.count > Self.seenLimit {
            let running = Set(tasks.map(\.id))
            seen = seen.filter { running.contains($0.key) }
        }
    }

    private mutating func transfer(_ bytes: Int64, since before: Int64) {
        transferred = transferred.addingClamped(max(0, bytes.subtractingClamped(before)))
    }

    /// Records the end of a task.
    ///
    /// - Parameter task: the final status, if it was read.
    mutating func end(_ event: TaskEvent, _ task: TaskStatus?) {
        // A task that was never seen has run between two looks.
        let before = event.id.flatMap { seen.removeValue(forKey: $0) } ?? 0
        transfer(task?.bytesFetched ?? event.bytesDone ?? 0, since: before)
        if event.type == .completed { completed += 1 } else { others.add(event.type == .failed ? .failed : .cancelled) }
    }

    /// The values of the total line.
    struct Total: Equatable {
        var active: Int
        var held: Int
        var completed: Int
        var others: OtherEndings
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
            active: active, held: held, completed: completed, others: others, bytes: bytes,
            bytesTotal: isKnown ? sizes.reduce(Int64(0)) { $0.addingClamped($1 ?? 0) } : nil, rate: rate)
    }

    /// Returns the first line of the summary.
    func headline(elapsed: Milliseconds) -> String {
        var text = "\(Describe.count(completed, "task")) completed\(others.words): "
        text += "\(ByteSize.describe(transferred)) in \(Describe.span(milliseconds: elapsed))"
        let mean = elapsed > 0 ? Double(transferred) * 1000 / Double(elapsed) : 0
        if mean >= 1, mean < 9e18 { text += ", \(Describe.rate(Int64(mean)))" }
        return text
    }
}
