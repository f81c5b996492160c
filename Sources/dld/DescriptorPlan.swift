import Glibc
import TaskModel
import TaskQueue

/// The division of the process's file descriptors among tasks, clients and the daemon itself. With more transfers than
/// descriptors, some would fail instead of waiting.
struct DescriptorPlan {
    /// The limit on file descriptors; `nil` if it is unknown.
    var limit: Int?

    /// The number of file descriptors per active task: the part file, its directory, a connection, and one connection
    /// kept for the next request.
    private static let perActiveTask = 4
    /// The number of file descriptors per ending task: the file and its directory.
    private static let perEndingTask = 2
    /// The part of the remaining file descriptors that ending tasks may take. The others are for clients.
    private static let endingPart = 4

    /// Creates the plan for this process.
    init() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        self.limit = Int(clamping: limit.rlim_cur)
    }

    init(limit: Int?) { self.limit = limit }

    /// The number of file descriptors that are not the daemon's own; `nil` for no limit. The daemon uses 56 with a few
    /// clients, and 32 more for backups, webhooks and readers of the database. With a limit of 64, those wait for each
    /// other.
    private var available: Int? {
        limit.map { max(0, $0.subtractingClamped(56 + max(0, min(32, $0.subtractingClamped(64) / 2)))) }
    }

    /// Returns how many of `tasks` tasks may be active at a time.
    func activeTasks(_ tasks: Int) -> Int {
        available.map { max(1, min(tasks, $0 / Self.perActiveTask)) } ?? tasks
    }

    /// Returns how many tasks may be published and recorded at a time while `tasks` tasks are active. More tasks start
    /// only after some of these have ended.
    ///
    /// All active tasks may end together, since they have closed their connections.
    func endingTasks(besideActive tasks: Int) -> Int {
        max(1, min(tasks, QueueSettings.mostEndingTasks), extraEndingTasks(besideActive: tasks))
    }

    /// Returns the number of file descriptors left for clients while `tasks` tasks are active.
    func descriptorsForClients(besideActive tasks: Int) -> Int {
        guard let rest = remaining(besideActive: tasks) else { return .max }
        return max(0, rest - extraEndingTasks(besideActive: tasks) * Self.perEndingTask)
    }

    /// Returns the number of ending tasks for which file descriptors are kept from the clients.
    private func extraEndingTasks(besideActive tasks: Int) -> Int {
        guard let rest = remaining(besideActive: tasks) else { return QueueSettings.mostEndingTasks }
        return min(QueueSettings.mostEndingTasks, rest / Self.endingPart / Self.perEndingTask)
    }

    private func remaining(besideActive tasks: Int) -> Int? {
        available.map { max(0, $0.subtractingClamped(tasks.multipliedClamped(by: Self.perActiveTask))) }
    }
}
