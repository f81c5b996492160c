import GRDB
package import TaskModel

/// A delay that a host requested in its answer to a task (Retry-After).
package struct HostHold: Sendable, Equatable {
    /// The task, which waits or is paused.
    package var task: TaskID
    /// The end of the delay in milliseconds since 1970.
    package var until: Milliseconds

    package init(task: TaskID, until: Milliseconds) {
        self.task = task
        self.until = until
    }

    /// The maximum number of stored holds; those that end last are kept.
    static let maximumCount = 1_024
}

/// A stored delay with its host and the owner of its task.
package struct StoredHold: Sendable, Equatable {
    package var task: TaskID
    package var owner: UInt32
    /// The host's fingerprint; see ``TaskWork/hostFingerprint``.
    package var fingerprint: Int64
    /// The scheme, name and port.
    package var host: String
    /// The end of the delay in milliseconds since 1970.
    package var until: Milliseconds
}

/// A host, as far as the tasks of one owner are concerned.
package struct OwnedHost: Sendable, Hashable {
    package var owner: UInt32
    /// The host's fingerprint; see ``TaskWork/hostFingerprint``.
    package var fingerprint: Int64

    package init(owner: UInt32, fingerprint: Int64) {
        self.owner = owner
        self.fingerprint = fingerprint
    }
}

extension TaskStore {
    /// Returns the delays that have not ended, of tasks that have not ended.
    package func holds(now: Milliseconds) throws(StoreError) -> [StoredHold] {
        try read { database in
            try database.rows(
                """
                SELECT task.id, owner, host_fingerprint, url, held_until FROM host_hold JOIN task ON task.id = task_id
                WHERE held_until > ? AND state IN ('waiting', 'paused', 'queued')
                """, [now]
            ) { row in
                StoredHold(
                    task: try row.id(0), owner: try row.owner(1), fingerprint: try row.integer(2),
                    host: (try? TaskAddress(parsing: row.text(3)))?.hostKey ?? "", until: try row.integer(4))
            }
        }
    }

    /// Removes the delays that hosts requested in their answers to these tasks.
    package func removeHolds(of tasks: [TaskID]) async throws(StoreError) {
        guard !tasks.isEmpty else { return }
        try await writes.perform(weight: tasks.count) { database in
            for task in tasks { try database.run("DELETE FROM host_hold WHERE task_id = ?", [task.rawValue]) }
        }
    }

    /// Returns the hosts of tasks.
    package func hosts(of ids: [TaskID]) throws(StoreError) -> Set<OwnedHost> {
        let hosts = try read { database in
            try database.rows(
                "SELECT DISTINCT owner, host_fingerprint FROM task WHERE id IN (SELECT value FROM json_each(?))",
                [Self.list(ids)]
            ) { OwnedHost(owner: try $0.owner(0), fingerprint: try $0.integer(1)) }
        }
        return Set(hosts)
    }
}

extension Database {
    func write(_ holds: [HostHold], now: Milliseconds) throws {
        guard !holds.isEmpty else { return }
        for hold in holds {
            // The task may have been removed meanwhile.
            try run(
                "INSERT OR REPLACE INTO host_hold (task_id, held_until) SELECT id, ?2 FROM task WHERE id = ?1",
                [hold.task.rawValue, hold.until])
        }
        try run(
            """
            DELETE FROM host_hold WHERE held_until <= ?1 OR task_id NOT IN (
                SELECT task_id FROM host_hold ORDER BY held_until DESC LIMIT ?2)
            """, [now, HostHold.maximumCount])
    }

    /// Shifts the ends of all holds after a change of the system clock.
    func shiftHolds(by milliseconds: Milliseconds) throws {
        guard milliseconds != 0 else { return }
        try run("UPDATE host_hold SET held_until = max(0, held_until + ?)", [milliseconds])
    }
}
