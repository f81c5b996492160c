package import TaskModel
import TaskStore
import Transfer

/// Reports on running tasks.
extension Scheduler {
    package var runningIDs: Set<TaskID> { Set(running.runs.keys) }

    /// Returns the number of running tasks.
    ///
    /// - Parameter owner: the uid of the owner; `nil` for the tasks of all users.
    func runningCount(owner: UInt32?) -> Int {
        running.count(of: owner)
    }

    /// Returns the number of running tasks of each batch.
    ///
    /// - Parameter owner: the uid of the owner; `nil` for the tasks of all users.
    func runningCounts(owner: UInt32?) -> [String: Int] {
        var counts: [String: Int] = [:]
        for run in running.runs.values where owner.map({ $0 == run.record.owner }) ?? true {
            if let batch = run.record.specification.batch { counts[batch, default: 0] += 1 }
        }
        return counts
    }

    /// Returns a forecast of the order in which ready tasks start, and the running tasks, which are stored as ready.
    func forecast() -> (forecast: StartForecast, running: Set<TaskID>) {
        // The others have given back their places already.
        let places = running.runs.values.filter(\.activity.holdsSlot).sorted { $0.startNumber < $1.startNumber }
        return (chooser.forecast(running: places.map(\.place)), runningIDs)
    }

    /// Returns the stored records updated with the live values of running tasks, and with the reason why a ready task
    /// is not running.
    func statuses(of records: [TaskRecord]) -> [TaskStatus] {
        let now = clock.monotonic()
        var blocked: [UInt32: Set<Int64>] = [:]
        for record in records where record.lifecycle.state == .queued && blocked[record.owner] == nil {
            blocked[record.owner] = chooser.blockedHosts(for: record.owner, now: now)
        }
        return records.map { record in
            guard record.lifecycle.state == .queued else { return TaskStatus(record) }
            // The result of a run is written to the store before the task leaves `running`.
            guard let task = running[record.id] else {
                return status(ofReady: record, blockedHosts: blocked[record.owner] ?? [], now: now)
            }
            task.activity.measure(task.progress.transferredBytes, now: now)
            return task.status(over: record, at: now, now: clock.now())
        }
    }

    /// Returns the statuses of the running tasks.
    ///
    /// - Parameter owner: the uid of the owner; `nil` for the tasks of all users.
    func runningStatuses() -> [TaskStatus] {
        let now = clock.monotonic()
        return running.runs.values.compactMap { task in
            guard !task.lifecycle.hasEnded else { return nil }
            task.activity.measure(task.progress.transferredBytes, now: now)
            return task.status(over: task.record, at: now, now: clock.now())
        }
    }

    /// Returns the status of a ready task.
    ///
    /// - Parameter now: the monotonic time.
    func status(ofReady record: TaskRecord, blockedHosts: Set<Int64>, now: Milliseconds) -> TaskStatus {
        var status = TaskStatus(record)
        if let pause = mode.pause {
            status.reason = .scheduled
            status.notBefore = pause.until
        } else if !chooser.slots.hasRoom(for: record.owner) {
            status.reason = .ownerLimit
        } else if let proxy = chooser.behindProxies[record.id] {
            setHold(proxy)
        } else if !blockedHosts.isEmpty, let address = try? TaskAddress(parsing: record.specification.url) {
            let fingerprint = Fingerprint.ofHost(address.hostKey)
            if blockedHosts.contains(fingerprint) { setHold(fingerprint) }
        }
        return status

        func setHold(_ fingerprint: Int64) {
            status.reason = .hostLimit
            let hold = chooser.gate.hold(of: fingerprint, owner: record.owner, now: now)
            if hold > 0 { status.notBefore = clock.now().addingClamped(hold) }
        }
    }

    /// Returns why a ready task is not running; `nil` where nothing prevents its start.
    func obstacle(of record: TaskRecord) -> StartObstacle? {
        if mode.isStopping { return .end }
        if let pause = mode.pause { return .schedule(until: pause.until) }
        guard chooser.slots.hasRoom(for: record.owner) else {
            return .ownerLimit(settings.activeTasksPerOwner ?? 0)
        }
        if let host = (try? TaskAddress(parsing: record.specification.url))?.hostKey {
            let fingerprint = Fingerprint.ofHost(host)
            let place = chooser.behindProxies[record.id] ?? fingerprint
            // The last hold to end decides.
            if let held = heldHosts().last(where: { $0.holds(place, of: record.owner) }) { return .heldHost(held) }
            guard chooser.slots.mayStart(fingerprint) else {
                return .hostConnections(host: host, limit: settings.connections(ofHost: host))
            }
        }
        return chooser.slots.hasRoom ? nil : .slots(settings.activeTasks)
    }

    /// Returns what is known of a running task besides its status; `nil` where the task is not running.
    func liveRun(of id: TaskID) -> LiveRun? {
        guard let task = running[id] else { return nil }
        return LiveRun(
            report: task.attempts, request: task.request,
            storedRanges: task.work.resumeData.flatMap { ResumeData(bytes: $0) }?.ranges ?? ByteRangeSet())
    }

    /// Returns the owners with as many active tasks as the configuration allows, and the numbers of their active tasks.
    func fullOwners() -> [(owner: UInt32, running: Int)] {
        chooser.slots.fullOwners.map { ($0, running.count(of: $0)) }
    }

    /// Returns the hosts on hold, those that are free first in front.
    func heldHosts() -> [HeldHost] {
        let now = clock.monotonic()
        let offset = clock.now() - now
        return chooser.gate.heldHosts(now: now).sorted {
            ($0.until ?? 0, $0.host, $0.owner ?? 0) < ($1.until ?? 0, $1.host, $1.owner ?? 0)
        }.map { host in
            var host = host
            host.until = host.until?.addingClamped(offset)
            return host
        }
    }

    /// Does nothing: a call returns once the scheduler has finished its present work.
    func turn() {}

    /// Returns the total throughput of all running tasks, in bytes per second.
    func rates() -> (download: Int64, upload: Int64) {
        running.rates(now: clock.monotonic())
    }
}
