import Logging
import TaskModel
import TaskStore
import Transfer

/// Ending, holding and restarting tasks on behalf of other components.
extension Scheduler {
    /// Ends the running tasks among `ids`, prevents all of them from starting, and runs `body`. Its changes are in
    /// effect when the tasks may start again.
    ///
    /// - Parameters:
    ///   - owner: the uid whose tasks are ended; `nil` for the tasks of all users.
    ///   - restartsAtOnce: Whether an ended task keeps its slot and, if ready, is started again before any other task.
    ///   - body: receives the tasks that this order ended.
    nonisolated func withStopped<Value: Sendable>(
        _ ids: [TaskID], order: RunOutcomePolicy.Order, owner: UInt32?, restartsAtOnce: Bool = false,
        _ body: @Sendable (_ stopped: Set<TaskID>) async -> Value
    ) async -> Value {
        let (stopped, places) = await onSharedThreads {
            await stop(ids, order, owner: owner, keepsPlaces: restartsAtOnce)
        }
        let value = await body(stopped)
        await onSharedThreads { await release(ids, of: owner, restarting: restartsAtOnce ? stopped : [], in: places) }
        return value
    }

    /// Prevents `ids` from starting and waits until those that run have ended.
    ///
    /// - Returns: the tasks that this order ended and, with `keepsPlaces`, the slots that they still hold.
    private func stop(
        _ ids: [TaskID], _ order: RunOutcomePolicy.Order, owner: UInt32?, keepsPlaces: Bool
    ) async -> (stopped: Set<TaskID>, places: [TaskChooser.Place]) {
        running.hold(ids, of: owner)
        let stopped = end(ids, order, owner: owner)
        // The slots are counted twice until the runs have ended, so that no other task takes them.
        let places = keepsPlaces ? stopped.compactMap { running[$0]?.place } : []
        for place in places { chooser.reserve(place) }
        for id in ids where owner == nil || running[id]?.record.owner == owner { await concluded(id) }
        return (stopped, places)
    }

    /// Reverts ``stop(_:_:owner:keepsPlaces:)``.
    private func release(
        _ ids: [TaskID], of owner: UInt32?, restarting ended: Set<TaskID>, in places: [TaskChooser.Place]
    ) {
        running.release(ids, of: owner)
        for place in places { chooser.release(place) }
        restart(ended)
        wake()
        setAlarm()
    }

    /// Ends the holds on the hosts of tasks that a user wants to start now, until the hosts request a hold again.
    ///
    /// - Returns: the hosts that were on hold.
    func endHolds(of ids: [TaskID]) async -> [String] {
        var ended: (hosts: [String], tasks: [TaskID]) = ([], [])
        do throws(StoreError) {
            ended = chooser.endHolds(of: ids, at: try store.hosts(of: ids), now: clock.monotonic())
            try await store.removeHolds(of: ended.tasks)
        } catch {
            if error != .closed {
                logger.error("cannot release the hosts of resumed tasks", metadata: ["error": "\(error)"])
            }
        }
        return ended.hosts
    }

    /// Ends the delays that hosts requested in their answers to tasks that have ended or were changed.
    func endDelays(causedBy ids: some Sequence<TaskID>) async {
        let ended = chooser.endDelays(causedBy: ids, now: clock.monotonic())
        do throws(StoreError) {
            try await store.removeHolds(of: ended)
        } catch {
            if error != .closed {
                logger.error("cannot forget what hosts asked of ended tasks", metadata: ["error": "\(error)"])
            }
        }
    }

    func restart(_ ids: Set<TaskID>) {
        guard !ids.isEmpty, mode.mayStart else { return }
        var maker = makeRequests()
        for id in ids where running[id] == nil {
            do throws(StoreError) {
                guard let work = try store.work(for: id), work.record.lifecycle.state == .queued,
                    !running.isBusy(id, of: work.record.owner),
                    let place = chooser.place(of: work, now: clock.monotonic())
                else { continue }
                start(work, in: place, &maker)
            } catch {
                scheduleRetry("cannot read a resumed task", error)
                setAlarm()
            }
        }
        recordStartsSoon()
    }

    /// Orders tasks to end.
    ///
    /// - Returns: those of `ids` that are running and will end by this order.
    func end(_ ids: some Sequence<TaskID>, _ order: RunOutcomePolicy.Order, owner: UInt32?) -> Set<TaskID> {
        var ended: Set<TaskID> = []
        for id in ids {
            guard let task = running[id], owner == nil || task.record.owner == owner, task.lifecycle.stop(order) else {
                continue
            }
            task.request?.cancel()
            ended.insert(id)
        }
        return ended
    }

    /// Returns when the conclusion of the task's run has been written, or cannot be written for now. Returns
    /// immediately where the task is not running.
    func concluded(_ id: TaskID) async {
        guard running[id]?.lifecycle.isAboutToEnd == true else { return }
        await withCheckedContinuation { continuation in
            // No suspension point lies between the check above and this line.
            running[id]?.waiters.append(continuation)
        }
    }

    /// Ends all runs, writes their progress and starts no more tasks. The runs do not count as attempts.
    package func stop() async {
        mode.stop()
        _ = alarm.stop()
        tasks.stop()
        let ids = Array(running.runs.keys)
        _ = end(ids, .release, owner: nil)
        for id in ids { await concluded(id) }
    }
}
