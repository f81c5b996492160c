import CLinux
import Logging
import Synchronization
import TaskModel
import TaskStore
import Transfer

/// The owner of all running tasks. No other component starts tasks or records their results.
///
/// The scheduler holds the running tasks and a window of ready ones in memory, never the whole queue. It sleeps while
/// no task runs and none waits for a point in time.
package actor Scheduler {
    let store: TaskStore
    var manager: SessionManager
    var settings: QueueSettings
    /// The current pause by the schedule, during which no task runs.
    var pause: SchedulePause?
    let clock: QueueClock
    let logger: Logger
    /// A callback for new events in the store.
    private let eventsWritten: @Sendable () -> Void
    /// A callback that receives the directories of downloads that are no longer running.
    private let downloadsEnded: @Sendable (Set<PartPlace>) -> Void

    var chooser: TaskChooser
    var allowances: OwnerAllowances
    /// The owners whose exhausted quota has been logged.
    var ownersAtQuota: Set<UInt32> = []
    var running: [TaskID: RunningTask] = [:]
    /// The tasks that a command is processing, with the number of commands. They must not start meanwhile.
    var held: [TaskID: Int] = [:]
    let detachedPlaces = DetachedPlaces()
    private let earlierNames = EarlierNames()
    private let passedSources: PassedSources
    var isStopping = false
    var networkWatch: Task<Void, Never>?
    /// Whether a task waits for the network and none has completed since.
    var isNetworkAway = false
    /// The offset of the wall clock from the monotonic clock, in milliseconds.
    var clockOffset: Milliseconds
    var ticker: Task<Void, Never>?
    private var heap = HeapLevel()
    private let heapWork = BlockingWork(name: "dld-heap")
    /// The tasks whose checkpoint is due, in ascending order of urgency.
    var dueCheckpoints: [TaskID] = []
    var checkpointsUnderWay = 0
    var alarm: (at: Milliseconds, task: Task<Void, Never>)?
    /// The monotonic time of the last choice of tasks, in milliseconds.
    var lastChoice: Milliseconds = 0
    /// The monotonic time, in milliseconds, at which to repeat a failed query of the store.
    var asksAgainAt: Milliseconds?
    private let reports = Mutex<[Report]>([])

    /// A report of the engine about a run, from one of the engine's threads.
    private enum Report: Sendable {
        /// All bytes have been received, so the network slot is free.
        case received(TaskID)
        case finished(Finished)
        /// The result of a metadata lookup.
        case found(TaskID, Lookup.Answer)
    }

    /// The end of a run.
    private struct Finished: Sendable {
        var id: TaskID
        var report: RunOutcomePolicy.Report
        var path: String?
        var size: Int64?
        var resumeData: ResumeData?
    }

    /// The maximum number of running tasks, including those that have received all bytes and whose conclusion is being
    /// written. The limit applies back-pressure to the network where the disk cannot keep up.
    private static let runningLimit = 4_096
    /// The interval between checks of the running tasks, in milliseconds.
    private static let tickInterval: Milliseconds = 1_000
    /// The unsynced bytes after which a checkpoint is due.
    static let checkpointBytes: Int64 = 32 << 20
    /// The maximum number of bytes that a download may be ahead of its checkpoint.
    static let checkpointLimit: Int64 = 64 << 20
    /// The pause before a failed store operation is repeated, in milliseconds.
    static let pauseAfterFailure: Milliseconds = 1_000
    package init(
        store: TaskStore, manager: SessionManager, settings: QueueSettings, clock: QueueClock = .system,
        logger: Logger, passedSources: PassedSources, eventsWritten: @escaping @Sendable () -> Void,
        downloadsEnded: @escaping @Sendable (Set<PartPlace>) -> Void = { _ in }
    ) {
        clockOffset = clock.now() - clock.monotonic()
        self.store = store
        self.manager = manager
        self.settings = settings
        self.clock = clock
        self.logger = logger
        self.passedSources = passedSources
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
            logger.error("cannot read which hosts are left alone", metadata: ["error": "\(error)"])
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
        self.manager.retrier = InterruptionRetrier(policy: settings.retry)
        self.manager.session.setHostRates(settings.hostRates)
        for task in running.values { task.manager.session.setHostRates(settings.hostRates) }
        chooser.apply(settings)
        if settings.bytesPerOwner != allowances.limit { allowances.limit = settings.bytesPerOwner }
        wake()
    }

    /// Starts or ends a pause. A pause ends all runs, writes their progress without counting attempts, and starts
    /// nothing until it ends.
    func setPause(_ pause: SchedulePause?) {
        self.pause = pause
        if pause != nil {
            _ = end(Array(running.keys), .release, owner: nil)
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
        chooser.invalidate()
        allowances.invalidate()
        fill()
    }

    private func fill() {
        lastChoice = clock.monotonic()
        guard !isStopping, pause == nil else { return }
        var maker = makeRequests()
        while running.count < Self.runningLimit {
            let chosen = choose()
            if chosen.isEmpty { break }
            for (work, place) in chosen { start(work, in: place, &maker) }
        }
        if ticker == nil, !running.isEmpty { startTicker() }
        if chooser.slots.hasRoom || asksAgainAt != nil { setAlarm() }
    }

    /// Schedules a new attempt after a failure of the store, such as a lack of file descriptors. Otherwise no event may
    /// ever trigger one.
    func askAgainLater(_ message: Logger.Message, _ error: StoreError) {
        guard error != .closed else { return }
        logger.error(message, metadata: ["error": "\(error)"])
        asksAgainAt = asksAgainAt ?? clock.monotonic() + Self.pauseAfterFailure
    }

    func makeRequests() -> RequestMaker {
        RequestMaker(
            manager: manager, settings: settings, store: store, detachedPlaces: detachedPlaces,
            earlierNames: earlierNames, passedSources: passedSources)
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
                limit: Self.runningLimit - running.count, busy: .init(running: running, held: held),
                now: clock.monotonic())
        } catch {
            askAgainLater("cannot read ready tasks", error)
            return []
        }
    }

    func start(
        _ work: TaskWork, in place: TaskChooser.Place, _ maker: inout RequestMaker, found: Lookup.Answer? = nil
    ) {
        let record = work.record
        let made: RequestMaker.Made
        do throws(TransferError) {
            made = try maker.make(work, found: found, share: try allowances.open(record))
        } catch {
            enter(work, in: place, nil)
            // The data of earlier runs still counts.
            let ending = Finished(
                id: record.id, report: .init(error: error, attempts: 1, transferred: 0),
                resumeData: work.resumeData.flatMap { ResumeData(bytes: $0) })
            return post(.finished(ending))
        }
        switch made {
        case .done(let path, let size, let isVerified):
            enter(work, in: place, nil)
            let ending = Finished(
                id: record.id, report: .init(attempts: 1, transferred: 0, isVerified: isVerified), path: path,
                size: max(size, record.bytesTotal ?? 0))
            post(.finished(ending))
        case .lookup(let lookup):
            enter(work, in: place, lookup.request, counts: false)
            lookup.start { [weak self] result in
                switch result {
                case .success(let answer): self?.post(.found(record.id, answer))
                case .failure(let error):
                    self?.post(
                        .finished(
                            Finished(
                                id: record.id, report: .init(error: error, attempts: 1, transferred: 0),
                                resumeData: work.resumeData.flatMap { ResumeData(bytes: $0) })))
                }
            }
        case .download(let request):
            enter(work, in: place, request)
            request.onReceived { [weak self] in self?.post(.received(record.id)) }
            request.onCheckpointDue { [weak self] in
                Task { await self?.checkpoint(record.id) }
            }
            request.response(queue: .inline) { [weak self] response in
                var ending = Finished(id: record.id, report: Self.report(request))
                switch response.result {
                case .success(let file):
                    ending.path = file.path
                    ending.size = file.size
                    ending.report.isVerified = file.isVerified
                case .failure(let error):
                    ending.report.error = error
                    ending.resumeData = response.resumeData
                }
                self?.post(.finished(ending))
            }
            request.resume()
        case .upload(let upload):
            let request = upload.request
            enter(work, in: place, request)
            keep(upload.source, of: record.id)
            request.response(queue: .inline) { [weak self] response in
                var ending = Finished(id: record.id, report: Self.report(request))
                ending.report.error = response.error
                if response.error == nil { ending.size = request.progress.totalBytes }
                self?.post(.finished(ending))
            }
            request.resume()
        }
    }

    private static func report(_ request: Request) -> RunOutcomePolicy.Report {
        RunOutcomePolicy.Report(attempts: request.retryCount + 1, transferred: request.progress.transferredBytes)
    }

    /// Adds a task to the running ones, or gives a running task its next request.
    ///
    /// - Parameter counts: Whether the request's bytes are those of the file.
    private func enter(_ work: TaskWork, in place: TaskChooser.Place, _ request: Request?, counts: Bool = true) {
        let record = work.record
        let progress = counts ? request?.progress : nil
        if let task = running[record.id] {
            // The task continues with another request.
            task.request = request
            task.manager = manager
            if let progress { task.progress = progress }
            return
        }
        running[record.id] = RunningTask(
            work: work, place: place, request: request, manager: manager,
            progress: progress
                ?? TransferProgress(completedBytes: record.bytesDone, totalBytes: record.bytesTotal),
            startedAt: clock.now(), monotonic: clock.monotonic())
    }

    // MARK: Conclusions

    /// Queues a report from a thread of the engine. Reports that arrive together are processed in one turn of this
    /// actor.
    private nonisolated func post(_ report: Report) {
        let isFirst = reports.withLock { reports in
            reports.append(report)
            return reports.count == 1
        }
        if isFirst { Task { await self.takeReports() } }
    }

    private func takeReports() async {
        let taken = reports.withLock { reports in
            defer { reports.removeAll(keepingCapacity: true) }
            return reports
        }
        var endings: [Finished] = []
        for report in taken {
            switch report {
            case .received(let id): releaseSlot(of: id)
            case .finished(let ending): endings.append(ending)
            case .found(let id, let answer): goOn(id, answer)
            }
        }
        if endings.isEmpty { fill() } else { await conclude(endings) }
    }

    /// Continues a running task after its lookup with the download of its file.
    private func goOn(_ id: TaskID, _ found: Lookup.Answer) {
        guard let task = running[id] else { return }
        switch task.lifecycle.afterLookup {
        case .none: break
        case .stop:
            task.foundChecksum = found.checksum
            post(
                .finished(
                    Finished(
                        id: id,
                        report: .init(error: TransferError(.cancelled, "cancelled"), attempts: 1, transferred: 0),
                        resumeData: task.work.resumeData.flatMap { ResumeData(bytes: $0) })))
        case .download:
            task.foundChecksum = found.checksum
            var maker = makeRequests()
            start(task.work, in: task.place, &maker, found: found)
        }
    }

    private func releaseSlot(of id: TaskID) {
        guard let task = running[id], let slot = task.activity.releaseSlot() else { return }
        chooser.give(back: task.place, wasSilent: slot == .silent)
    }

    private func conclude(_ endings: [Finished]) async {
        var generator = SystemRandomNumberGenerator()
        var changes: [TaskChange] = []
        var ids: [TaskID] = []
        var checkpoints: [Task<Void, Never>] = []
        for ending in endings {
            releaseSlot(of: ending.id)
            guard let task = running[ending.id], task.lifecycle.end() else { continue }
            chooser.note(ending.report.error, of: task.work, now: clock.monotonic())
            if ending.report.error == nil { isNetworkAway = false }
            ids.append(ending.id)
            if let checkpoint = task.checkpoints.current { checkpoints.append(checkpoint) }
            changes.append(change(for: task, ending, using: &generator))
        }
        // Other tasks take the slots while the conclusions are written.
        fill()
        for checkpoint in checkpoints { await checkpoint.value }
        let holds = chooser.takeHolds(offset: clock.now() - clock.monotonic())
        await write(changes, holds: holds, of: ids)
        var becomesReady = await settleDependencies()
        var places: Set<PartPlace> = []
        var madeRoom: Set<UInt32> = []
        for id in ids {
            guard let task = running.removeValue(forKey: id) else { continue }
            let owner = task.record.owner
            if task.record.specification.kind == .download {
                places.insert(PartPlace(task.record))
                allowances.close(id, of: owner, keeping: task.lifecycle.result.keptBytes)
                if !task.lifecycle.result.neverBegan { madeRoom.insert(owner) }
            }
            if task.lifecycle.order == .release { becomesReady = true }
            for waiter in task.waiters { waiter.resume() }
        }
        heap.note(running.count, ended: ids.count)
        eventsWritten()
        if !places.isEmpty { downloadsEnded(places) }
        if becomesReady { chooser.invalidate() }
        if allowances.limit != nil, !madeRoom.isEmpty { await settleQuotas(of: madeRoom, all: false) }
        fill()
        setAlarm()
    }

    private func change(
        for task: RunningTask, _ ending: Finished, using generator: inout SystemRandomNumberGenerator
    ) -> TaskChange {
        let record = task.record
        let isDownload = record.specification.kind == .download
        let neverBegan = ending.report.error?.code == .allowanceUsedUp && task.request == nil
        var progress = TaskProgress(
            bytesDone: ending.size ?? (isDownload ? ending.resumeData?.ranges.count ?? 0 : 0),
            bytesTotal: ending.size ?? task.progress.totalBytes ?? record.bytesTotal,
            bytesFetched: task.bytesFetched, path: ending.path,
            startedAt: record.startedAt ?? (neverBegan ? nil : task.startedAt),
            resumeData: isDownload ? ending.resumeData?.bytes : task.source?.bytes ?? task.work.resumeData,
            foundChecksum: task.foundChecksum)
        var report = ending.report
        if report.error == nil, ending.size == 0 { progress.bytesTotal = 0 }
        task.lifecycle.set(.init(keptBytes: progress.bytesDone, neverBegan: neverBegan))
        report.transferred = task.progress.transferredBytes
        report.bytesDone = progress.bytesDone
        if report.error != nil { report.beganAnew = Self.beganAnew(task.work, ending) }
        let conclusion = RunOutcomePolicy(
            record: record, policy: settings.retry, now: clock.now(),
            hold: chooser.gate.hold(of: task.place.hostFingerprint, now: clock.monotonic()),
            isHostAtWork: report.error != nil && isAtWork(task.place.hostFingerprint, besides: task))
        guard let outcome = conclusion.conclude(report, order: task.lifecycle.order, using: &generator) else {
            return .checkpoint(record.id, progress)
        }
        log(record, outcome)
        if outcome.standing.reason == .network { noteNetworkAway(record, outcome.error) }
        return .concluded(record.id, progress, outcome)
    }

    /// Whether another task is transferring data with a host.
    private func isAtWork(_ hostFingerprint: Int64, besides task: RunningTask) -> Bool {
        running.values.contains {
            $0.place.hostFingerprint == hostFingerprint && $0 !== task && !$0.lifecycle.hasEnded && !$0.activity.isSilent
                && $0.progress.transferredBytes > 0
        }
    }

    /// Whether the data of earlier runs was discarded.
    private static func beganAnew(_ work: TaskWork, _ ending: Finished) -> Bool {
        guard let before = work.resumeData.flatMap({ ResumeData(bytes: $0) }) else {
            return work.record.bytesFetched > 0
        }
        return before.generation != ending.resumeData?.generation
    }

    private func noteNetworkAway(_ record: TaskRecord, _ error: TaskFailure?) {
        watchNetwork()
        guard !isNetworkAway else { return }
        isNetworkAway = true
        logger.notice(
            "tasks wait for the network", metadata: ["task": "\(record.id)", "message": "\(error?.message ?? "")"])
    }

    private func log(_ record: TaskRecord, _ outcome: TaskConclusion) {
        // An unavailable network is logged once, when it is first noticed; a disk problem once per task; an exhausted
        // quota once per owner.
        let isKnown =
            outcome.standing.reason == .quota
            ? !ownersAtQuota.insert(record.owner).inserted
            : [.disk, .diskFull].contains(outcome.standing.reason) && outcome.error == record.error
        let isNews = outcome.error != nil && outcome.standing.reason != .network && !isKnown
        guard isNews || logger.logLevel <= .debug else { return }
        var metadata: Logger.Metadata = ["task": "\(record.id)", "state": "\(outcome.standing.state.rawValue)"]
        if let reason = outcome.standing.reason { metadata["reason"] = "\(reason.rawValue)" }
        if let error = outcome.error {
            metadata["error"] = "\(error.code)"
            metadata["message"] = "\(error.message)"
            logger.log(level: isNews ? .notice : .debug, "a task did not complete", metadata: metadata)
        } else {
            logger.debug("a task ended", metadata: metadata)
        }
    }

    /// Writes the results, and retries until it succeeds. A task's result must not be lost because a disk is full for a
    /// while.
    private func write(_ changes: [TaskChange], holds: [HostHold], of ids: [TaskID]) async {
        guard !changes.isEmpty else { return }
        var known: StoreError?
        while true {
            do throws(StoreError) {
                _ = try await store.write(changes, holds: holds, now: clock.now())
                return
            } catch {
                if error == .closed { return }
                if error != known {
                    logger.error("cannot write down what tasks came to; trying again", metadata: ["error": "\(error)"])
                }
                known = error
                // A waiting caller learns from its own write that the store accepts nothing at the moment.
                for id in ids { releaseWaiters(of: id) }
                await clock.sleep(Self.pauseAfterFailure)
            }
        }
    }

    /// Makes the dependents of ended or removed tasks ready, or lets them fail.
    ///
    /// - Returns: Whether anything changed.
    func settleDependencies() async -> Bool {
        do throws(StoreError) {
            return try await store.settleDependencies(now: clock.now()) > 0
        } catch {
            askAgainLater("cannot settle what follows tasks that ended", error)
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

    // MARK: Monitoring running tasks

    private func startTicker() {
        ticker = Task { [weak self, clock] in
            while !Task.isCancelled {
                await clock.sleep(Self.tickInterval)
                guard let self, await self.tick() else { return }
            }
        }
    }

    /// Returns free heap memory to the system on another thread, since it walks the whole heap and takes a while.
    private func giveMemoryBack() {
        Task { [heapWork] in await heapWork.run { linux_give_memory_back() } }
    }

    /// Checks the running tasks.
    ///
    /// - Returns: Whether to continue ticking.
    private func tick() -> Bool {
        let now = clock.monotonic()
        var hasRoom = false
        var due: [(id: TaskID, since: Milliseconds)] = []
        for (id, task) in running where !task.lifecycle.hasEnded {
            let changes = task.activity.observe(
                task.progress.transferredBytes, isHeldBack: task.progress.isHeldBack,
                stallTimeout: settings.stallTimeout, now: now)
            if changes.hasFirstBytes { chooser.noteAnswer(of: task.place) }
            if let isSilent = changes.silence { chooser.setSilent(isSilent, task.place) }
            if changes != .init() { hasRoom = true }
            if task.checkpoints.isDue(now: now) { due.append((id, task.checkpoints.last)) }
        }
        dueCheckpoints = due.sorted { $0.since > $1.since }.map(\.id)
        beginDueCheckpoints()
        if hasRoom { fill() }
        if heap.look(at: running.count) { giveMemoryBack() }
        if running.isEmpty, !heap.isPending {
            ticker = nil
            return false
        }
        return true
    }
}
