public import ControlProtocol
import FoundationEssentials
public import TaskModel

// One function per method. Each throws `ClientError`: `rpc` for an error that the daemon returned, the other cases for
// a connection that failed.
extension ControlClient {
    /// Calls `task.add`, which enqueues either all of `tasks` or none.
    ///
    /// - Returns: the tasks' ids in the order of `tasks`; the tasks are durable when the call returns.
    public func add(_ tasks: [TaskSpecification]) throws(ClientError) -> [TaskID] {
        try addOrFind(tasks).ids
    }

    /// Adds tasks like ``add(_:)`` and also returns which of the ids already existed under the tasks' keys.
    public func addOrFind(_ tasks: [TaskSpecification]) throws(ClientError) -> TaskAddResult {
        try call(.taskAdd, TaskAddParameters(tasks: tasks), unlimited: true)
    }

    /// Calls `task.get`.
    public func task(_ id: TaskID) throws(ClientError) -> TaskStatus {
        try call(.taskGet, TaskGetParameters(id: id))
    }

    /// Calls `task.get` and returns `nil` for a task that does not exist or that this user may not see.
    public func taskIfKnown(_ id: TaskID) throws(ClientError) -> TaskStatus? {
        do throws(ClientError) {
            return try task(id)
        } catch .rpc(let answer) where answer.code == RPCError.Number.unknownTask {
            return nil
        }
    }

    /// Calls `task.get` for a task with its history and the state of its transfer, and returns `nil` for a task that
    /// does not exist or that this user may not see.
    public func detailIfKnown(_ id: TaskID) throws(ClientError) -> TaskDetail? {
        do throws(ClientError) {
            return try call(.taskGet, TaskGetParameters(id: id))
        } catch .rpc(let answer) where answer.code == RPCError.Number.unknownTask {
            return nil
        }
    }

    /// Calls `task.list` for one page of tasks, oldest first.
    public func page(_ parameters: TaskListParameters) throws(ClientError) -> TaskListResult {
        try call(.taskList, parameters)
    }

    /// Calls `task.list` for one page after another.
    ///
    /// - Parameters:
    ///   - filter: selects tasks; `nil` for all.
    ///   - limit: the maximum number of tasks over all pages.
    ///   - after: only tasks with a larger id.
    ///   - newest: starts at the oldest of this many newest tasks.
    ///   - body: receives each page that is not empty; returns whether to continue.
    public func forEachPage(
        filter: TaskFilter? = nil, limit: Int? = nil, after: TaskID? = nil, newest: Int? = nil,
        _ body: ([TaskStatus]) throws -> Bool
    ) throws {
        try forEachResult(TaskListParameters(filter: filter, limit: limit, after: after, newest: newest)) { result in
            try body(result.tasks)
        }
    }

    /// Calls `task.list` for one page after another.
    ///
    /// - Parameters:
    ///   - parameters: those of the first page. `limit` is the maximum number of tasks over all pages.
    ///   - body: receives each page that is not empty; returns whether to continue.
    public func forEachResult(_ parameters: TaskListParameters, _ body: (TaskListResult) throws -> Bool) throws {
        var parameters = parameters
        while true {
            let result = try page(parameters)
            if !result.tasks.isEmpty, try !body(result) { return }
            guard let next = result.next else { return }
            // A page whose `next` repeats the requested position would cause an endless loop.
            guard next != parameters.after else { throw ClientError.malformedAnswer("task.list does not advance") }
            if let left = parameters.limit {
                guard left > result.tasks.count else { return }
                parameters.limit = left - result.tasks.count
            }
            parameters.newest = nil
            parameters.after = next
        }
    }

    /// Calls `task.count`.
    public func count(_ filter: TaskFilter) throws(ClientError) -> TaskCountResult {
        try call(.taskCount, TaskCountParameters(filter: filter))
    }

    /// Calls `task.pause`, `task.resume`, `task.cancel`, `task.retry` or `task.remove`.
    public func change(
        _ method: MethodName, _ selection: TaskSelectionParameters
    ) throws(ClientError) -> TaskChangeResult {
        try call(method, selection, unlimited: true)
    }

    /// Calls `task.update`, which changes a task's specification and keeps the bytes received so far.
    ///
    /// - Returns: the task after the change; the change is durable when the call returns.
    public func update(_ id: TaskID, _ changes: TaskChanges) throws(ClientError) -> TaskStatus {
        try call(.taskUpdate, TaskUpdateParameters(id: id, changes: changes), unlimited: true)
    }

    /// Calls `task.update` for several tasks at once.
    ///
    /// - Returns: the number of tasks changed and the tasks that could not be changed; the changes are durable when the
    ///   call returns.
    public func update(
        _ selection: TaskUpdateParameters.Selection, _ changes: TaskChanges
    ) throws(ClientError) -> TaskChangeResult {
        try call(.taskUpdate, TaskUpdateParameters(selection, changes: changes), unlimited: true)
    }

    /// Calls `task.move`, which changes a task's position among the tasks of the same owner and priority.
    ///
    /// - Returns: the task; the change is durable when the call returns.
    public func move(_ id: TaskID, _ placement: TaskPlacement) throws(ClientError) -> TaskStatus {
        try call(.taskMove, TaskMoveParameters(id: id, placement: placement), unlimited: true)
    }

    /// Calls `queue.begin`.
    ///
    /// - Returns: the queue id for ``put(_:into:refused:)``, ``commit(queue:prune:dryRun:)`` and ``abort(queue:)``.
    public func beginQueue(batch: String?) throws(ClientError) -> Int64 {
        let result: QueueBeginResult = try call(.queueBegin, QueueBeginParameters(batch: batch))
        return result.queue
    }

    /// Calls `queue.put` for each part in turn. Up to three calls are sent before the first response is read.
    ///
    /// - Parameters:
    ///   - parts: lists of at most 1,000 entries each; each call must fit into one line.
    ///   - queue: the number that `queue.begin` returned.
    ///   - refused: maps the `ClientError` and the index of the part that failed to the error to throw.
    public func put<Refusal: Error>(
        _ parts: some Sequence<[TaskSpecification]>, into queue: Int64,
        refused: (ClientError, _ part: Int) -> Refusal
    ) throws(Refusal) {
        func attempt<Value>(_ part: Int, _ body: () throws(ClientError) -> Value) throws(Refusal) -> Value {
            do throws(ClientError) { return try body() } catch { throw refused(error, part) }
        }
        func receive(_ sent: (part: Int, call: PendingCall)) throws(Refusal) {
            let _: QueuePutResult = try attempt(sent.part) { () throws(ClientError) in try answer(to: sent.call) }
        }
        var underWay: ArraySlice<(part: Int, call: PendingCall)> = []
        for (number, entries) in parts.enumerated() {
            let call = try attempt(number) { () throws(ClientError) in
                try begin(.queuePut, QueuePutParameters(queue: queue, entries: entries))
            }
            underWay.append((number, call))
            if underWay.count > 2, let first = underWay.popFirst() { try receive(first) }
        }
        while let first = underWay.popFirst() { try receive(first) }
    }

    /// Calls `queue.commit`.
    public func commit(
        queue: Int64, prune: Bool = false, dryRun: Bool = false
    ) throws(ClientError) -> QueueCommitResult {
        try call(
            .queueCommit,
            QueueCommitParameters(queue: queue, prune: prune ? true : nil, dryRun: dryRun ? true : nil),
            unlimited: true)
    }

    /// Calls `queue.abort`.
    public func abort(queue: Int64) throws(ClientError) {
        let _: Acknowledgement = try call(.queueAbort, QueueAbortParameters(queue: queue))
    }

    /// Calls `queue.list` for one page after another.
    ///
    /// - Returns: the batches of all pages.
    public func queues() throws(ClientError) -> QueueListResult {
        var (all, after) = (QueueListResult(batches: []), nil as String?)
        repeat {
            let page: QueueListResult = try call(.queueList, QueueListParameters(after: after))
            all.batches += page.batches
            // A page whose `next` repeats the requested position would cause an endless loop.
            guard page.next == nil || page.next != after else {
                throw ClientError.malformedAnswer("queue.list does not advance")
            }
            after = page.next
        } while after != nil
        return all
    }

    /// Calls `source.receive` and passes open files. The option `descriptor` of a task and ``attach(_:descriptor:)``
    /// then refer to a file by its index.
    ///
    /// - Parameter descriptors: 1 to ``SourceReceiveParameters/maximum`` file descriptors open for reading. The caller
    ///   keeps ownership of them.
    public func pass(_ descriptors: [Int32]) throws(ClientError) {
        let _: Acknowledgement = try call(.sourceReceive, SourceReceiveParameters(count: descriptors.count))
        try send(descriptors: descriptors)
    }

    /// Calls `source.attach`, which passes the source of an existing upload again.
    public func attach(_ id: TaskID, descriptor: Int) throws(ClientError) {
        let _: Acknowledgement = try call(.sourceAttach, SourceAttachParameters(id: id, descriptor: descriptor))
    }

    /// Calls `daemon.status`.
    ///
    /// - Parameter metrics: whether the result has the metrics as well, for administrators.
    public func status(metrics: Bool = false) throws(ClientError) -> DaemonStatus {
        metrics
            ? try call(.daemonStatus, DaemonStatusParameters(metrics: true)) : try call(.daemonStatus, NoParameters())
    }

    /// Calls `daemon.limits`, which sets the rate limits of all tasks together until they are changed again. Without
    /// rates, the call only returns the limits.
    ///
    /// - Returns: the limits now in effect.
    public func limits(_ rates: DaemonLimitsParameters = .init()) throws(ClientError) -> DaemonLimits {
        try call(.daemonLimits, rates)
    }

    /// Calls `daemon.reload`, which applies a changed configuration or rejects all of it.
    public func reload() throws(ClientError) -> DaemonReloadResult {
        try call(.daemonReload, NoParameters(), unlimited: true)
    }

    /// Calls `daemon.shutdown`; the daemon shuts down in an orderly way after it has responded.
    public func shutdown() throws(ClientError) {
        let _: Acknowledgement = try call(.daemonShutdown, NoParameters())
    }

    /// Calls `daemon.backup`, which makes a copy of the database; ``readBackup(at:)`` on this connection fetches it.
    public func backUp() throws(ClientError) -> DaemonBackupResult {
        try call(.daemonBackup, NoParameters(), unlimited: true)
    }

    /// Calls `backup.read` for a part of the copy.
    ///
    /// - Returns: the bytes from `offset` on, and the offset of the next part; `nil` after the last one.
    public func readBackup(at offset: Int64) throws(ClientError) -> (bytes: [UInt8], next: Int64?) {
        let result: BackupReadResult = try call(.backupRead, BackupReadParameters(offset: offset))
        guard let data = Data(base64Encoded: result.data) else {
            throw .malformedAnswer("a part of the backup is not base64")
        }
        if let next = result.next, data.isEmpty || next != offset + Int64(data.count) {
            throw .malformedAnswer("backup.read does not advance")
        }
        return (Array(data), result.next)
    }

    /// Calls `events.list` page by page.
    ///
    /// - Parameters:
    ///   - after: starts after this sequence number; `nil` for the oldest event.
    ///   - since: starts with the first event from this time on.
    ///   - filter: selects events.
    ///   - body: receives each page, and returns whether to go on.
    public func forEachPageOfEvents(
        after: Int64? = nil, since: Milliseconds? = nil, filter: EventFilter = EventFilter(),
        _ body: ([TaskEvent]) throws -> Bool
    ) throws {
        var selection = EventsSubscribeParameters(after: after, since: since, filter: filter)
        while true {
            let result: EventsListResult = try call(.eventsList, EventsListParameters(selection: selection))
            guard try result.events.isEmpty || body(result.events), let next = result.next else { return }
            selection.after = next
        }
    }

    /// Calls `events.list` for one page.
    ///
    /// - Parameters:
    ///   - after: starts after this sequence number.
    ///   - journal: the name of the journal in which it was.
    ///   - filter: selects events.
    ///   - limit: the maximum number of events.
    public func eventPage(
        after: Int64, journal: String? = nil, filter: EventFilter = EventFilter(), limit: Int? = nil
    ) throws(ClientError) -> EventsListResult {
        let selection = EventsSubscribeParameters(after: after, journal: journal, filter: filter)
        return try call(.eventsList, EventsListParameters(selection: selection, limit: limit))
    }

    /// Returns the sequence number of the last event before a time, and the name of the journal.
    ///
    /// - Parameter time: the time; `nil` stands for now.
    public func lastEvent(before time: Milliseconds?) throws(ClientError) -> (sequence: Int64, journal: String?) {
        let selection = EventsSubscribeParameters(since: time)
        let result: EventsListResult = try call(.eventsList, EventsListParameters(selection: selection, limit: 1))
        guard time != nil, let first = result.events.first else { return (result.last, result.journal) }
        return (first.sequence - 1, result.journal)
    }

    /// Calls `events.subscribe`; ``nextEvent(until:)`` then returns the events.
    ///
    /// - Parameters:
    ///   - after: replays the events after this sequence number.
    ///   - journal: the name of the journal in which it was.
    ///   - since: replays the events from this time on. If `after` is absent too, only new events are received.
    ///   - filter: selects the events to receive.
    /// - Returns: the newest event at the time of the subscription, and the name of the journal.
    @discardableResult
    public func subscribe(
        after: Int64? = nil, journal: String? = nil, since: Milliseconds? = nil, filter: EventFilter = EventFilter()
    ) throws(ClientError) -> EventsSubscribeResult {
        try call(
            .eventsSubscribe, EventsSubscribeParameters(after: after, journal: journal, since: since, filter: filter))
    }
}
