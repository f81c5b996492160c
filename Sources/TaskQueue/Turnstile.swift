/// Lets in one after the other, in the order in which they come.
actor Turnstile {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Runs `body` while no one else's runs.
    nonisolated func alone<Value: Sendable>(_ body: @Sendable () async -> Value) async -> Value {
        await onSharedThreads { await enter() }
        let value = await body()
        await onSharedThreads { await leave() }
        return value
    }

    private func enter() async {
        guard isTaken else { return isTaken = true }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func leave() {
        // Whoever waits longest takes the place over.
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
