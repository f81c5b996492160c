import Logging
import TaskModel
import TaskStore
import Transfer

/// The scheduler's wake-ups: due times, the network, and adjustments of the clock.
extension Scheduler {
    /// Sets the alarm to the first moment at which a waiting task becomes ready or a held host may be contacted again.
    func setAlarm() {
        let task = alarm.isNextTaskStale ? nextWake() : alarm.nextTask
        perform(
            alarm.update(task: task, host: chooser.gate.nextHoldEnd(now: alarm.lastChoice), now: times))
    }

    private func perform(_ action: AlarmPlan.Action) {
        switch action {
        case .none: break
        case .cancel: tasks.setAlarm(nil)
        case .set(let time):
            let clock = clock
            let work = Task { [weak self] in
                // The wall clock may be set during the sleep, so the sleep never exceeds one hour.
                while !Task.isCancelled, clock.now() < time {
                    await clock.sleep(min(time - clock.now(), 3_600_000))
                }
                if !Task.isCancelled { await self?.alarmFired() }
            }
            tasks.setAlarm(work)
        }
    }

    private func nextWake() -> Milliseconds? {
        do throws(StoreError) {
            return try store.nextWake()
        } catch {
            scheduleRetry("cannot read when tasks become ready", error)
            return nil
        }
    }

    func alarmFired() async {
        tasks.alarmFired()
        if alarm.fired() { _ = await settleDependencies() }
        do throws(StoreError) {
            _ = try await store.releaseDue(now: clock.now())
        } catch {
            logger.error("cannot release waiting tasks", metadata: ["error": "\(error)"])
            await clock.sleep(AlarmPlan.pauseAfterFailure)
        }
        wake()
        setAlarm()
    }

    /// Starts watching the network.
    ///
    /// - Parameter changes: Returns a stream that yields each time the network becomes available or changes.
    func watchNetwork(_ changes: @escaping @Sendable () -> AsyncStream<Void> = { NetworkMonitor.changes() }) {
        guard !mode.isStopping else { return }
        tasks.watchNetwork {
            Task { [weak self] in
                for await _ in changes() { await self?.networkChanged() }
            }
        }
    }

    func networkChanged() async {
        chooser.networkChanged()
        do throws(StoreError) {
            _ = try await store.release(waitingFor: .network)
        } catch {
            // The tasks also retry by themselves from time to time.
            logger.error("cannot release tasks that wait for the network", metadata: ["error": "\(error)"])
        }
        wake()
    }

    /// Handles an adjustment of the wall clock. A relative wait keeps its length; a start time given by a user stays at
    /// that time.
    func clockWasSet() async {
        guard let change = alarm.clockWasSet(now: times) else { return }
        logger.notice("the clock was set", metadata: ["milliseconds": "\(change)"])
        await shiftWaits(by: change)
        perform(alarm.reset())
        wake()
        setAlarm()
    }

    func shiftWaits(by change: Milliseconds) async {
        // The longest wait without a request from a server to wait longer. Waits for the network or for disk space are
        // shorter.
        let longest = max(settings.retry.maximumDelay, RunOutcomePolicy.networkProbe)
        do throws(StoreError) {
            try await store.shiftWaits(
                by: change, latest: clock.now() + longest, latestAsked: clock.now() + RetryPolicy.longestHold + longest)
        } catch {
            logger.error("cannot adjust waiting times", metadata: ["error": "\(error)"])
        }
    }
}
