import TaskModel
import TaskStore
import Transfer

/// What runs, told.
extension Scheduler {
    package var runningIDs: Set<TaskID> { Set(running.keys) }

    /// - Parameter owner: of this user's tasks; `nil`: of everyone's.
    func runningCount(owner: UInt32?) -> Int {
        owner == nil ? running.count : running.values.count { $0.record.owner == owner }
    }

    /// The stored records with what runs laid over them, and why what is ready does not.
    func statuses(of records: [TaskRecord]) -> [TaskStatus] {
        let now = clock.monotonic()
        let closed = records.contains { $0.standing.state == .queued } ? chooser.closedHosts(now: now) : []
        return records.map { record in
            guard record.standing.state == .queued else { return TaskStatus(record) }
            // What it came to is written down before it leaves here.
            guard let task = running[record.id] else { return status(ofReady: record, closedHosts: closed, now: now) }
            task.meter.note(task.progress.transferredBytes, at: now)
            return task.status(over: record, at: now)
        }
    }

    /// - Parameter now: of the clock that no one sets.
    func status(ofReady record: TaskRecord, closedHosts: Set<Int64>, now: Milliseconds) -> TaskStatus {
        var status = TaskStatus(record)
        if let pause {
            status.reason = .scheduled
            status.notBefore = pause.until
        } else if !closedHosts.isEmpty, let address = try? TaskAddress(parsing: record.specification.url) {
            let mark = Mark.ofHost(address.hostKey)
            guard closedHosts.contains(mark) else { return status }
            status.reason = .hostLimit
            let hold = chooser.gate.hold(of: mark, now: now)
            if hold > 0 { status.notBefore = clock.now().addingClamped(hold) }
        }
        return status
    }

    /// Bytes a second of all that runs.
    func rates() -> (download: Int64, upload: Int64) {
        let now = clock.monotonic()
        var rates: (download: Int64, upload: Int64) = (0, 0)
        for task in running.values {
            let rate = task.meter.rate(task.progress.transferredBytes, at: now) ?? 0
            if task.record.specification.kind == .download { rates.download += rate } else { rates.upload += rate }
        }
        return rates
    }
}
