import ControlClient
import Glibc
import TaskModel

/// The tasks that a command waits for, and how the user named them.
struct WaitTarget {
    var ids: [TaskID]
    /// The batch that was named; `nil` if the tasks were named by their ids or with `--all`.
    var batch: String?
    var isAll = false
    /// The states that were named.
    var states: [TaskState] = []
    /// The command that waits for them.
    var verb = "wait"

    /// The tasks that `watch` shows without ids.
    static let everything = WaitTarget(ids: [], isAll: true, verb: "watch")

    /// The number of ids that are repeated in a command.
    private static let shownIDs = 20

    /// Returns the command that waits for the same tasks again.
    ///
    /// - Parameter daemon: the daemon that was chosen on the command line.
    func command(_ daemon: DaemonChoice) -> String {
        let words: [String] =
            if !states.isEmpty {
                states.map(\.rawValue) + (batch.map { ["--batch", Shell.quoted($0)] } ?? [])
            } else if let batch {
                (isAll ? ["--all"] : []) + ["--batch", Shell.quoted(batch)]
            } else if isAll || ids.count > Self.shownIDs {
                // Without ids, `watch` shows all tasks.
                verb == "wait" ? ["--all"] : []
            } else {
                ids.map(\.description)
            }
        return (["dlctl"] + daemon.words + [verb] + words).joined(separator: " ")
    }

    /// The reason why there is nothing to wait for, if no task was selected.
    var absence: String {
        let tasks = batch.map { "no task of the batch \(Escape.visible($0)) is" } ?? "none of your tasks is"
        let words = states.isEmpty ? "unfinished" : states.map(\.rawValue).joined(separator: " or ")
        return "nothing to \(verb == "wait" ? "wait for" : verb): \(tasks) \(words)"
    }
}

extension WaitTarget {
    /// Reads the tasks in one of `states`. Without states, those of a batch that have not ended or have failed, or all of
    /// the caller's that have not ended. Tasks named by their ids are not read.
    ///
    /// A task that fails before the waiting begins makes it end like one that fails later.
    init(
        ids: [TaskID], states: [TaskState] = [], batch: String?, isAll: Bool = false, _ client: ControlClient
    ) throws {
        self.init(ids: ids, batch: batch, isAll: isAll, states: states)
        guard ids.isEmpty else { return }
        let unfinished = TaskState.allCases.filter { !$0.isEnded || batch != nil && $0 == .failed }
        var filter = TaskFilter(states: states.isEmpty ? unfinished : states, batch: batch)
        if isAll || batch == nil && !states.isEmpty { filter.owner = getuid() }
        try client.forEachPage(filter: filter) { page in
            self.ids += page.map(\.id)
            return true
        }
    }
}
