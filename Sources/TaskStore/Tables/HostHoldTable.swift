import GRDB
package import TaskModel

/// A host to which no requests are made until a given time, because it asked for a delay.
package struct HostHold: Sendable, Equatable {
    /// The host's fingerprint; see ``TaskWork/hostFingerprint``.
    package var fingerprint: Int64
    /// The scheme, name and port.
    package var host: String
    /// The end of the hold in milliseconds since 1970.
    package var until: Milliseconds

    package init(fingerprint: Int64, host: String, until: Milliseconds) {
        self.fingerprint = fingerprint
        self.host = host
        self.until = until
    }

    /// The maximum number of stored holds; those that end last are kept.
    static let maximumCount = 1_024
}

extension TaskStore {
    /// Returns the holds that have not ended.
    package func holds(now: Milliseconds) throws(StoreError) -> [HostHold] {
        try read { database in
            try database.rows("SELECT mark, host, held_until FROM host_hold WHERE held_until > ?", [now]) { row in
                HostHold(fingerprint: try row.integer(0), host: try row.text(1), until: try row.integer(2))
            }
        }
    }

    /// Removes the holds of hosts.
    package func removeHolds(of fingerprints: Set<Int64>) async throws(StoreError) {
        guard !fingerprints.isEmpty else { return }
        try await writes.perform(weight: fingerprints.count) { database in
            for fingerprint in fingerprints { try database.run("DELETE FROM host_hold WHERE mark = ?", [fingerprint]) }
        }
    }

    /// Returns the fingerprints of the tasks' hosts.
    package func hostFingerprints(of ids: [TaskID]) throws(StoreError) -> Set<Int64> {
        let fingerprints = try read { database in
            try database.rows(
                "SELECT DISTINCT host_mark FROM task WHERE id IN (SELECT value FROM json_each(?))", [Self.list(ids)]
            ) { try $0.integer(0) }
        }
        return Set(fingerprints)
    }
}

extension Database {
    func write(_ holds: [HostHold], now: Milliseconds) throws {
        guard !holds.isEmpty else { return }
        for hold in holds {
            try run(
                "INSERT OR REPLACE INTO host_hold (mark, host, held_until) VALUES (?, ?, ?)",
                [hold.fingerprint, hold.host, hold.until])
        }
        try run(
            """
            DELETE FROM host_hold WHERE held_until <= ?1 OR mark NOT IN (
                SELECT mark FROM host_hold ORDER BY held_until DESC LIMIT ?2)
            """, [now, HostHold.maximumCount])
    }

    /// Shifts the ends of all holds after a change of the system clock.
    func shiftHolds(by milliseconds: Milliseconds) throws {
        guard milliseconds != 0 else { return }
        try run("UPDATE host_hold SET held_until = max(0, held_until + ?)", [milliseconds])
    }
}
