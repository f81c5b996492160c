import ControlProtocol
import TaskModel

// One function a method. Every one throws `ClientError`: `rpc` for what the daemon answered, the others for a
// connection that failed.
extension ControlClient {
    /// `task.add`: queues all of `tasks` or none.
    ///
    /// - Returns: their ids, in order; durable by now.
    public func add(_ tasks: [TaskSpecification]) throws(ClientError) -> [TaskID] {
        try addOrFind(tasks).ids
    }

    /// Does what ``add(_:)`` does, and also tells which of the ids the daemon had under their keys already.
    public func addOrFind(_ tasks: [TaskSpecification]) throws(ClientError) -> TaskAddResult {
        try call(.taskAdd, TaskAddParameters(tasks: tasks), unlimited: true)
    }

    /// `task.get`
    public func task(_ id: TaskID) throws(ClientError) -> TaskStatus {
        try call(.taskGet, TaskGetParameters(id: id))
    }

    /// `task.get`, with `nil` for a task that there is not, or that this user may not see.
    public func taskIfKnown(_ id: TaskID) throws(ClientError) -> TaskStatus? {
        do throws(ClientError) {
            return try task(id)
        } catch .rpc(let answer) where answer.code == RPCError.Number.unknownTask {
            return nil
        }
    }

    /// `task.list`: one page, oldest first.
    public func page(_ parameters: TaskListParameters) throws(ClientError) -> TaskListResult {
        try call(.taskList, parameters)
    }

    /// `task.list`, page after page.
    ///
    /// - Parameters:
    ///   - limit: the most tasks in all.
    ///   - after: only tasks with a larger id.
    ///   - newest: begin with the first of the newest so many.
    ///   - body: gets each page that holds a task; returns whether to go on.
    public func forEachPage(
        filter: TaskFilter? = nil, limit: Int? = nil, after: TaskID? = nil, newest: Int? = nil,
        _ body: ([TaskStatus]) throws -> Bool
    ) throws {
        var parameters = TaskListParameters(filter: filter, limit: limit, after: after, newest: newest)
        while true {
            let result = try page(parameters)
            if !result.tasks.isEmpty, try !body(result.tasks) { return }
            guard let next = result.next else { return }
            // A page that leads back to itself would go on for ever.
            guard next != parameters.after else { throw ClientError.malformedAnswer("task.list does not advance") }
            if let left = parameters.limit {
                guard left > result.tasks.count else { return }
                parameters.limit = left - result.tasks.count
            }
            parameters.newest = nil
            parameters.after = next
        }
    }

    /// `task.count`
    public func count(_ filter: TaskFilter) throws(ClientError) -> TaskCountResult {
        try call(.taskCount, TaskCountParameters(filter: filter))
    }

    /// `task.pause`, `task.resume`, `task.cancel`, `task.retry` or `task.remove`.
    public func change(
        _ method: MethodName, _ selection: TaskSelectionParameters
    ) throws(ClientError) -> TaskChangeResult {
        try call(method, selection, unlimited: true)
    }

    /// `task.update`: changes what a task asks for, and keeps what was fetched.
    ///
    /// - Returns: the task as it stands now; durable by now.
    public func update(_ id: TaskID, _ changes: TaskChanges) throws(ClientError) -> TaskStatus {
        try call(.taskUpdate, TaskUpdateParameters(id: id, changes: changes), unlimited: true)
    }

    /// `task.update` of several tasks at once.
    ///
    /// - Returns: how many changed, and which could not be; durable by now.
    public func update(
        _ selection: TaskUpdateParameters.Selection, _ changes: TaskChanges
    ) throws(ClientError) -> TaskChangeResult {
        try call(.taskUpdate, TaskUpdateParameters(selection, changes: changes), unlimited: true)
    }

    /// `task.move`: changes a task's place among those of its owner with its priority.
    ///
    /// - Returns: the task; durable by now.
    public func move(_ id: TaskID, _ placement: TaskPlacement) throws(ClientError) -> TaskStatus {
        try call(.taskMove, TaskMoveParameters(id: id, placement: placement), unlimited: true)
    }

    /// `queue.begin`
    ///
    /// - Returns: what ``put(_:into:refused:)``, ``commit(queue:prune:dryRun:)`` and ``abort(queue:)`` take.
    public func beginQueue(batch: String?) throws(ClientError) -> Int64 {
        let result: QueueBeginResult = try call(.queueBegin, QueueBeginParameters(batch: batch))
        return result.queue
    }

    /// `queue.put` for each part of `parts` in turn; two are on their way before the one before them is answered.
    ///
    /// - Parameters:
    ///   - parts: of at most 1,000 entries each, and of what fits into one line.
    ///   - refused: makes the error to throw of the daemon's and of the number of the part that it is about.
    public func put<Refusal: Error>(
        _ parts: some Sequence<[TaskSpecification]>, into queue: Int64,
        refused: (ClientError, _ part: Int) -> Refusal
    ) throws(Refusal) {
        func attempt<Value>(_ part: Int, _ body: () throws(ClientError) -> Value) throws(Refusal) -> Value {
            do throws(ClientError) { return try body() } catch { throw refused(error, part) }
        }
        func take(_ sent: (part: Int, call: PendingCall)) throws(Refusal) {
            let _: QueuePutResult = try attempt(sent.part) { () throws(ClientError) in try answer(to: sent.call) }
        }
        var underWay: ArraySlice<(part: Int, call: PendingCall)> = []
        for (number, entries) in parts.enumerated() {
            let call = try attempt(number) { () throws(ClientError) in
                try begin(.queuePut, QueuePutParameters(queue: queue, entries: entries))
            }
            underWay.append((number, call))
            if underWay.count > 2, let first = underWay.popFirst() { try take(first) }
        }
        while let first = underWay.popFirst() { try take(first) }
    }

    /// `queue.commit`
    public func commit(
        queue: Int64, prune: Bool = false, dryRun: Bool = false
    ) throws(ClientError) -> QueueCommitResult {
        try call(
            .queueCommit,
            QueueCommitParameters(queue: queue, prune: prune ? true : nil, dryRun: dryRun ? true : nil),
            unlimited: true)
    }

    /// `queue.abort`
    public func abort(queue: Int64) throws(ClientError) {
        let _: Acknowledgement = try call(.queueAbort, QueueAbortParameters(queue: queue))
    }

    /// `queue.list`
    public func queues() throws(ClientError) -> QueueListResult {
        try call(.queueList, NoParameters())
    }

    /// `source.receive`: passes open files, which ``TaskSpecification/descriptor`` and ``attach(_:descriptor:)`` then name
    /// by their position.
    ///
    /// - Parameter descriptors: open for reading, from 1 to ``SourceReceiveParameters/maximum``; they stay the caller's.
    public func pass(_ descriptors: [Int32]) throws(ClientError) {
        let _: Acknowledgement = try call(.sourceReceive, SourceReceiveParameters(count: descriptors.count))
        try send(descriptors: descriptors)
    }

    /// `source.attach`: passes the source of an upload anew.
    public func attach(_ id: TaskID, descriptor: Int) throws(ClientError) {
        let _: Acknowledgement = try call(.sourceAttach, SourceAttachParameters(id: id, descriptor: descriptor))
    }

    /// `daemon.status`
    public func status() throws(ClientError) -> DaemonStatus {
        try call(.daemonStatus, NoParameters())
    }

    /// `daemon.limits`: sets rates of all tasks together, until they are changed; without any, tells them.
    ///
    /// - Returns: what counts now.
    public func limits(_ rates: DaemonLimitsParameters = .init()) throws(ClientError) -> DaemonLimits {
        try call(.daemonLimits, rates)
    }

    /// `daemon.reload`: takes up a changed configuration, or refuses it whole.
    public func reload() throws(ClientError) -> DaemonReloadResult {
        try call(.daemonReload, NoParameters(), unlimited: true)
    }

    /// `daemon.shutdown`: the daemon ends in good order after its answer.
    public func shutdown() throws(ClientError) {
        let _: Acknowledgement = try call(.daemonShutdown, NoParameters())
    }

    /// `events.subscribe`; afterwards ``nextEvent(until:)`` brings them.
    ///
    /// - Parameters:
    ///   - after: replays what came after this sequence number; `nil` for only what comes from now on.
    ///   - types: only these, and gaps; `nil` for all.
    /// - Returns: the number of the newest event at this moment.
    @discardableResult
    public func subscribe(after: Int64? = nil, types: [TaskEvent.Kind]? = nil) throws(ClientError) -> Int64 {
        let result: EventsSubscribeResult = try call(
            .eventsSubscribe, EventsSubscribeParameters(after: after, types: types))
        return result.last
    }
}
