extension TaskStore {
    /// Makes a copy of the database while it is in use: a single file without a log, which another daemon can use as
    /// its `dld.db`. Its event journal has a name of its own, since its next events differ from those of the original.
    ///
    /// Everything that was acknowledged before the call is in the copy.
    ///
    /// - Throws: ``StoreError/noRoom(_:)`` if the state directory has no room for the copy,
    ///   ``StoreError/quota(_:)`` if there are too many copies, ``StoreError/closed`` if ``endBackups()`` was called.
    package func backup() async throws(StoreError) -> StoreBackup {
        try checkAcceptsChanges()
        return try await backups.make(
            read: { body throws(StoreError) in try self.read(body) },
            check: { bytes throws(StoreError) in try self.checkRoomForCopy(of: bytes) })
    }

    /// Ends the copy that is being made, and refuses all further ones.
    package func endBackups() { backups.end() }
}
