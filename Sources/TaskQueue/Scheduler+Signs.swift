import Logging
import TaskModel
import TaskStore
import Transfer

/// What the scheduler waits for: hours that come, the network, a clock that is set.
extension Scheduler {
    /// Wakes up when the first waiting task becomes ready, or the first host that was left alone may be asked again.
    func setAlarm() {
        let wake = nextWake()
        let monotonic = clock.monotonic()
        // Also of a host that has opened since: it was closed when tasks were looked for.
        let others = [chooser.gate.nextOpening(now: lastChoice), asksAgainAt].compactMap(\.self)
            .map { self.clock.now().addingClamped($0.subtractingClamped(monotonic)) }
        guard !isStopping, let next = (others + [wake].compactMap(\.self)).min() else {
            alarm?.task.cancel()
            alarm = nil
            return
        }
        // Two clocks were read for it, each to the millisecond.
        if let alarm, alarm.at.subtractingClamped(next).magnitude <= 2 { return }
        alarm?.task.cancel()
        let clock = clock
        let task = Task { [weak self] in
            // The wall clock may be set while this sleeps; never far past a day without a look.
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

    /// - Parameter signs: says each time that the network is there again, or is another.
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
            // They look for it themselves, from time to time.
            logger.error("cannot release tasks that wait for the network", metadata: ["error": "\(error)"])
        }
        wake()
    }

    /// A span of waiting is as long as it was; an hour that a person named comes at that hour.
    func clockWasSet() async {
        let offset = clock.now() - clock.monotonic()
        let change = offset - clockOffset
        clockOffset = offset
        // Small steps are the work of whoever keeps the clock right.
        guard abs(change) >= 500 else { return }
        logger.notice("the clock was set", metadata: ["milliseconds": "\(change)"])
        await shiftWaits(by: change)
        alarm?.task.cancel()
        alarm = nil
        wake()
        setAlarm()
    }

    func shiftWaits(by change: Milliseconds) async {
        // Where no server asked for more, no wait is longer than that. (One for the network or for room is shorter.)
        let longest = max(settings.retry.maximumDelay, RunConclusion.networkProbe)
        do throws(StoreError) {
            try await store.shiftWaits(
                by: change, latest: clock.now() + longest, latestAsked: clock.now() + RetryPolicy.longestHold + longest)
        } catch {
            logger.error("cannot set waits right", metadata: ["error": "\(error)"])
        }
    }
}
