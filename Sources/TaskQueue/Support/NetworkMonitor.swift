import Transfer

/// A source of notifications that tasks waiting for the network may be retried.
enum NetworkMonitor {
    /// Returns a stream of notifications. The stream ends immediately where the kernel's network state cannot be
    /// monitored.
    static func changes() -> AsyncStream<Void> {
        let manager = NetworkReachabilityManager()
        let changes = manager.changes
        do throws(TransferError) {
            try manager.startListening()
        } catch {
            return AsyncStream { $0.finish() }
        }
        return AsyncStream { continuation in
            let task = Task {
                // The manager stays alive as long as the stream is in use.
                for await change in changes where change != .down { continuation.yield() }
                manager.stopListening()
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
