import TaskModel
import Transfer

/// The periodic check of the running tasks.
extension Scheduler {
    /// Starts checking the running tasks at intervals.
    func startTicker() {
        tasks.startTicker {
            Task { [weak self, clock] in
                while !Task.isCancelled {
                    await clock.sleep(Self.tickInterval)
                    guard let self, await self.tick() else { return }
                }
            }
        }
    }

    /// Checks the running tasks.
    ///
    /// - Returns: Whether to continue ticking.
    private func tick() -> Bool {
        let now = clock.monotonic()
        var hasRoom = false
        var due: [(id: TaskID, since: Milliseconds)] = []
        for (id, task) in running.runs where !task.lifecycle.hasEnded {
            let changes = task.activity.observe(
                task.progress.transferredBytes, retries: task.request?.retryCount ?? 0,
                isHeldBack: task.progress.isHeldBack, stallTimeout: task.stallTimeout, now: now)
            if changes.hasFirstBytes { chooser.recordResponse(of: task.place) }
            if let isSilent = changes.silence { chooser.setSilent(isSilent, task.place) }
            if changes != .init() { hasRoom = true }
            count(task)
            if task.checkpoints.isDue(now: now) { due.append((id, task.checkpoints.last)) }
        }
        checkpoints.set(due)
        beginDueCheckpoints()
        if hasRoom { fill() }
        if !running.isEmpty { measureLoopLag() }
        heap.check(running: running.count)
        if running.isEmpty, !heap.isPending {
            tasks.tickerEnded()
            return false
        }
        return true
    }
}
