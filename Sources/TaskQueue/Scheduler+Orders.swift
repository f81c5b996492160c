import Logging
import TaskModel
import TaskStore
import Transfer

/// What others have the scheduler end, hold and start again.
extension Scheduler {
    /// Ends what of `ids` runs, keeps all of them from starting, and runs `body`; what `body` wrote then counts.
    ///
    /// - Parameters:
    ///   - owner: only this user's tasks are ended; `nil`: everyone's.
    ///   - goesOnAtOnce: what is ended keeps its slot, and is started again, where it is ready then, before anything
    ///     else is.
    ///   - body: is given the tasks that were ended by this order.
    nonisolated func withStopped<Value: Sendable>(
        _ ids: [TaskID], order: RunConclusion.Order, owner: UInt32?, goesOnAtOnce: Bool = false,
        _ body: @Sendable (_ stopped: Set<TaskID>) async -> Value
    ) async -> Value {
        let (stopped, places) = await onSharedThreads {
            await stop(ids, order, owner: owner, keepsPlaces: goesOnAtOnce)
        }
        let value = await body(stopped)
        await onSharedThreads { await letGo(of: ids, startingAgain: goesOnAtOnce ? stopped : [], in: places) }
        return value
    }

    /// Keeps `ids` from starting, and returns when those of them that ran have ended.
    ///
    /// - Returns: the tasks that were ended by this order, and with `keepsPlaces` the slots that they still hold.
    private func stop(
        _ ids: [TaskID], _ order: RunConclusion.Order, owner: UInt32?, keepsPlaces: Bool
    ) async -> (stopped: Set<TaskID>, places: [TaskChooser.Place]) {
        for id in ids { held[id, default: 0] += 1 }
        let stopped = end(ids, order, owner: owner)
        // Counted twice until their runs have ended: nobody takes their places.
        let places = keepsPlaces ? stopped.compactMap { running[$0]?.place } : []
        for place in places { chooser.reserve(place) }
        for id in ids { await concluded(id) }
        return (stopped, places)
    }

    /// Undoes ``stop(_:_:owner:keepsPlaces:)``.
    private func letGo(of ids: [TaskID], startingAgain ended: Set<TaskID>, in places: [TaskChooser.Place]) {
        for id in ids {
            held[id, default: 1] -= 1
            if held[id] == 0 { held[id] = nil }
        }
        for place in places { chooser.give(back: place) }
        startAgain(ended)
        wake()
        setAlarm()
    }

    /// A person wants tasks to start now: what their hosts asked for is set aside, until they ask again.
    func openHosts(of ids: [TaskID]) async {
        do throws(StoreError) {
            let marks = try store.hostMarks(of: ids)
            chooser.open(marks)
            try await store.removeHolds(of: marks)
        } catch {
            if error != .closed {
                logger.error("cannot open the hosts of resumed tasks", metadata: ["error": "\(error)"])
            }
        }
    }

    func startAgain(_ ids: Set<TaskID>) {
        guard !ids.isEmpty, !isStopping, pause == nil else { return }
        var maker = makeRequests()
        for id in ids where running[id] == nil && held[id] == nil {
            do throws(StoreError) {
                guard let work = try store.work(for: id), work.record.standing.state == .queued,
                    let place = chooser.place(of: work, now: clock.monotonic())
                else { continue }
                start(work, in: place, &maker)
            } catch {
                askAgainLater("cannot read a task that is to go on", error)
                setAlarm()
            }
        }
    }

    /// - Returns: those of `ids` that run and will end by this order.
    func end(_ ids: some Sequence<TaskID>, _ order: RunConclusion.Order, owner: UInt32?) -> Set<TaskID> {
        var ended: Set<TaskID> = []
        for id in ids {
            guard let task = running[id], owner == nil || task.record.owner == owner, !task.isConcluding else {
                continue
            }
            if task.order == nil || order == .remove || order == .cancel { task.order = order }
            task.request?.cancel()
            ended.insert(id)
        }
        return ended
    }

    /// Returns when what the task's run came to is written down, or cannot be for now; at once where it does not run.
    func concluded(_ id: TaskID) async {
        if running[id]?.cannotBeWritten == true { return }
        guard running[id]?.isConcluding == true || running[id]?.order != nil else { return }
        await withCheckedContinuation { continuation in
            // No suspension lies between the look above and this.
            running[id]?.waiters.append(continuation)
        }
    }

    /// Ends everything that runs with its progress written down, and starts nothing more. Burns no attempt.
    package func stop() async {
        isStopping = true
        alarm?.task.cancel()
        alarm = nil
        ticker?.cancel()
        networkWatch?.cancel()
        let ids = Array(running.keys)
        _ = end(ids, .release, owner: nil)
        for id in ids { await concluded(id) }
    }
}
