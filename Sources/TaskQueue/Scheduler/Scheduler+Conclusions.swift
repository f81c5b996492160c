import Logging
import Synchronization
import TaskModel
import TaskStore
import Transfer

/// The results of runs.
extension Scheduler {
    /// Queues a report from a thread of the engine. Reports that arrive together are processed in one turn of this
    /// actor.
    nonisolated func post(_ report: Report) {
        let isFirst = reports.withLock { reports in
            reports.append(report)
            return reports.count == 1
        }
        if isFirst { Task { await self.processReports() } }
    }

    private func processReports() async {
        // A new array, since keeping the capacity of one that is in use elsewhere would allocate all of it again.
        let taken = reports.withLock { reports in
            defer { reports = [] }
            return reports
        }
        var endings: [RunEnding] = []
        for report in taken {
            switch report {
            case .received(let id): releaseSlot(of: id)
            case .finished(let ending): endings.append(ending)
            case .found(let id, let answer): continueAfterLookup(id, answer)
            }
        }
        if endings.isEmpty { return fill() }
        for ending in endings { releaseSlot(of: ending.id) }
        // A checkpoint in progress, which syncs a file, delays the results of its own run only.
        let isDelayed = { [running] (ending: RunEnding) in running[ending.id]?.checkpoints.current != nil }
        let (prompt, delayed) = (endings.filter { !isDelayed($0) }, endings.filter(isDelayed))
        if !prompt.isEmpty { await conclude(prompt) }
        if !delayed.isEmpty { await conclude(delayed) }
    }

    private func releaseSlot(of id: TaskID) {
        guard let task = running[id], let slot = running.releaseSlot(of: task) else { return }
        chooser.release(task.place, wasSilent: slot == .silent)
    }

    private func conclude(_ endings: [RunEnding]) async {
        var generator = SystemRandomNumberGenerator()
        var changes: [TaskChange] = []
        var ids: [TaskID] = []
        var entries: [TaskLogEntry] = []
        var checkpoints: [Task<Void, Never>] = []
        for ending in endings {
            guard let task = running[ending.id], task.lifecycle.end() else { continue }
            chooser.record(ending.report.error, of: task.work, now: clock.monotonic())
            if ending.report.error == nil { notices.taskCompleted() }
            ids.append(ending.id)
            if let checkpoint = task.checkpoints.current { checkpoints.append(checkpoint) }
            changes.append(recordedChange(for: task, ending, &entries, using: &generator))
        }
        // From here on no recording of starts can contain these runs, other than those that are awaited below.
        let begun = starts.drain(for: ids)
        // Other tasks take the slots while the conclusions are written.
        fill()
        for checkpoint in checkpoints { await checkpoint.value }
        let holds = chooser.drainHolds(offset: clock.now() - clock.monotonic())
        await starts.recording?.value
        let invalidations = chooser.invalidations
        logStarts(begun, brief: Set(ids))
        var becomesReady = false
        if let hasSettled = await write(begun + changes, holds: holds, of: ids) {
            running.countChange()
            for entry in entries { logger.log(entry) }
            if hasSettled { becomesReady = await settleDependencies() }
        }
        var places: Set<PartPlace> = []
        var madeRoom: Set<UInt32> = []
        for id in ids {
            guard let task = running.remove(id) else { continue }
            let owner = task.record.owner
            if task.record.specification.kind == .download {
                places.insert(PartPlace(task.record))
                allowances.close(id, of: owner, keeping: task.lifecycle.result.keptBytes)
                if !task.lifecycle.result.neverBegan { madeRoom.insert(owner) }
            }
            if task.lifecycle.order == .release { becomesReady = true }
            for waiter in task.waiters { waiter.resume() }
        }
        heap.tasksEnded(ids.count, running: running.count)
        eventsWritten()
        if !places.isEmpty { downloadsEnded(places) }
        // A task that became ready again while its run was still in the table was left out of the tasks read.
        if becomesReady || chooser.invalidations != invalidations { chooser.invalidate() }
        if allowances.limit != nil, !madeRoom.isEmpty { await settleQuotas(of: madeRoom, all: false) }
        fill()
        // Only after the write, since the alarm may have been set while it was in progress.
        if becomesReady || changes.contains(where: \.beginsWait) { alarm.waitsChanged() }
        setAlarm()
    }

    private func recordedChange(
        for task: RunningTask, _ ending: RunEnding, _ entries: inout [TaskLogEntry],
        using generator: inout SystemRandomNumberGenerator
    ) -> TaskChange {
        let record = task.record
        let neverBegan = ending.neverBegan(hasRequest: task.request != nil)
        var progress = ending.progress(of: task, neverBegan: neverBegan)
        if !neverBegan {
            progress.endedAttempts = task.attempts.attempts(
                endedAt: clock.now(), error: ending.failure, warning: ending.warning)
            metrics.ended(ending.report.attempts, progress.endedAttempts, of: record.specification.kind)
            count(task)
        }
        task.lifecycle.set(.init(keptBytes: progress.bytesDone, neverBegan: neverBegan))
        let report = ending.report(of: task, bytesDone: progress.bytesDone)
        let conclusion = RunOutcomePolicy(
            record: record, policy: settings.retry(of: record.specification), now: clock.now(),
            hold: hold(after: report.error, of: task),
            isHostAtWork: task.work.responsibleHost(for: report.error) == .own && report.error != nil
                && running.isAtWork(task.place.hostFingerprint, besides: task))
        guard let outcome = conclusion.conclude(report, order: task.lifecycle.order, using: &generator) else {
            return .checkpoint(record.id, progress)
        }
        if let entry = logEntry(for: task, outcome, report, ending) { entries.append(entry) }
        if outcome.lifecycle.reason == .network { watchNetwork() }
        if outcome.lifecycle.state.isEnded {
            _ = chooser.endDelays(causedBy: [record.id], now: clock.monotonic())  // those of ended tasks are not read
        }
        return .concluded(record.id, progress, outcome)
    }

    /// Returns the time for which the task must not contact its host, or the proxy that failed, in milliseconds.
    private func hold(after error: TransferError?, of task: RunningTask) -> Milliseconds {
        var fingerprint = task.place.hostFingerprint
        if case .proxy(let proxy) = task.work.responsibleHost(for: error) { fingerprint = Fingerprint.ofHost(proxy) }
        return chooser.gate.hold(of: fingerprint, owner: task.record.owner, now: clock.monotonic())
    }

    /// Writes the results, and retries until it succeeds. A task's result must not be lost because a disk is full for a
    /// while.
    ///
    /// - Returns: whether dependents are to be settled; `nil` where nothing is written because the store is closed.
    private func write(_ changes: [TaskChange], holds: [HostHold], of ids: [TaskID]) async -> Bool? {
        guard !changes.isEmpty else { return false }
        var known: StoreError?
        while true {
            do throws(StoreError) {
                return try await store.write(changes, holds: holds, now: clock.now())
            } catch {
                if error == .closed { return nil }
                if error != known {
                    logger.error("cannot record the outcomes of tasks; trying again", metadata: ["error": "\(error)"])
                }
                known = error
                // A waiting caller learns from its own write that the store accepts nothing at the moment.
                for id in ids { releaseWaiters(of: id) }
                await clock.sleep(AlarmPlan.pauseAfterFailure)
            }
        }
    }

    /// Makes the dependents of ended or removed tasks ready, or lets them fail.
    ///
    /// - Returns: Whether anything changed.
    func settleDependencies() async -> Bool {
        do throws(StoreError) {
            let count = try await store.settleDependencies(now: clock.now()) { [logger] ids, failure in
                if let entry = CommandLog.failed(ids, failure) { logger.log(entry) }
            }
            if count > 0 { running.countChange() }
            return count > 0
        } catch {
            scheduleRetry("cannot update the tasks that follow ended tasks", error)
            return false
        }
    }

    private func releaseWaiters(of id: TaskID) {
        guard let task = running[id] else { return }
        let waiters = task.waiters
        task.waiters = []
        task.lifecycle.storeRefused()
        for waiter in waiters { waiter.resume() }
    }
}
