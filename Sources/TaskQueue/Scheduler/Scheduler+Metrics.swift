import TaskModel
import TaskStore
import Transfer

/// The metrics of the running tasks.
extension Scheduler {
    /// The values that only the scheduler knows.
    struct PresentValues {
        /// The number of running tasks by kind.
        var running: [TaskKind: Int] = [.download: 0, .upload: 0]
        /// The throughput in bytes per second.
        var rates: (download: Int64, upload: Int64)
        var hostsOnHold: Int
    }

    /// Returns the present values, and counts the bytes of the running tasks up to now.
    func presentValues() -> PresentValues {
        let now = clock.monotonic()
        var values = PresentValues(
            rates: running.rates(now: now), hostsOnHold: Set(chooser.gate.heldHosts(now: now).map(\.host)).count)
        for task in running.runs.values {
            count(task)
            values.running[task.record.specification.kind, default: 0] += 1
        }
        return values
    }

    /// Counts the bytes that a task has transferred since they were counted last.
    func count(_ task: RunningTask) {
        metrics.count(task.takeUncountedBytes(), of: task.record.specification.kind)
    }

    /// Measures how long the event loops take to carry out work that is posted to them, unless a measurement is under
    /// way. Called while tasks run, so that the loops are awake anyway.
    func measureLoopLag() {
        guard !isMeasuringLoopLag else { return }
        isMeasuringLoopLag = true
        let session = manager.session
        Task {
            let began = ContinuousClock.now
            await session.eventLoopsTurn()
            metrics.loopLag.record(since: began)
            isMeasuringLoopLag = false
        }
    }
}
