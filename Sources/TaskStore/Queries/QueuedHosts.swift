import GRDB

extension TaskStore {
    private static let queuedHosts = """
        SELECT value FROM json_each(?) AS host WHERE EXISTS (
            SELECT 1 FROM fair_share_group CROSS JOIN task INDEXED BY task_host
                ON task.group_id = fair_share_group.id AND task.state = 'queued' AND task.host_fingerprint = host.value
            WHERE fair_share_group.owner = ? AND fair_share_group.queued > 0 AND \(GroupSQL.visible))
        """

    /// Returns those of the hosts that a user's queued tasks name.
    ///
    /// - Parameter hosts: fingerprints of hosts; see ``TaskWork/hostFingerprint``.
    package func queuedHosts(of owner: UInt32, among hosts: [Int64]) throws(StoreError) -> Set<Int64> {
        try read { database in
            Set(try database.rows(Self.queuedHosts, [Self.list(hosts), owner]) { try $0.integer(0) })
        }
    }
}
