/// An asynchronous mutual-exclusion lock. Waiting callers acquire it in the order of their arrival.
actor AsyncLock {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Runs `body` with exclusive access.
    nonisolated func withLock<Value: Sendable>(_ body: @Sendable () async -> Value) async -> Value {
        await onSharedThreads { await acquire() }
        let value = await body()
        await onSharedThreads { await release() }
        return value
    }

    private func acquire() async {
        guard isTaken else { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func release() {
        // The lock passes directly to the caller that has waited longest.
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
