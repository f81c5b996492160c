/// The network state that retriers use. Tests can replace it.
struct NetworkWaiting: Sendable {
    var isReachable: @Sendable () -> Bool
    /// Waits for the network to come back, for at most the given number of milliseconds.
    ///
    /// Returns whether the network came back, or changed.
    var comesBack: @Sendable (Int64) async -> Bool

    static func system(_ manager: NetworkReachabilityManager, clock: RetryClock) -> NetworkWaiting {
        NetworkWaiting(isReachable: { manager.status == .reachable }) { milliseconds in
            // The order matters: `changes` also holds a change between the start of listening and the status check.
            let changes = manager.changes
            // If the kernel gives no information, the wait ends by its time limit alone.
            try? manager.startListening()
            if manager.status == .reachable { return true }
            return await withTaskGroup(of: Bool?.self) { group in
                group.addTask {
                    for await change in changes where change != .down { return true }
                    return nil
                }
                group.addTask {
                    await clock.sleep(milliseconds)
                    return false
                }
                defer { group.cancelAll() }
                for await answer in group { if let answer { return answer } }
                return false
            }
        }
    }
}
