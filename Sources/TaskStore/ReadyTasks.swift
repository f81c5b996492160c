import GRDB
import TaskModel

/// A task that may start, as far as one must know it to choose.
package struct ReadyTask: Sendable, Equatable {
    package var id: TaskID
    package var priority: Int
    /// Within the priority.
    package var position: Int64
    /// See ``TaskWork/hostMark``.
    package var hostMark: Int64

    package init(id: TaskID, priority: Int, position: Int64, hostMark: Int64) {
        self.id = id
        self.priority = priority
        self.position = position
        self.hostMark = hostMark
    }
}

/// The statements that choose what runs. Each names its index: SQLite, which knows nothing of how many tasks are in
/// which state, would otherwise go through all that are queued.
enum ReadySQL {
    static let owners = """
        SELECT owner FROM flow INDEXED BY flow_ready WHERE queued > 0 AND set_id IS NULL AND owner > ?
        ORDER BY owner LIMIT 1
        """
    static let flows = """
        SELECT id, owner, batch FROM flow INDEXED BY flow_ready
        WHERE queued > 0 AND set_id IS NULL AND owner = ? AND id > ? ORDER BY id LIMIT ?
        """
    /// The inner limit bounds how many tasks of excluded hosts are passed over.
    static let inOrder = """
        SELECT id, priority, position, host_mark FROM (
            SELECT id, priority, position, host_mark FROM task INDEXED BY task_ready
            WHERE state = 'queued' AND flow = ?1 ORDER BY priority DESC, position, id LIMIT ?2)
        WHERE host_mark NOT IN (SELECT value FROM json_each(?3)) AND id NOT IN (SELECT value FROM json_each(?4))
        LIMIT ?5
        """
    static let hosts = """
        SELECT host_mark FROM task INDEXED BY task_host WHERE state = 'queued' AND flow = ? AND host_mark > ?
        ORDER BY host_mark LIMIT 1
        """
    static let ofHost = """
        SELECT id, priority, position, host_mark FROM task INDEXED BY task_host
        WHERE state = 'queued' AND flow = ?1 AND host_mark = ?2
            AND id NOT IN (SELECT value FROM json_each(?3))
        ORDER BY priority DESC, position, id LIMIT ?4
        """
}

extension TaskStore {
    /// Tasks in a flow's order that are looked at for one reading, besides those that are excluded by name.
    private static let lookAhead = 4_096
    /// Hosts that one reading finds behind those that are excluded.
    fileprivate static let hostsBehind = 32

    /// The owners that have tasks to start, larger uids than `owner`.
    package func readyOwners(after owner: UInt32? = nil, limit: Int) throws(StoreError) -> [UInt32] {
        try read { database in
            var owners: [UInt32] = []
            var last = owner.map { Int64($0) } ?? -1
            while owners.count < limit,
                let next = try database.firstRow(ReadySQL.owners, [last], { try $0.owner(0) })
            {
                owners.append(next)
                last = Int64(next)
            }
            return owners
        }
    }

    /// An owner's flows that have tasks to start, in the order of their numbers from behind `flow` on.
    package func readyFlows(of owner: UInt32, after flow: Int64 = 0, limit: Int) throws(StoreError) -> [Flow] {
        try read { database in
            try database.rows(ReadySQL.flows, [owner, flow, limit]) { row in
                Flow(id: try row.integer(0), owner: try row.owner(1), batch: try row.textOrNil(2))
            }
        }
    }

    /// Tasks of a flow that may start: higher priority first, then by position, then the older. The cost does not grow
    /// with the number of tasks that wait, nor with those of excluded hosts among them: where these stand before all
    /// others in the thousands, the first tasks of the next hosts are found by host, and the order between those is lost.
    ///
    /// - Parameters:
    ///   - excludingHosts: see ``TaskWork/hostMark``.
    ///   - excluding: the tasks that run, since they are stored as ready.
    package func readyTasks(
        of flow: Int64, limit: Int, excludingHosts: Set<Int64> = [], excluding: Set<TaskID> = []
    ) throws(StoreError) -> [ReadyTask] {
        let ids = Self.list(excluding)
        let hosts = Self.list(excludingHosts)
        let looks = Self.lookAhead + excluding.count
        return try read { database in
            let inOrder = try database.rows(
                ReadySQL.inOrder, [flow, looks, hosts, ids, limit], ReadyTask.init)
            guard inOrder.count < limit, !excludingHosts.isEmpty,
                try database.firstRow(Self.isLonger, [flow, looks], { try $0.integer(0) != 0 }) == true
            else { return inOrder }
            return try database.readyBehind(
                flow: flow, limit: limit, excludingHosts: excludingHosts, ids, found: inOrder)
        }
    }

    private static let isLonger = "SELECT queued > ?2 FROM flow WHERE id = ?1"

    /// Tasks with all that it takes to carry them out; those that are ready no longer are left out.
    package func work(for ids: [TaskID]) throws(StoreError) -> [TaskWork] {
        try read { database in
            try database.rows(
                TaskWork.query + " WHERE task.id IN (SELECT value FROM json_each(?)) AND state = 'queued'",
                [Self.list(ids)], TaskWork.init)
        }
    }
}

extension Database {
    fileprivate func readyBehind(
        flow: Int64, limit: Int, excludingHosts: Set<Int64>, _ ids: String, found: [ReadyTask]
    ) throws -> [ReadyTask] {
        var tasks = found
        var known = Set(found.map(\.id))
        var hosts = 0
        var last = Int64.min
        while hosts < TaskStore.hostsBehind,
            let host = try firstRow(ReadySQL.hosts, [flow, last], { try $0.integer(0) })
        {
            last = host
            if excludingHosts.contains(host) { continue }
            hosts += 1
            let share = max(1, limit / TaskStore.hostsBehind)
            for task in try rows(ReadySQL.ofHost, [flow, host, ids, share], ReadyTask.init)
            where known.insert(task.id).inserted {
                tasks.append(task)
            }
        }
        return tasks.sorted()
    }
}

extension ReadyTask: Comparable {
    fileprivate init(_ row: RowReader) throws(StoreError) {
        id = try row.id(0)
        priority = try row.int(1)
        position = try row.integer(2)
        hostMark = try row.integer(3)
    }

    /// What starts first comes first.
    package static func < (one: ReadyTask, other: ReadyTask) -> Bool {
        if one.priority != other.priority { return one.priority > other.priority }
        return (one.position, one.id.rawValue) < (other.position, other.id.rawValue)
    }
}
