package import Logging
import Synchronization
package import TaskModel
package import TaskStore
package import Transfer

/// The public interface of the queue. It adds, lists and changes tasks; the ``Scheduler`` executes them.
package final class TaskQueue: Sendable {
    let store: TaskStore
    let logger: Logger
    let scheduler: Scheduler
    let clock: QueueClock
    let hub: EventHub
    private let progress: SharedProgress
    private let currentSettings: Mutex<QueueSettings>
    private let sessions: SessionMaker
    let rateKeeper: BandwidthController
    private let housekeeper: Housekeeper
    private let webhooks: WebhookSenders
    private let batchLog: BatchLog
    let leftoverParts: LeftoverParts
    /// The time before the first task of this process was added.
    private let beginning: Milliseconds
    let placeGuard: PlaceGuard
    /// The guard of the disks whose room is reported. A disk that hangs does not end the checks of other places.
    let diskGuard: PlaceGuard
    let lastDiskRooms = Mutex<(at: Milliseconds, rooms: [DiskRoom])?>(nil)
    let passedSources: PassedSources
    private let clockWatch = Mutex<Task<Void, Never>?>(nil)
    /// A lock that serialises the moving and removing of part files.
    let placesOfParts = AsyncLock()
    package let changes = ChangeCount()
    let stagedBatches = Mutex(StagedBatchRegister())

    /// Creates the queue.
    ///
    /// - Parameters:
    ///   - agent: the `User-Agent` of tasks that set none.
    ///   - descriptors: limits on the open files passed for uploads.
    ///   - keeper: keeps those files open across restarts of the daemon.
    package init(
        store: TaskStore, settings: QueueSettings, session: SessionConfiguration, agent: String,
        clock: QueueClock = .system, logger: Logger, descriptors: DescriptorQuota = .init(),
        keeper: (any DescriptorKeeper)? = nil
    ) throws(TransferError) {
        self.store = store
        self.logger = logger
        currentSettings = Mutex(settings)
        self.clock = clock
        beginning = clock.now()
        sessions = SessionMaker(session, agent: agent, logger: logger)
        let hub = EventHub(store: store, clock: clock)
        self.hub = hub
        placeGuard = PlaceGuard(clock: clock)
        diskGuard = PlaceGuard(clock: clock)
        let passedSources = PassedSources(quota: descriptors, keeper: keeper ?? NoDescriptorKeeper())
        self.passedSources = passedSources
        let housekeeper = Housekeeper(store: store, settings: settings, clock: clock, logger: logger)
        self.housekeeper = housekeeper
        let webhooks = WebhookSenders(store: store, clock: clock, logger: logger) {
            [sessions] () throws(TransferError) in try sessions.makeForWebhooks()
        }
        self.webhooks = webhooks
        let batchLog = BatchLog(store: store, clock: clock, logger: logger)
        self.batchLog = batchLog
        let leftoverParts = LeftoverParts(store: store, settings: settings, clock: clock, logger: logger)
        self.leftoverParts = leftoverParts
        let scheduler = Scheduler(
            store: store, manager: try sessions.make(settings), settings: settings, clock: clock, logger: logger,
            passedSources: passedSources, changes: changes,
            eventsWritten: { [changes] in
                changes.add()
                passedSources.removeEnded(in: store, logger)
                Task {
                    await hub.notify()
                    await housekeeper.notify()
                    await webhooks.notify()
                    await batchLog.notify()
                }
            },
            downloadsEnded: { places in Task { await leftoverParts.enqueue(places) } })
        self.scheduler = scheduler
        progress = SharedProgress(clock: clock) { await scheduler.runningStatuses() }
        rateKeeper = BandwidthController(
            store: store, settings: settings, clock: clock, limiters: sessions.limiters,
            pauseChanged: { await scheduler.setPause($0) })
    }

    /// The caller for internal operations on the tasks of all users.
    static let daemon = Caller(uid: 0, isAdministrator: true)

    deinit { clockWatch.withLock { $0?.cancel() } }

    var settings: QueueSettings { currentSettings.withLock { $0 } }

    /// Applies changed settings. Running tasks continue with the settings with which they started.
    ///
    /// - Parameter session: the session configuration, as for the initialiser.
    /// - Throws: ``TransferError`` where the system has no threads or file descriptors left. In that case nothing
    ///   changes.
    /// - Returns: warnings for the administrator.
    package func apply(
        _ settings: QueueSettings, session: SessionConfiguration
    ) async throws(TransferError) -> [String] {
        let manager = try sessions.remake(settings, session, unless: self.settings)
        // Before a task can start with the new settings, and so in the new directory.
        let warnings = await updatePaths(settings)
        currentSettings.withLock { $0 = settings }
        await scheduler.apply(settings, manager: manager)
        await rateKeeper.apply(settings)
        await housekeeper.apply(settings)
        await webhooks.apply(settings.webhooks, isSessionNew: manager != nil)
        await leftoverParts.apply(settings)
        await changed()
        await scheduler.quotaChanged()
        changes.add()
        return warnings
    }

    /// The directory of tasks that name none.
    package var downloadDirectory: String { settings.downloadDirectory }

    /// Starts executing tasks.
    package func start() async {
        sweep()
        do throws(StoreError) {
            try await store.beginLifetime(at: beginning)
        } catch {
            logger.error("cannot record the start of the daemon", metadata: ["error": "\(error)"])
        }
        let watch = Task { [clock, weak scheduler, weak rateKeeper] in
            for await _ in clock.settings() {
                await scheduler?.clockWasSet()
                await rateKeeper?.update()
            }
        }
        clockWatch.withLock { $0 = watch }
        do throws(StoreError) {
            try await rateKeeper.start()
        } catch {
            logger.error("cannot read the stored rate limits", metadata: ["error": "\(error)"])
        }
        do throws(QueueError) {
            try await completePartMoves()
        } catch {
            logger.error("cannot look for moved part files", metadata: ["error": "\(error)"])
        }
        for warning in await updatePaths(settings) { logger.warning("\(warning)") }
        await batchLog.start()
        _ = await scheduler.settleDependencies()
        await scheduler.start()
        await housekeeper.start { [weak self] ids in
            try await self?.removeExpired(ids)
        }
        await leftoverParts.start()
        await startWebhooks()
    }

    /// Ends all runs and writes their progress, without counting attempts.
    package func stop() async {
        clockWatch.withLock { $0?.cancel() }
        await rateKeeper.stop()
        await housekeeper.stop()
        await leftoverParts.stop()
        async let webhooksEnd: Void = webhooks.stop()
        await scheduler.stop()
        await webhooksEnd
        await batchLog.look()
    }

    // MARK: Webhooks

    /// Starts the webhooks of the configuration, unless they run. The daemon does so before it answers requests for its
    /// status.
    package func startWebhooks() async { await webhooks.apply(settings.webhooks, isSessionNew: false) }

    package var webhookStatuses: [WebhookStatus] {
        get async { await webhooks.statuses }
    }

    // MARK: Rates

    /// Returns the rate limits in force.
    package func ratesInForce() async -> RatesInForce { await onSharedThreads { await rateKeeper.inForce } }

    /// Sets or revokes rate limits by command. They persist across restarts, and are in force and durable when the
    /// function returns.
    package func orderRates(
        _ change: @escaping @Sendable (inout RateOrders) -> Void
    ) async throws(QueueError) -> RatesInForce {
        try await stored { () async throws(StoreError) in
            try await onSharedThreads { () async throws(StoreError) in try await rateKeeper.order(change) }
        }
        changes.add()
        return await ratesInForce()
    }

    // MARK: Adding

    /// Adds tasks, either all of them or none. They are durable when the function returns.
    ///
    /// - Returns: the id of each task, in order. For a key that already exists it is the id of the existing task.
    package func add(_ specifications: [TaskSpecification], by caller: Caller) async throws(QueueError) -> [TaskID] {
        try await addOrFind(specifications, by: caller).ids
    }

    /// Adds tasks like ``add(_:by:)``.
    ///
    /// - Returns: the ids, and those of them that belong to existing tasks with the same key, in order; and warnings about
    ///   contents of the tasks that are passed over.
    package func addOrFind(
        _ specifications: [TaskSpecification], by caller: Caller
    ) async throws(QueueError) -> (ids: [TaskID], found: [TaskID], notes: [String]) {
        let now = clock.now()
        let (tasks, admission) = try admit(specifications, by: caller, list: "tasks", now: now)
        try await validate(admission.places, list: "tasks")
        let quota = settings.quota
        // The files are registered first, since a task may start as soon as it is stored.
        for task in admission.passed { passedSources.insert(task.file, named: task.name, owner: caller.uid) }
        let outcomes: [AddOutcome]
        do throws(QueueError) {
            outcomes = try await stored { () async throws(StoreError) in
                try await store.add(tasks, quota: quota, now: now)
            }
        } catch {
            for task in admission.passed { passedSources.remove(task.name) }
            throw error
        }
        for task in admission.passed {
            if case .added(let id) = outcomes[task.index] {
                passedSources.settle(task.name, for: id)
            } else {
                passedSources.remove(task.name)
            }
        }
        let batch = specifications.first?.batch
        logAdded(outcomes, batch: specifications.allSatisfy { $0.batch == batch } ? batch : nil, by: caller)
        await changed()
        let found = outcomes.filter { outcome in
            if case .existing = outcome { true } else { false }
        }
        return (outcomes.map(\.id), found.map(\.id), admission.notes)
    }

    private func logAdded(_ outcomes: [AddOutcome], batch: String?, by caller: Caller) {
        guard logger.logLevel <= .info else { return }
        let added: [TaskID] = outcomes.compactMap { if case .added(let id) = $0 { id } else { nil } }
        var command = CommandLog(.added, "added", added).by(caller)
        command.owner = caller.uid
        command.batch = batch
        logger.log(command)
    }

    /// Validates tasks.
    ///
    /// - Parameter list: the name of the request parameter with the specifications, for messages.
    /// - Returns: the tasks, and the admission with their places and their open files.
    func admit(
        _ specifications: [TaskSpecification], by caller: Caller, list: String, now: Milliseconds
    ) throws(QueueError) -> ([NewTask], Admission) {
        var admission = Admission(
            settings: settings, caller: caller, now: now,
            knows: { [store] id in ((try? store.record(id, owner: caller.scope)) ?? nil) != nil })
        var tasks: [NewTask] = []
        tasks.reserveCapacity(specifications.count)
        for (index, specification) in specifications.enumerated() {
            do throws(FieldError) {
                tasks.append(try admission.admit(specification))
            } catch {
                throw .field(
                    FieldError(field: "\(list)[\(index)].\(error.field)", code: error.code, message: error.message))
            }
        }
        for note in admission.notes { logger.warning("\(note)", metadata: ["uid": "\(caller.uid)"]) }
        return (tasks, admission)
    }

    /// Checks that places are usable.
    ///
    /// - Parameter list: as for ``admit(_:by:list:now:)``.
    /// - Throws: a field's error for the first unusable place.
    func validate(_ places: [Admission.PlacedTask], list: String) async throws(QueueError) {
        guard !places.isEmpty, let found = await placeGuard.refusal(of: places, settings) else { return }
        throw .field(
            FieldError(
                field: "\(list)[\(found.index)].directory", code: found.code, message: found.message))
    }

    /// Attaches an open file that the caller passed to an upload whose previously passed file has been closed.
    package func attach(_ index: Int, to id: TaskID, by caller: Caller) async throws(QueueError) {
        let work = try stored { () throws(StoreError) in try store.work(for: id) }
        guard let work, caller.scope == nil || work.record.owner == caller.uid else {
            throw .refused(.unknownTask, "there is no task \(id)")
        }
        // Only the owner decides what is sent with the owner's secrets.
        guard work.record.owner == caller.uid || settings.isTrusted(caller.uid) else {
            throw .refused(.permissionDenied, "only the owner of a task can pass its source")
        }
        guard let name = work.secrets.passedSource, passedSources.file(named: name) == nil else {
            throw .refused(.wrongState, "task \(id) is not waiting for an open file")
        }
        let admission = Admission(settings: settings, caller: caller, now: clock.now())
        do throws(FieldError) {
            passedSources.insert(try admission.passedFile(at: index), named: name, owner: work.record.owner)
        } catch {
            throw .field(error)
        }
        passedSources.settle(name, for: id)
    }

    func changed() async {
        changes.add()
        passedSources.removeEnded(in: store, logger)
        await onSharedThreads {
            _ = await scheduler.settleDependencies()
            await scheduler.wake()
            await hub.notify()
            await housekeeper.notify()
        }
        Task {
            await webhooks.notify()
            await batchLog.notify()
        }
    }

    // MARK: Queries

    /// Returns the status of a task.
    ///
    /// - Returns: `nil` where the id is unknown or the caller may not see the task.
    package func status(of id: TaskID, for caller: Caller) async throws(QueueError) -> TaskStatus? {
        guard let record = try stored({ () throws(StoreError) in try store.record(id, owner: caller.scope) }) else {
            return nil
        }
        var status = await onSharedThreads { await scheduler.statuses(of: [record]).first }
        if record.lifecycle.state == .completed {
            let file = FinishedFile(record: record, identity: store.identity, settings: settings)
            status?.fileState = await placeGuard.evaluate { file.state } ?? nil
        }
        return status
    }

    /// Returns a page of tasks, the oldest first.
    ///
    /// - Parameter newest: Restricts the list to this number of newest tasks.
    package func page(
        _ filter: TaskFilter, after: TaskID?, limit: Int, newest: Int?, for caller: Caller
    ) async throws(QueueError) -> [TaskStatus] {
        let running = await onSharedThreads { await scheduler.runningIDs }
        let query = PageQuery(
            filter: filter, owner: caller.scope, after: after, limit: limit, newest: newest, running: running)
        let records = try stored { () throws(StoreError) in try store.page(query) }
        return await onSharedThreads { await scheduler.statuses(of: records) }
    }

    /// Returns the number of tasks in each state. Every state is present.
    package func counts(for caller: Caller) async throws(QueueError) -> [TaskState: Int] {
        let running = await onSharedThreads { await scheduler.runningCount(owner: caller.scope) }
        var counts = try stored { () throws(StoreError) in try store.counts(owner: caller.scope) }
        for state in TaskState.allCases where counts[state] == nil { counts[state] = 0 }
        counts[.active] = running
        counts[.queued] = max(0, (counts[.queued] ?? 0) - running)
        return counts
    }

    /// Returns the number of matching tasks by owner. Owners without one are absent.
    package func owners(
        of filter: TaskFilter, for caller: Caller
    ) async throws(QueueError) -> [UInt32: Int] {
        let running = await onSharedThreads { await scheduler.runningIDs }
        return try stored { () throws(StoreError) in
            try store.owners(matching: filter, owner: caller.scope, running: running)
        }
    }

    /// Returns a page of the batches with their number of tasks by state, by name.
    package func batches(
        after name: String? = nil, limit: Int = .max, for caller: Caller
    ) async throws(QueueError) -> [BatchTotals] {
        let running = await onSharedThreads { await scheduler.runningCounts(owner: caller.scope) }
        let batches = try stored { () throws(StoreError) in
            try store.batches(owner: caller.scope, after: name, limit: limit)
        }
        return batches.map { batch in
            // Running tasks are stored as ready. One may have ended since it was counted.
            let active = min(running[batch.batch] ?? 0, batch.counts[.queued] ?? 0)
            guard active > 0 else { return batch }
            var batch = batch
            batch.counts[.active, default: 0] += active
            batch.counts[.queued, default: 0] -= active
            return batch
        }
    }

    /// Returns the current pause by the schedule; `nil` where there is none.
    package func schedulePause() async -> SchedulePause? {
        await onSharedThreads {
            if let pause = await scheduler.mode.pause { return pause }
            // The scheduler learns of the present window when the queue starts.
            guard let (window, until) = await rateKeeper.window, window.pauses else { return nil }
            return SchedulePause(until: until)
        }
    }

    /// Returns the most frequent causes for which tasks wait.
    package func waitingCauses(for caller: Caller) async throws(QueueError) -> WaitingCauses {
        var waiting = try stored { () throws(StoreError) in try store.waitingCauses(owner: caller.scope) }
        let heldBack = try await tasksBeyondOwnerLimit(for: caller)
        if heldBack > 0 {
            waiting.counted = waiting.counted.addingClamped(heldBack)
            waiting.causes.append(WaitingCause(reason: TaskReason.ownerLimit.rawValue, tasks: heldBack))
        }
        return waiting
    }

    /// Returns the number of ready tasks whose owners have as many active tasks as the configuration allows.
    private func tasksBeyondOwnerLimit(for caller: Caller) async throws(QueueError) -> Int {
        let full = await onSharedThreads { await scheduler.fullOwners() }
        return try stored { () throws(StoreError) in
            var count = 0
            for (owner, running) in full.prefix(Self.fullOwnersLimit)
            where caller.scope == nil || caller.scope == owner {
                let queued = try store.counts(owner: owner)[.queued] ?? 0
                count = count.addingClamped(max(0, queued - running))
            }
            return count
        }
    }

    private static let fullOwnersLimit = 64

    /// Returns the disk space used by the caller's downloads or, for an administrator, by those of all users.
    package func storageUse(for caller: Caller) async throws(QueueError) -> StorageUse {
        try await stored { () async throws(StoreError) in
            try await onSharedThreads { () async throws(StoreError) in
                try await scheduler.storageUse(owner: caller.scope)
            }
        }
    }

    /// Returns the total throughput of all running tasks, in bytes per second.
    package func rates() async -> (download: Int64, upload: Int64) {
        await onSharedThreads { await scheduler.rates() }
    }

    /// The reason why no tasks are accepted at present, if any, and notes on how the database was opened.
    package var storeProblems: [String] { (store.problem.map { [$0] } ?? []) + store.notes }

    /// The number of transfers since the start that stood still although they had work, and were restarted.
    package var internalFaults: Int { sessions.internalFaults.load(ordering: .relaxed) }

    package func lastEvent() throws(QueueError) -> Int64 {
        try stored { () throws(StoreError) in try store.lastEvent() }
    }

    /// Returns a stream of events.
    ///
    /// - Parameters:
    ///   - sequence: the event after which the stream starts; `nil` for new events only.
    ///   - journal: the name of the journal in which it was, if the reader tells.
    ///   - filter: selects the events.
    package func events(
        after sequence: Int64?, in journal: String? = nil, filter: EventFilter = EventFilter(), for caller: Caller
    ) throws(QueueError) -> (last: Int64, pages: AsyncStream<[TaskEvent]>) {
        let (last, pages) = try eventPages(after: sequence, in: journal, filter: filter, for: caller)
        return (last, pages(.unlimited))
    }

    /// Returns a page of the journal.
    ///
    /// - Parameters:
    ///   - sequence: the event after which the page starts; `nil` for the beginning of what the journal has.
    ///   - journal: the name of the journal in which it was, if the reader tells.
    ///   - limit: the maximum number of events; `nil` for as many as fit into a page.
    /// - Returns: the page, and the sequence number of the newest event. A page that starts behind lost events begins
    ///   with a gap.
    package func eventPage(
        after sequence: Int64?, in journal: String? = nil, limit: Int?, filter: EventFilter = EventFilter(),
        for caller: Caller
    ) throws(QueueError) -> (events: [TaskEvent], position: Int64, last: Int64) {
        try stored { () throws(StoreError) in
            let last = try store.lastEvent()
            let most = min(limit ?? EventHub.page, EventHub.page)
            let start = store.journal.start(after: sequence ?? 0, in: journal, last: last)
            var page = try store.events(after: start.sequence, limit: most, filter: filter, scope: caller.scope)
            if start.isLost || sequence.map({ page.trimmed > $0 }) == true {
                page.events.insert(.gap(upTo: page.trimmed, before: page.events.first, after: start.sequence), at: 0)
            }
            // An event that was added after `last` was read may be in the page.
            return (page.events, page.position, max(last, page.position))
        }
    }

    /// The name of the event journal.
    package var journal: String { store.journal.name }

    /// Returns the sequence number of the last event before a time; 0 if there is none.
    package func lastEvent(before time: Milliseconds) throws(QueueError) -> Int64 {
        try stored { () throws(StoreError) in try store.lastEvent(before: time) }
    }

    /// Returns events like ``events(after:in:filter:for:)`` for one of many subscribers, which reads each page only when
    /// there is room for it.
    package func eventPages(
        after sequence: Int64?, in journal: String? = nil, filter: EventFilter = EventFilter(), for caller: Caller
    ) throws(QueueError) -> (last: Int64, pages: @Sendable (EventRoom) -> AsyncStream<[TaskEvent]>) {
        let scope = caller.scope
        return try stored { () throws(StoreError) in
            try hub.subscribe(after: sequence, in: journal, filter: filter, scope: scope) { [progress] generation in
                await progress.statuses(owner: scope, generation: generation)
            }
        }
    }

    // MARK: Errors

    func stored<Value>(_ body: () throws(StoreError) -> Value) throws(QueueError) -> Value {
        do throws(StoreError) { return try body() } catch { throw QueueError(error) }
    }

    func stored<Value: Sendable>(
        _ body: @Sendable () async throws(StoreError) -> Value
    ) async throws(QueueError) -> Value {
        do throws(StoreError) { return try await body() } catch { throw QueueError(error) }
    }
}

/// The reason why the queue refused or failed an operation.
package enum QueueError: Error, Sendable, Equatable {
    case field(FieldError)
    case refused(ErrorCode, String)
    case store(StoreError)

    init(_ error: StoreError) {
        switch error {
        case .quota(let message): self = .refused(.quota, message)
        case .cycle(let message): self = .refused(.invalid, message)
        case .tooCostly: self = .refused(.tooLarge, "\(error)")
        default: self = .store(error)
        }
    }

    /// The error code and the message; `nil` for a field's error, which contains both itself.
    package var refusal: (code: ErrorCode, message: String)? {
        switch self {
        case .field: nil
        case .refused(let code, let message): (code, message)
        case .store(.full): (.diskFull, "\(StoreError.full)")
        case .store(.nearlyFull(let free, let reserved)):
            (.diskFull, "\(StoreError.nearlyFull(free: free, reserved: reserved))")
        case .store(.noRoom(let message)): (.diskFull, message)
        case .store(.io(let message)): (.io, "\(StoreError.io(message))")
        case .store(.displaced(let message)): (.databaseLost, message)
        case .store(let error): (.internal, "\(error)")
        }
    }
}
