import TaskStore

extension TaskQueue {
    /// Makes a copy of the database while it is in use, and holds it for a client. It contains every user's tasks and
    /// secrets. A copy that the client had before is freed first, to make room.
    package func backUp(for client: HeldBackup) async throws(QueueError) -> HeldBackup.Facts {
        client.clear()
        let backup = try await stored { () async throws(StoreError) in try await store.backup() }
        return client.replace(with: backup)
    }

    /// Ends the copies that are being made, and refuses further ones, since the daemon is about to end.
    package func endBackups() { store.endBackups() }
}
