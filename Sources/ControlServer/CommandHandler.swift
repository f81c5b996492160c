package import ControlProtocol
package import TaskModel
package import TaskQueue

/// A handler that carries out the clients' commands on the task queue, and returns results in the types of the
/// protocol.
package struct CommandHandler: ControlHandler {
    let queue: TaskQueue
    /// The last answers to `daemon.status`.
    let statuses = StatusMemory()
    private let descriptors: DescriptorQuota
    private let isAdministrator: @Sendable (Peer) -> Bool
    let description: @Sendable () async -> DaemonDescription
    let problems: @Sendable () async -> [String]
    /// Returns the metrics.
    let metrics: @Sendable () async -> DaemonStatus.Metrics?
    private let reload: @Sendable () async -> Result<[String], ReloadRefusal>
    private let shutDown: @Sendable () -> Void

    /// The reason why a changed configuration is not applied; the previous one stays in force.
    package struct ReloadRefusal: Error {
        package var message: String

        package init(message: String) { self.message = message }
    }

    /// The daemon's description of itself in `daemon.status`.
    package struct DaemonDescription: Sendable {
        package var version: String
        package var pid: Int32
        /// The time since the daemon started, in milliseconds.
        package var uptime: Milliseconds
        package var socket: String
        package var stateDirectory: String
        /// The configuration file in force; `nil` if the defaults apply.
        package var configurationFile: String?
        package var downloadDirectory: String
        package var libcurl: String

        package init(
            version: String, pid: Int32, uptime: Milliseconds, socket: String, stateDirectory: String,
            configurationFile: String?, downloadDirectory: String, libcurl: String
        ) {
            self.version = version
            self.pid = pid
            self.uptime = uptime
            self.socket = socket
            self.stateDirectory = stateDirectory
            self.configurationFile = configurationFile
            self.downloadDirectory = downloadDirectory
            self.libcurl = libcurl
        }
    }

    /// The most tasks in a page, and the approximate limit on their JSON in bytes.
    static let pageLimit = 500
    private static let pageBytes = 900_000
    /// The number of tasks read at a time. If tasks are long, reading a full page at once would mostly be wasted.
    private static let readAtOnce = 100
    /// The most ids in one call, since each may produce an error.
    private static let maximumIDs = 10_000

    package init(
        queue: TaskQueue, descriptors: DescriptorQuota = .init(), isAdministrator: @escaping @Sendable (Peer) -> Bool,
        description: @escaping @Sendable () async -> DaemonDescription,
        problems: @escaping @Sendable () async -> [String] = { [] },
        metrics: @escaping @Sendable () async -> DaemonStatus.Metrics? = { nil },
        reload: @escaping @Sendable () async -> Result<[String], ReloadRefusal>,
        shutDown: @escaping @Sendable () -> Void
    ) {
        self.queue = queue
        self.descriptors = descriptors
        self.isAdministrator = isAdministrator
        self.description = description
        self.problems = problems
        self.metrics = metrics
        self.reload = reload
        self.shutDown = shutDown
    }

    func caller(_ peer: Peer) -> Caller {
        Caller(uid: peer.uid, groups: peer.groups, isAdministrator: isAdministrator(peer), files: peer.files)
    }

    package func handle(_ command: Command, from peer: Peer) async -> Result<any Encodable & Sendable, RPCError> {
        do {
            return .success(try await result(of: command, from: peer))
        } catch {
            return .failure(Self.rpcError(error))
        }
    }

    package func receive(
        _ parameters: SourceReceiveParameters, from peer: Peer
    ) -> Result<DescriptorQuota.Reservation, RPCError> {
        let most = SourceReceiveParameters.maximum
        guard 1...most ~= parameters.count else {
            return .failure(RPCError(FieldError(field: "count", message: "must be from 1 to \(most)")))
        }
        // The files of the previous message are closed first, to make room.
        peer.files.replace(with: [])
        guard let room = descriptors.reserve(parameters.count, for: peer.uid) else {
            return .failure(
                .refused(
                    .quota,
                    "the daemon cannot hold more open files for uploads "
                        + "(at most \(DescriptorQuota.perUser) per user); try again when some uploads have ended, "
                        + "or ask the administrator to set uploads.roots"
                ))
        }
        return .success(room)
    }

    /// Validates the entries of a long list while the entries before them are being written.
    package func prepare(_ command: Command, from peer: Peer) -> PreparedCommand {
        guard case .queuePut(let parameters) = command else { return { await handle(command, from: peer) } }
        let caller = caller(peer)
        let prepared = Result { try prepare(parameters, caller) }
        return {
            do {
                let count = try await queue.put(parameters.queue, try prepared.get(), by: caller)
                return .success(QueuePutResult(entries: count))
            } catch {
                return .failure(Self.rpcError(error))
            }
        }
    }

    private func prepare(_ parameters: QueuePutParameters, _ caller: Caller) throws -> TaskQueue.PreparedEntries {
        guard parameters.entries.count <= QueuePutParameters.maximumEntries else {
            throw RPCError(
                FieldError(field: "entries", message: "contains more than \(QueuePutParameters.maximumEntries) entries")
            )
        }
        return try queue.prepare(parameters.entries, by: caller)
    }

    private static func rpcError(_ error: any Error) -> RPCError {
        switch error {
        case let error as RPCError: error
        case let error as QueueError: Self.error(error)
        default:
            RPCError(
                code: RPCError.Number.internal,
                message: "the daemon failed to add the entries because of an internal error",
                data: .init(code: .internal))
        }
    }

    package func events(
        _ parameters: EventsSubscribeParameters, for peer: Peer
    ) async -> Result<EventSubscription, RPCError> {
        do {
            try Self.check(parameters)
            let (last, pages) = try queue.eventPages(
                after: start(parameters), in: parameters.after == nil ? nil : parameters.journal,
                filter: parameters.filter, for: caller(peer))
            return .success(EventSubscription(last: last, journal: queue.journal, pages: pages))
        } catch {
            return .failure(Self.rpcError(error))
        }
    }

    private func result(of command: Command, from peer: Peer) async throws -> any Encodable & Sendable {
        let (caller, backup) = (caller(peer), peer.backup)
        switch command {
        case .taskAdd(let parameters):
            let (ids, found, notes) = try await queue.addOrFind(parameters.tasks, by: caller)
            return TaskAddResult(ids: ids, found: found, notes: notes)
        case .taskGet(let parameters):
            guard let detail = try await queue.detail(of: parameters.id, for: caller) else {
                throw RPCError.unknownTask(parameters.id)
            }
            return detail
        case .taskList(let parameters): return try await list(parameters, caller)
        case .taskCount(let parameters):
            let owners = try await queue.owners(of: parameters.filter ?? TaskFilter(), for: caller)
            return TaskCountResult(
                owners: owners.sorted { $0.key < $1.key }.map { TaskCountResult.Owner(owner: $0.key, tasks: $0.value) })
        case .taskPause(let selection): return try await change(.pause, selection, caller)
        case .taskResume(let selection): return try await resume(selection, caller)
        case .taskCancel(let selection): return try await change(.cancel, selection, caller)
        case .taskRetry(let selection): return try await change(.retry, selection, caller)
        case .taskUpdate(let parameters):
            return try await update(parameters, caller)
        case .taskMove(let parameters):
            switch try await queue.move(parameters.id, parameters.placement, by: caller) {
            case .moved(let status): return status
            case .unknown(let id): throw RPCError.unknownTask(id, field: id == parameters.id ? "id" : "before")
            }
        case .taskRemove(let selection): return try await remove(selection, caller)
        case .queueBegin(let parameters):
            return QueueBeginResult(queue: try await queue.beginStagedBatch(batch: parameters.batch, by: caller))
        case .queuePut(let parameters):
            let count = try await queue.put(parameters.queue, try prepare(parameters, caller), by: caller)
            return QueuePutResult(entries: count)
        case .queueCommit(let parameters):
            let changes = try await queue.commitStagedBatch(
                parameters.queue, prune: parameters.prune ?? false, dryRun: parameters.dryRun ?? false, by: caller)
            return QueueCommitResult(
                added: changes.added, updated: changes.updated, unchanged: changes.unchanged,
                checked: changes.checked, pruned: changes.pruned,
                ids: changes.ids.map { [TaskID($0.lowerBound), TaskID($0.upperBound)] },
                changes: changes.planned?.compactMap { Self.change($0) })
        case .queueAbort(let parameters):
            try await queue.abortStagedBatch(parameters.queue, by: caller)
            return Acknowledgement()
        case .queueList(let parameters): return try await list(parameters, caller)
        case .sourceAttach(let parameters):
            try await queue.attach(parameters.descriptor, to: parameters.id, by: caller)
            return Acknowledgement()
        case .sourceReceive:
            throw RPCError.invalidRequest("files must be passed on a connection of their own")
        case .daemonStatus(let parameters): return try await status(for: peer, parameters)
        case .daemonLimits(let parameters): return try await limits(parameters, caller)
        case .daemonReload:
            try Self.require(caller, to: "reload the configuration")
            let outcome = await reload()
            // A configuration that is refused is a problem that the status shows.
            queue.changes.add()
            switch outcome {
            case .success(let notes): return DaemonReloadResult(notes: notes)
            case .failure(let refusal): throw RPCError.refused(.invalid, refusal.message)
            }
        case .daemonBackup:
            try Self.requireForBackup(caller)
            return try await backUp(for: backup)
        case .backupRead(let parameters):
            try Self.requireForBackup(caller)
            return try Self.read(parameters, of: backup)
        case .rpcDiscover: return OpenRPCDocument()
        case .daemonShutdown:
            try Self.require(caller, to: "shut down the daemon")
            shutDown()
            return Acknowledgement()
        case .eventsList(let parameters):
            try Self.check(parameters.selection)
            if let limit = parameters.limit, limit < 1 {
                throw RPCError(FieldError(field: "limit", message: "must be at least 1"))
            }
            if parameters.selection.filter.wantsProgress {
                throw RPCError(
                    FieldError(field: "types", message: "progress is not in the journal; use events.subscribe"))
            }
            let page = try queue.eventPage(
                after: start(parameters.selection),
                in: parameters.selection.after == nil ? nil : parameters.selection.journal, limit: parameters.limit,
                filter: parameters.selection.filter, for: caller)
            return EventsListResult(
                events: page.events, next: page.position < page.last ? page.position : nil, last: page.last,
                journal: queue.journal)
        case .eventsSubscribe:
            throw RPCError.invalidRequest("a subscription needs a connection of its own")
        }
    }

    private static func change(_ change: PlannedChange) -> QueueCommitResult.Change? {
        guard let kind = TaskKind(rawValue: change.kind) else { return nil }
        let action: QueueCommitResult.Change.Action =
            switch change.action {
            case .add: .add
            case .update: .update
            case .prune: .prune
            }
        return .init(
            action: action, id: change.id, kind: kind, url: change.url, output: change.output, fields: change.fields)
    }

    // MARK: Events

    private static func check(_ parameters: EventsSubscribeParameters) throws {
        let limit = EventsSubscribeParameters.maximumIDs
        if let ids = parameters.ids, ids.count > limit {
            throw RPCError(FieldError(field: "ids", message: "must be at most \(limit) ids"))
        }
    }

    /// Returns the sequence number after which the events start; `nil` where the parameters name no start.
    private func start(_ parameters: EventsSubscribeParameters) throws -> Int64? {
        try parameters.after ?? parameters.since.map { try queue.lastEvent(before: $0) }
    }

    // MARK: Lists

    private func list(_ parameters: TaskListParameters, _ caller: Caller) async throws -> TaskListResult {
        if let limit = parameters.limit, limit < 1 {
            throw RPCError(FieldError(field: "limit", message: "must be at least 1"))
        }
        if let newest = parameters.newest, newest < 1 {
            throw RPCError(FieldError(field: "newest", message: "must be at least 1"))
        }
        var page = Page(limit: min(parameters.limit ?? Self.pageLimit, Self.pageLimit))
        if parameters.order == .queue {
            try await fillInQueueOrder(&page, parameters, caller)
        } else {
            try await fill(&page, parameters, caller)
        }
        return TaskListResult(
            tasks: page.tasks, next: page.isFull ? page.tasks.last?.id : nil,
            severalOwners: try queue.hasSeveralOwners(for: caller))
    }

    private func list(_ parameters: QueueListParameters, _ caller: Caller) async throws -> QueueListResult {
        if let limit = parameters.limit, limit < 1 {
            throw RPCError(FieldError(field: "limit", message: "must be at least 1"))
        }
        let limit = min(parameters.limit ?? Self.pageLimit, Self.pageLimit)
        let found = try await queue.batches(after: parameters.after, limit: limit + 1, for: caller)
        // A name takes at most six times its bytes, so that the longest page is within ``pageBytes``.
        let batches = found.prefix(limit).map { totals in
            QueueListResult.Batch(
                batch: totals.batch, tasks: Self.byName(totals.counts), bytesDone: totals.bytesDone,
                bytesTotal: totals.bytesTotal, outcome: totals.outcome)
        }
        return QueueListResult(batches: batches, next: found.count > limit ? batches.last?.batch : nil)
    }

    /// A page of tasks that is being filled.
    private struct Page {
        let limit: Int
        private(set) var tasks: [TaskStatus] = []
        private var bytes = 0
        /// Whether a task did not fit.
        private(set) var isFull = false

        init(limit: Int) { self.limit = limit }

        mutating func add(_ part: [TaskStatus]) {
            for task in part where !isFull {
                bytes += CommandHandler.size(of: task)
                isFull = tasks.count == limit || (bytes > CommandHandler.pageBytes && !tasks.isEmpty)
                if !isFull { tasks.append(task) }
            }
        }
    }

    private func fill(_ page: inout Page, _ parameters: TaskListParameters, _ caller: Caller) async throws {
        while !page.isFull {
            let wanted = min(page.limit + 1 - page.tasks.count, Self.readAtOnce)
            // Only the first part needs `newest`, since it determines where the newest tasks begin.
            let part = try await queue.page(
                parameters.filter ?? TaskFilter(), after: page.tasks.last?.id ?? parameters.after, limit: wanted,
                newest: page.tasks.isEmpty ? parameters.newest : nil, for: caller)
            page.add(part)
            if part.count < wanted { return }
        }
    }

    private func fillInQueueOrder(
        _ page: inout Page, _ parameters: TaskListParameters, _ caller: Caller
    ) async throws {
        let filter = parameters.filter ?? TaskFilter()
        if let states = filter.states, !states.isEmpty, states != [.queued] {
            throw RPCError(
                FieldError(field: "filter.states", message: "must be queued alone in the order of the queue"))
        }
        if parameters.newest != nil {
            throw RPCError(FieldError(field: "newest", message: "does not apply to the order of the queue"))
        }
        var order = await queue.queueOrder(filter, for: caller)
        var ids: ArraySlice<TaskID> = []
        if let after = parameters.after {
            var passed: [TaskID] = []
            while true {
                let part = try order.next(Self.readAtOnce)
                if let index = part.firstIndex(of: after) {
                    ids = part[(index + 1)...]
                    break
                }
                passed += part
                if part.isEmpty {
                    // The task is no longer queued, nor are most tasks before it.
                    ids = passed[...]
                    break
                }
            }
        }
        while !page.isFull {
            if ids.isEmpty { ids = try order.next(Self.readAtOnce)[...] }
            if ids.isEmpty { return }
            page.add(
                try await queue.readyStatuses(of: Array(ids.prefix(Self.readAtOnce)), matching: filter, for: caller))
            ids = ids.dropFirst(Self.readAtOnce)
        }
    }

    /// Returns the approximate size of a task in JSON: names and numbers, plus twice the size of its texts to allow for
    /// escaping.
    private static func size(of task: TaskStatus) -> Int {
        let texts = [task.url, task.path, task.name, task.batch, task.key, task.checksum, task.error?.message]
        return 600 + texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) * 2 }
    }

    // MARK: Changes

    private func resume(_ selection: TaskSelectionParameters, _ caller: Caller) async throws -> TaskChangeResult {
        var rest = selection
        rest.now = nil
        return try await change(selection.now == true ? .resumeNow : .resume, rest, caller)
    }

    private func change(
        _ event: TaskLifecycle.Event, _ selection: TaskSelectionParameters, _ caller: Caller
    ) async throws -> TaskChangeResult {
        if selection.deleteFile != nil {
            throw RPCError(FieldError(field: "deleteFile", message: "applies to task.remove only"))
        }
        if selection.now != nil { throw RPCError(FieldError(field: "now", message: "applies to task.resume only")) }
        switch try Self.selected(selection) {
        case .ids(let ids): return Self.result(try await queue.apply(event, to: ids, by: caller))
        case .filter(let filter): return Self.result(try await queue.apply(event, toTasksMatching: filter, by: caller))
        }
    }

    private func update(
        _ parameters: TaskUpdateParameters, _ caller: Caller
    ) async throws -> any Encodable & Sendable {
        switch parameters.selection {
        case .task(let id):
            guard let status = try await queue.update(id, by: parameters.changes, for: caller) else {
                throw RPCError.unknownTask(id)
            }
            return status
        case .tasks(let ids):
            return Self.result(try await queue.update(try Self.distinct(ids), by: parameters.changes, for: caller))
        case .matching(let filter):
            return Self.result(try await queue.update(matching: filter, by: parameters.changes, for: caller))
        }
    }

    private func remove(_ selection: TaskSelectionParameters, _ caller: Caller) async throws -> TaskChangeResult {
        if selection.now != nil { throw RPCError(FieldError(field: "now", message: "applies to task.resume only")) }
        let deletes = selection.deleteFile ?? false
        switch try Self.selected(selection) {
        case .ids(let ids): return Self.result(try await queue.remove(ids, deletesFiles: deletes, by: caller))
        case .filter(let filter):
            return Self.result(try await queue.remove(matching: filter, deletesFiles: deletes, by: caller))
        }
    }

    private enum Selected {
        case ids([TaskID])
        case filter(TaskFilter)
    }

    private static func selected(_ selection: TaskSelectionParameters) throws -> Selected {
        switch (selection.ids, selection.filter) {
        case (let ids?, nil): return .ids(try distinct(ids))
        case (nil, let filter?): return .filter(filter)
        default: throw RPCError(FieldError(field: "ids", message: "give either ids or a filter"))
        }
    }

    /// Removes duplicate ids.
    private static func distinct(_ ids: [TaskID]) throws -> [TaskID] {
        guard ids.count <= maximumIDs else {
            throw RPCError(FieldError(field: "ids", message: "contains more than \(maximumIDs) ids"))
        }
        var seen: Set<TaskID> = []
        return ids.filter { seen.insert($0).inserted }
    }

    static func result(_ outcome: ChangeOutcome) -> TaskChangeResult {
        // Messages with paths and names may be long; those beyond the limit are shortened.
        var room = errorBytes
        return TaskChangeResult(
            changed: outcome.changed,
            errors: outcome.refused.map { refusal in
                var error = error(of: refusal)
                room -= error.message.utf8.count
                if room < 0 { error.message = String(error.message.prefix(shortMessage)) }
                return error
            }, hosts: outcome.hosts.isEmpty ? nil : Array(outcome.hosts.sorted().prefix(100)))
    }

    /// The number of bytes of the messages of one response that are not shortened, and the number of characters of those
    /// that are.
    private static let (errorBytes, shortMessage) = (450_000, 60)

    private static func error(of refusal: ChangeOutcome.Refusal) -> TaskChangeResult.Refusal {
        switch refusal.reason {
        case .unknown:
            .init(id: refusal.id, code: .unknownTask, message: RPCError.unknownTask(refusal.id).message)
        case .transition(let transition):
            .init(id: refusal.id, code: .wrongState, message: "task \(refusal.id) \(transition)")
        case .field(let error):
            .init(
                id: refusal.id, code: error.code,
                message: "task \(refusal.id): \(error.field): \(error.message)")
        case .keptFile(let file):
            .init(
                id: refusal.id, code: file.code,
                message: "task \(refusal.id) is removed; \(file.path) is kept: \(file.reason)")
        }
    }

    // MARK: The daemon

    static func require(_ caller: Caller, to purpose: String) throws(RPCError) {
        if caller.isAdministrator { return }
        throw RPCError(
            code: RPCError.Number.notPermitted,
            message: "only root, the daemon's own user and the admin group may \(purpose)",
            data: .init(code: .permissionDenied))
    }

    private func limits(_ parameters: DaemonLimitsParameters, _ caller: Caller) async throws -> DaemonLimits {
        var rates = await queue.ratesInForce()
        if parameters.download != nil || parameters.upload != nil {
            try Self.require(caller, to: "change the daemon's limits")
            rates = try await queue.orderRates { orders in
                if let rate = parameters.download { orders.download = Self.order(rate) }
                if let rate = parameters.upload { orders.upload = Self.order(rate) }
            }
        }
        return DaemonLimits(
            download: rates.download, upload: rates.upload, downloadSource: rates.downloadSource.rawValue,
            uploadSource: rates.uploadSource.rawValue)
    }

    private static func order(_ rate: DaemonLimitsParameters.Rate) -> RateOrder? {
        switch rate {
        case .limit(let rate): .limit(rate)
        case .unlimited: .unlimited
        case .configured: nil
        }
    }

    private static func error(_ error: QueueError) -> RPCError {
        if case .field(let fieldError) = error { return RPCError(fieldError) }
        guard let refusal = error.refusal else {
            return .refused(.internal, "the daemon failed to add the entries because of an internal error")
        }
        if case .store = error {
            return RPCError(
                code: RPCError.Number.unavailable, message: refusal.message, data: .init(code: refusal.code))
        }
        return .refused(refusal.code, refusal.message)
    }
}
