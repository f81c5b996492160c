package import Logging
import Synchronization
import TaskModel
package import TaskStore
package import Transfer

/// The owner of all running tasks. No other component starts tasks or records their results.
///
/// The scheduler holds the running tasks and a window of ready ones in memory, never the whole queue. It sleeps while
/// no task runs and none waits for a point in time.
package actor Scheduler {
    let store: TaskStore
    var manager: SessionManager
    var settings: QueueSettings
    let clock: QueueClock
    let logger: Logger
    /// A callback for new events in the store.
    let eventsWritten: @Sendable () -> Void
    /// A callback that receives the directories of downloads that are no longer running.
    let downloadsEnded: @Sendable (Set<PartPlace>) -> Void

    var mode = SchedulerMode.running
    var chooser: TaskChooser
    var allowances: OwnerAllowances
    var running: RunTable
    let shared: RequestMaker.Shared
    var alarm: AlarmPlan
    var checkpoints = CheckpointQueue()
    var starts = StartRecords()
    var notices = OutcomeNotices()
    var heap = HeapReturn()
    var tasks = SchedulerTasks()
    let metrics = QueueMetrics()
    var isMeasuringLoopLag = false
    let reports = Mutex<[Report]>([])

    /// A report of the engine about a run, from one of the engine's threads.
    enum Report: Sendable {
        /// All bytes have been received, so the network slot is free.
        case received(TaskID)
        case finished(RunEnding)
        /// The result of a metadata lookup.
        case found(TaskID, Lookup.Answer)
    }

    /// The interval between checks of the running tasks, in milliseconds.
    static let tickInterval: Milliseconds = 1_000

    package init(
        store: TaskStore, manager: SessionManager, settings: QueueSettings, clock: QueueClock = .system,
        logger: Logger, passedSources: PassedSources, changes: ChangeCount,
        eventsWritten: @escaping @Sendable () -> Void,
        downloadsEnded: @escaping @Sendable (Set<PartPlace>) -> Void = { _ in }
    ) {
        alarm = AlarmPlan(now: .init(wall: clock.now(), monotonic: clock.monotonic()))
        self.store = store
        self.manager = manager
        self.settings = settings
        self.clock = clock
        self.logger = logger
        running = RunTable(changes: changes)
        running.apply(settings)
        shared = RequestMaker.Shared(passedSources: passedSources)
        self.eventsWritten = eventsWritten
        self.downloadsEnded = downloadsEnded
        chooser = TaskChooser(store: store, settings: settings)
        allowances = OwnerAllowances(store: store, limit: settings.bytesPerOwner)
    }

    // MARK: Starting

    /// Starts executing tasks.
    package func start() async {
        // The clock may have been set back while no daemon was running.
        await shiftWaits(by: 0)
        do throws(StoreError) {
            let now = clock.monotonic()
            chooser.restore(
                try store.holds(now: clock.now()), offset: clock.now() - now, now: now)
        } catch {
            logger.error("cannot read the hosts on hold", metadata: ["error": "\(error)"])
        }
        await settleQuotas(all: true)
        wake()
    }

    /// Applies new settings. Running tasks continue with the settings with which they started.
    ///
    /// - Parameter manager: the session manager for new requests; `nil` to keep the current one.
    func apply(_ settings: QueueSettings, manager: SessionManager?) {
        if let manager { self.manager = manager }
        self.settings = settings
        shared.recentDirectories.removeAll()
        running.apply(settings)
        self.manager.retrier = InterruptionRetrier(policy: settings.retry)
        self.manager.session.setHostRates(settings.hostRates)
        for task in running.runs.values { task.manager.session.setHostRates(settings.hostRates) }
        chooser.apply(settings)
        if settings.bytesPerOwner != allowances.limit { allowances.limit = settings.bytesPerOwner }
        wake()
    }

    /// Starts or ends a pause. A pause ends all runs, writes their progress without counting attempts, and starts
    /// nothing until it ends.
    func setPause(_ pause: SchedulePause?) {
        mode.setPause(pause)
        if pause != nil {
            _ = end(Array(running.runs.keys), .release, owner: nil)
        } else {
            wake()
            setAlarm()
        }
    }

    /// Changes the rate limit of a running task.
    ///
    /// - Parameter rate: the limit in bytes per second; `nil` for unlimited.
    func limit(_ id: TaskID, to rate: Int64?) {
        // The records read in advance contain the old limit.
        chooser.invalidate()
        _ = running[id]?.request?.limit(to: rate)
    }

    /// Looks for ready tasks and starts them.
    package func wake() {
        // Waits may have ended by themselves.
        running.countChange()
        alarm.waitsChanged()
        chooser.invalidate()
        allowances.invalidate()
        fill()
    }

    /// The time of both clocks.
    var times: AlarmPlan.Times { .init(wall: clock.now(), monotonic: clock.monotonic()) }

    func fill() {
        alarm.tasksChosen(at: clock.monotonic())
        guard mode.mayStart else { return }
        var maker = makeRequests()
        while running.room > 0 {
            let chosen = choose()
            if chosen.isEmpty { break }
            for (work, place) in chosen { start(work, in: place, &maker) }
        }
        if !running.isEmpty { startTicker() }
        recordStartsSoon()
        if chooser.slots.hasRoom || alarm.hasFailedQuery { setAlarm() }
    }

    /// Schedules a new attempt after a failure of the store, such as a lack of file descriptors. Otherwise no event may
    /// ever trigger one.
    func scheduleRetry(_ message: Logger.Message, _ error: StoreError) {
        guard error != .closed else { return }
        logger.error(message, metadata: ["error": "\(error)"])
        alarm.queryFailed(at: clock.monotonic())
    }

    func makeRequests() -> RequestMaker {
        RequestMaker(
            manager: manager, settings: settings, store: store, shared: shared, now: clock.monotonic())
    }

    private func choose() -> [(work: TaskWork, place: TaskChooser.Place)] {
        let damaged = chooser.unreadable.count
        defer {
            if chooser.unreadable.count > damaged {
                logger.error("the records of tasks are damaged", metadata: ["tasks": "\(chooser.unreadable.sorted())"])
            }
        }
        do throws(StoreError) {
            return try chooser.choose(
                limit: running.room, busy: running, now: clock.monotonic())
        } catch {
            scheduleRetry("cannot read ready tasks", error)
            return []
        }
    }
}
