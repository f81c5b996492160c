import GRDB
package import TaskModel

/// A task that may start, with the properties needed to choose between tasks.
package struct ReadyTask: Sendable, Equatable {
    package var id: TaskID
    package var priority: Int
    /// The position within the priority.
    package var position: Int64
    /// The host's fingerprint; see ``TaskWork/hostFingerprint``.
    package var hostFingerprint: Int64

    package init(id: TaskID, priority: Int, position: Int64, hostFingerprint: Int64) {
        self.id = id
        self.priority = priority
        self.position = position
        self.hostFingerprint = hostFingerprint
    }
}

/// The SQL statements that choose the tasks to start. Each names its index. SQLite has no statistics about the number
/// of tasks in each state and would otherwise scan all queued tasks.
enum ReadySQL {
    static let owners = """
        SELECT owner FROM fair_share_group INDEXED BY fair_share_group_ready
        WHERE queued > 0 AND staged_batch_id IS NULL AND owner > ? ORDER BY owner LIMIT 1
        """
    static let groups = """
        SELECT id, owner, batch FROM fair_share_group INDEXED BY fair_share_group_ready
        WHERE queued > 0 AND staged_batch_id IS NULL AND owner = ? AND id > ? ORDER BY id LIMIT ?
        """
    /// The inner limit bounds the number of skipped tasks of excluded hosts.
    static let inOrder = """
        SELECT id, priority, position, host_fingerprint FROM (
            SELECT id, priority, position, host_fingerprint FROM task INDEXED BY task_ready
            WHERE state = 'queued' AND group_id = ?1 ORDER BY priority DESC, position, id LIMIT ?2)
        WHERE host_fingerprint NOT IN (SELECT value FROM json_each(?3)) AND id NOT IN (SELECT value FROM json_each(?4))
        LIMIT ?5
        """
    static let hosts = """
        SELECT host_fingerprint FROM task INDEXED BY task_host
        WHERE state = 'queued' AND group_id = ? AND host_fingerprint > ? ORDER BY host_fingerprint LIMIT 1
        """
    static let ofHost = """
        SELECT id, priority, position, host_fingerprint FROM task INDEXED BY task_host
        WHERE state = 'queued' AND group_id = ?1 AND host_fingerprint = ?2
            AND id NOT IN (SELECT value FROM json_each(?3))
        ORDER BY priority DESC, position, id LIMIT ?4
        """
}

extension TaskStore {
    /// The maximum number of a group's tasks that one query examines, in addition to the tasks excluded by id.
    private static let lookAhead = 4_096
    /// The maximum number of hosts that one query examines after the excluded ones.
    fileprivate static let hostsBehind = 32

    /// Returns the owners with larger uids than `owner` that have tasks to start.
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

    /// Returns an owner's groups that have tasks to start, ordered by id, starting after `group`.
    package func readyGroups(
        of owner: UInt32, after group: Int64 = 0, limit: Int
    ) throws(StoreError) -> [FairShareGroup] {
        try read { database in
            try database.rows(ReadySQL.groups, [owner, group, limit]) { row in
                FairShareGroup(id: try row.integer(0), owner: try row.owner(1), batch: try row.textOrNil(2))
            }
        }
    }

    /// Returns the tasks of a group that may start, ordered by priority (highest first), position and age (oldest
    /// first).
    ///
    /// The cost does not grow with the number of waiting tasks, or with the number of excluded hosts' tasks among them.
    /// If thousands of tasks of excluded hosts precede all others, the first tasks of the next hosts are found by host,
    /// and the order between hosts is lost.
    ///
    /// - Parameters:
    ///   - excludingHosts: fingerprints of hosts; see ``TaskWork/hostFingerprint``.
    ///   - excluding: the running tasks, which are stored as ready.
    package func readyTasks(
        of group: Int64, limit: Int, excludingHosts: Set<Int64> = [], excluding: Set<TaskID> = []
    ) throws(StoreError) -> [ReadyTask] {
        let ids = Self.list(excluding)
        let hosts = Self.list(excludingHosts)
        let looks = Self.lookAhead + excluding.count
        return try read { database in
            let inOrder = try database.rows(
                ReadySQL.inOrder, [group, looks, hosts, ids, limit], ReadyTask.init)
            guard inOrder.count < limit, !excludingHosts.isEmpty,
                try database.firstRow(Self.isLonger, [group, looks], { try $0.integer(0) != 0 }) == true
            else { return inOrder }
            return try database.readyBehind(
                group: group, limit: limit, excludingHosts: excludingHosts, ids, found: inOrder)
        }
    }

    private static let isLonger = "SELECT queued > ?2 FROM fair_share_group WHERE id = ?1"

    /// Returns the tasks with all data needed to carry them out; tasks that are no longer ready are omitted.
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
        group: Int64, limit: Int, excludingHosts: Set<Int64>, _ ids: String, found: [ReadyTask]
    ) throws -> [ReadyTask] {
        var tasks = found
        var known = Set(found.map(\.id))
        var hosts = 0
        var last = Int64.min
        while hosts < TaskStore.hostsBehind,
            let host = try firstRow(ReadySQL.hosts, [group, last], { try $0.integer(0) })
        {
            last = host
            if excludingHosts.contains(host) { continue }
            hosts += 1
            let share = max(1, limit / TaskStore.hostsBehind)
            for task in try rows(ReadySQL.ofHost, [group, host, ids, share], ReadyTask.init)
            where known.insert(task.id).inserted {
                tasks.append(task)
            }
        }
        return tasks.sorted()
    }
}

extension ReadyTask: Comparable {
    init(_ row: RowReader) throws(StoreError) {
        id = try row.id(0)
        priority = try row.int(1)
        position = try row.integer(2)
        hostFingerprint = try row.integer(3)
    }

    /// Orders tasks by their order of start.
    package static func < (one: ReadyTask, other: ReadyTask) -> Bool {
        if one.priority != other.priority { return one.priority > other.priority }
        return (one.position, one.id.rawValue) < (other.position, other.id.rawValue)
    }
}
