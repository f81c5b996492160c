import Logging
import TaskModel
import TaskStore
import Transfer

/// The scheduler's wake-ups: due times, the network, and adjustments of the clock.
extension Scheduler {
    /// Sets the alarm to the first moment at which a waiting task becomes ready or a held host may be contacted again.
    func setAlarm() {
        let wake = nextWake()
        let monotonic = clock.monotonic()
        // Hosts that have opened since the last choice are included, since they were closed during that choice.
        let others = [chooser.gate.nextOpening(now: lastChoice), asksAgainAt].compactMap(\.self)
            .map { self.clock.now().addingClamped($0.subtractingClamped(monotonic)) }
        guard !isStopping, let next = (others + [wake].compactMap(\.self)).min() else {
            alarm?.task.cancel()
            alarm = nil
            return
        }
        // The time is derived from two clocks, each read with millisecond resolution.
        if let alarm, alarm.at.subtractingClamped(next).magnitude <= 2 { return }
        alarm?.task.cancel()
        let clock = clock
        let task = Task { [weak self] in
            // The wall clock may be set during the sleep, so the sleep never exceeds one hour.
            while !Task.isCancelled, clock.now() < next {
                await clock.sleep(min(next - clock.now(), 3_600_000))
            }
            if !Task.isCancelled { await self?.ring() }
        }
        alarm = (next, task)
    }

    private func nextWake() -> Milliseconds? {
        do throws(StoreError) {
            return try store.nextWake()
        } catch {
            askAgainLater("cannot read when tasks become ready", error)
            return nil
        }
    }

    func ring() async {
        alarm = nil
        if asksAgainAt != nil {
            asksAgainAt = nil
            _ = await settleDependencies()
        }
        do throws(StoreError) {
            _ = try await store.releaseDue(now: clock.now())
        } catch {
            logger.error("cannot release waiting tasks", metadata: ["error": "\(error)"])
            await clock.sleep(Self.pauseAfterFailure)
        }
        wake()
        setAlarm()
    }

    /// Starts watching the network.
    ///
    /// - Parameter signs: Returns a stream that yields each time the network becomes available or changes.
    func watchNetwork(_ signs: @escaping @Sendable () -> AsyncStream<Void> = { NetworkSigns.stream() }) {
        guard networkWatch == nil, !isStopping else { return }
        networkWatch = Task { [weak self] in
            for await _ in signs() { await self?.networkChanged() }
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
        let offset = clock.now() - clock.monotonic()
        let change = offset - clockOffset
        clockOffset = offset
        // Small steps come from clock synchronisation and are ignored.
        guard abs(change) >= 500 else { return }
        logger.notice("the clock was set", metadata: ["milliseconds": "\(change)"])
        await shiftWaits(by: change)
        alarm?.task.cancel()
        alarm = nil
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
            logger.error("cannot set waits right", metadata: ["error": "\(error)"])
        }
    }
}
