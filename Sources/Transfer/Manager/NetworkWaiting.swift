/// The network as retriers see it, so that tests can have their own.
struct NetworkWaiting: Sendable {
    var isReachable: @Sendable () -> Bool
    /// Waits for at most so many milliseconds.
    ///
    /// Returns whether the network came back, or changed.
    var comesBack: @Sendable (Int64) async -> Bool

    static func system(_ manager: NetworkReachabilityManager, clock: RetryClock) -> NetworkWaiting {
        NetworkWaiting(isReachable: { manager.status == .reachable }) { milliseconds in
            // In this order: what changes between the listening and the look is in the stream.
            let changes = manager.changes
            // Where the kernel cannot be asked, the time alone ends the wait.
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
