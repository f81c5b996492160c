import ControlProtocol
import TaskModel

/// The part of the tasks that the screen shows, and so the calls that are made for it.
struct TopQuery: Sendable, Equatable {
    /// The states of the tasks that are shown.
    enum States: String, Sendable, CaseIterable {
        /// The tasks that have not ended.
        case open
        case active, waiting, queued, paused, failed, completed, cancelled, all

        var states: [TaskState] {
            switch self {
            case .open: TaskState.allCases.filter { !$0.isEnded }
            case .all: TaskState.allCases
            default: TaskState(rawValue: rawValue).map { [$0] } ?? []
            }
        }
    }

    enum Sort: String, Sendable, CaseIterable {
        /// Running tasks, then waiting ones, then queued ones in the order in which they start.
        case start
        case rate, left, size, progress, name
    }

    /// The tasks of one call of `task.list`, in the order of the calls.
    enum Part: Sendable, CaseIterable {
        case running, held, queued, ended

        fileprivate var states: [TaskState] {
            switch self {
            case .running: [.active]
            case .held: [.waiting, .paused]
            case .queued: [.queued]
            case .ended: [.failed, .completed, .cancelled]
            }
        }

        /// Whether a query selects any of these tasks.
        func isIncluded(in query: TopQuery) -> Bool { states.contains(where: query.states.states.contains) }

        /// Returns the number of these tasks.
        func count(in status: DaemonStatus) -> Int {
            states.reduce(0) { $0.addingClamped(status.tasks[$1.rawValue] ?? 0) }
        }
    }

    /// The maximum number of tasks that are asked for.
    static let maximumRows = 1_000

    var states = States.open
    var batch: String?
    var search: String?
    var sort = Sort.start
    var groupsByHost = false
    /// The number of tasks that are needed to fill the screen.
    var rows = 24
    /// The task whose details are shown.
    var detail: TaskID?

    /// Whether two queries select the same tasks in the same order.
    func selectsSame(as other: TopQuery) -> Bool {
        var other = other
        other.rows = rows
        other.detail = detail
        return self == other
    }

    /// Returns the call for a part of the tasks; `nil` if it is not necessary.
    ///
    /// - Parameter found: the number of tasks of the parts before.
    func call(for part: Part, found: Int) -> TaskListParameters? {
        let wanted = part.states.filter(states.states.contains)
        // The order and the sums need all running tasks; otherwise the screen is filled.
        let needsAll = part == .running && (groupsByHost || sort != .start)
        let room = (needsAll ? Self.maximumRows : min(rows, Self.maximumRows)) - found
        guard !wanted.isEmpty, room > 0 else { return nil }
        let filter = TaskFilter(states: wanted, batch: batch, search: search)
        return switch part {
        case .running, .held: TaskListParameters(filter: filter, limit: room)
        // The daemon knows the order of the next 10,000 tasks alone; a filter shall find all of them.
        case .queued:
            TaskListParameters(filter: filter, limit: room, order: batch == nil && search == nil ? .queue : nil)
        case .ended: TaskListParameters(filter: filter, limit: room, newest: room)
        }
    }
}
