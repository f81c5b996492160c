/// The check of the invariants, between two events and in debug builds.
extension DownloadRun {
    /// Checks the invariants of ``DownloadStateMachine``, and that every pause has its owner. Never called from within
    /// libcurl's callbacks.
    func checkInvariants(_ event: StaticString = #function) {
        assert(violation == nil, "\(event): \(violation ?? "")")
    }

    /// The invariant that does not hold; `nil` where all do.
    private var violation: String? {
        for connection in connections {
            if let reason = unownedPause(of: connection) {
                return "connection \(connection.number) is paused: \(reason)"
            }
            if connection.transaction.isUnderWay != machine[connection.number]?.isUnderWay {
                return "connection \(connection.number) and its exchange disagree about what is under way"
            }
        }
        if connections.map(\.number).sorted() != machine.connections.map(\.number).sorted() {
            return "the connections are not those of the state machine"
        }
        return machine.violation(facts(), isDiskBusy: !file.isAtRest || file.isCompleting)
    }

    /// The reason of a pause that nothing will end; `nil` where each has its owner.
    private func unownedPause(of connection: DownloadConnection) -> String? {
        let transaction = connection.transaction
        guard transaction.isUnderWay else { return nil }
        let pauses = transaction.pauses
        if pauses.contains(.rate), !transaction.isResting { return "no timer ends its rest" }
        if pauses.contains(.suspended), !machine.isSuspended { return "the task is not suspended" }
        if pauses.contains(.checkpoint), !file.isAhead { return "no checkpoint is due" }
        if pauses.contains(.disk), !connection.writer.isBlocked { return "no block is on its way to the disk" }
        return nil
    }
}
