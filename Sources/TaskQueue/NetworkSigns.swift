import Transfer

/// Tells when what waits for the network may try again.
enum NetworkSigns {
    /// A stream that says nothing where the kernel cannot be asked.
    static func stream() -> AsyncStream<Void> {
        let manager = NetworkReachabilityManager()
        let changes = manager.changes
        do throws(TransferError) {
            try manager.startListening()
        } catch {
            return AsyncStream { $0.finish() }
        }
        return AsyncStream { continuation in
            let task = Task {
                // It lives as long as someone listens.
                for await change in changes where change != .down { continuation.yield() }
                manager.stopListening()
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
