import Curl
import HTTPTypes

/// The performer of a download over HTTP: reports events to ``DownloadStateMachine``, and performs its actions.
///
/// Lives on its loop's thread.
final class DownloadRun: DownloadTaskRun {
    let task: DownloadTask
    unowned let core: LoopCore
    let file: DownloadFile
    let session: Session
    // Used for each chunk of a body. The state machine calls no code outside itself.
    @exclusivity(unchecked) var machine: DownloadStateMachine
    /// The exchanges, one for each connection of the state machine.
    @exclusivity(unchecked) var connections: [DownloadConnection] = []
    var destination: FileDestination?
    var borrowed: BorrowedConnections
    var timers = DownloadTimers()
    /// The method and body of a request that is not a plain `GET`.
    let outgoing: OutgoingBody?
    /// The host at which the download is registered in ``HostPaths``; `nil` before that.
    private var lineHost: String?
    private var load = ThreadLoad()

    /// - Parameters:
    ///   - file: the part file; absent: what an earlier attempt left.
    ///   - outgoing: the sender of the request's body; absent: a new one if there is a body.
    init(task: DownloadTask, core: LoopCore, file: DownloadFile? = nil, outgoing: OutgoingBody? = nil) {
        self.task = task
        self.core = core
        self.outgoing = outgoing ?? (task.isRepeatable ? nil : OutgoingBody(task.body, of: task, on: core))
        session = task.session
        borrowed = BorrowedConnections(of: task)
        self.file = file ?? DownloadFile(task: task, core: core)
        machine = DownloadStateMachine(
            DownloadStateMachine.Configuration(
                segments: task.originalRequest.segments, hasMismatch: !task.mismatches.isEmpty,
                leavesFailingSource: task.originalRequest.leavesFailingSource, isRepeatable: task.isRepeatable,
                emptyStatuses: task.originalRequest.emptyResponseCodes,
                confirmationDelay: task.originalRequest.confirmationDelay),
            sources: DownloadSources(task.originalRequest, wrong: task.mismatches.wrong))
        machine.unconfirmed = task.unconfirmed
        self.file.run = self
    }

    /// Goes on with a response that another run has begun to receive; ``didReceiveFinalHead(_:at:of:)`` follows.
    convenience init(
        task: DownloadTask, core: LoopCore, takingOver transaction: Transaction, outgoing: OutgoingBody
    ) {
        outgoing.task = task
        self.init(task: task, core: core, outgoing: outgoing)
        transaction.transfer(to: task, self)
        connections = [DownloadConnection(transaction, file: file)]
        machine.start(
            takingOverFrom: transaction.url.map { ResumeData.resource(of: $0.text) },
            now: MonotonicTime.now().milliseconds)
    }

    var isEnded: Bool { machine.isEnded }

    // MARK: From the task

    func start() {
        do throws(TransferError) {
            try checkMethod()
            try file.reopen()
        } catch {
            return perform(machine.fail(error))
        }
        let first = openFirst(machine.start())
        // Every byte came in an earlier attempt.
        if let total = file.version.total, file.count == total, total > 0 { return perform(.finish(first.number)) }
        task.progress.setConnections(1)
        do throws(TransferError) {
            try prepareJoining()
        } catch {
            return perform(machine.diskFailed(first.number, error, facts()))
        }
        perform(machine.begin(facts()))
    }

    private func checkMethod() throws(TransferError) {
        guard !task.isRepeatable else { return }
        _ = try? task.unusableResumeData?.discard()
        guard task.originalRequest.method != .head else {
            throw TransferError(.invalidRequest, "a response to HEAD has no body to download")
        }
        guard task.originalRequest.mirrors.isEmpty else {
            throw TransferError(.invalidRequest, "mirrors apply to downloads by GET only")
        }
    }

    /// Goes on with mirrors in the place of a file server.
    ///
    /// - Parameters:
    ///   - error: the reason why that server is left.
    ///   - isSuspended: whether the task is.
    func startWithMirrors(after error: TransferError, isSuspended: Bool) {
        machine.isSuspended = isSuspended
        let action = machine.startWithMirrors(after: error, facts())
        _ = openFirst(0)
        task.progress.setConnections(1)
        if machine.mayBeJoined(file.contents), file.count > 0 { file.join() }
        perform(action)
    }

    private func openFirst(_ number: Int) -> DownloadConnection {
        let request = machine.sources.own.request
        let connection = DownloadConnection(
            Transaction(task, request: request, client: self, core: core), file: file)
        connections = [connection]
        if machine.isSuspended { connection.transaction.pause(.suspended) }
        return connection
    }

    /// Finds out before the first request whether the destination has a digest: under one, the part is continued
    /// whatever the server says of its version, by another source too.
    ///
    /// After a mismatch, the missing bytes may come from another source where pieces are checked one by one.
    private func prepareJoining() throws(TransferError) {
        guard file.count > 0, file.target != nil else { return }
        if task.mismatches.isEmpty {
            guard try file.isDigestKnown() else { return }
        }
        let own = machine.sources.own
        destination = try file.place(
            ResourceMetadata(nil, file.version), total: file.version.total, ofMirror: own.number > 0)
        let isOwn =
            file.version.validator.ifRange != nil
            && file.version.origin == ResumeData.resource(of: own.request.url)
        if !task.mismatches.isEmpty, file.isChecked, !isOwn { file.join() }
    }

    /// Returns an open connection. Called for every chunk: the loop allocates nothing in debug builds either.
    func connection(_ number: Int) -> DownloadConnection? {
        var index = 0
        while index < connections.count {
            if connections[index].number == number { return connections[index] }
            index += 1
        }
        return nil
    }

    func cancel() { perform(machine.fail(.cancelled)) }

    func suspend() {
        machine.isSuspended = true
        for connection in connections { connection.transaction.pause(.suspended) }
    }

    func resume() {
        machine.isSuspended = false
        for connection in connections { connection.transaction.resume(.suspended) }
        checkInvariants()
    }

    /// A checkpoint that covers `count` bytes has been written.
    func confirm(_ count: Int64, of generation: String) {
        file.confirm(count, of: generation)
        guard !file.isAhead else { return }
        for connection in connections { connection.transaction.resume(.checkpoint) }
        checkInvariants()
    }

    func flushGathered() -> BlockWriter? {
        for connection in connections where !isEnded { _ = flush(connection) }
        checkInvariants()
        return file.busyWriter
    }

    func diskDidMove(_ error: TransferError?) {
        if isEnded { return }
        if let error, let connection = connections.first {
            return perform(machine.diskFailed(connection.number, error, facts()))
        }
        guard !file.isBehind else { return }
        for connection in connections where !connection.writer.isBlocked { connection.transaction.resume(.disk) }
        checkInvariants()
    }

    // MARK: Ticks

    /// Decides on the connections and the sources.
    func tick() {
        let before = machine.growth.capacity
        let facts = facts()
        var observations = DownloadStateMachine.Observations()
        if machine.isScaling(facts) {
            observations.received = task.progress.transferredBytes
            observations.wanted = borrowed.wanted
            if machine.configuration.segments.isAutomatic {
                observations.isBusy = load.isBusy()
                if machine.observesLine {
                    observations.line = lineHost.flatMap {
                        lines.look(
                            task.identifier, at: $0, connections: connections.count,
                            isTrying: machine.growth.isTrying, now: facts.now)
                    }
                }
            }
        }
        let action = machine.tick(observations, facts)
        if machine.observesLine, let lineHost, let capacity = machine.growth.capacity, capacity != before,
            capacity != observations.line?.capacity
        {
            lines.record(capacity, at: lineHost, now: facts.now)
        }
        perform(action)
        perform(machine.tickSources(self.facts()))
        perform(machine.tickEnded(self.facts()))
    }

    func startTicking(_ milliseconds: Int64) {
        _ = load.isBusy()
        if lineHost == nil, machine.configuration.segments.isAutomatic,
            let host = connections.first?.transaction.url?.origin
        {
            lines.enter(task.identifier, at: host, progress: task.progress, now: core.now.milliseconds)
            lineHost = host
        }
        timers.tick = core.after(milliseconds: milliseconds) { [unowned self] in
            timers.tick = nil
            tick()
            // Not after an offer: two downloads that both decline would offer the slot to each other forever.
            if !isEnded, machine.growth.isWaiting, let origin = connections.first?.transaction.url?.origin {
                session.expectConnection(at: origin, for: task)
            }
            checkInvariants("tick")
        }
    }

    /// A host that this download was waiting for has a free connection.
    func mayBorrow(at origin: String) {
        if timers.tick != nil, !isEnded {
            timers.stopTick(core)
            tick()
            checkInvariants("mayBorrow")
        }
        // The rest of the room is another's.
        session.offerConnection(at: origin)
    }

    var lines: HostPaths { session.resources.lines }

    func leaveLine() {
        if let lineHost { lines.unregister(task.identifier, at: lineHost) }
    }

    // MARK: Facts

    func facts() -> DownloadFacts {
        let now = MonotonicTime.now()
        return DownloadFacts(
            now: now.milliseconds, part: file.contents,
            exchanges: connections.map { connection in
                let transaction = connection.transaction
                return ExchangeFacts(
                    number: connection.number, position: connection.writer.position,
                    gathered: Int64(connection.writer.pending),
                    isPaused: !transaction.pauses.isEmpty || transaction.launcher.awaitsTurn,
                    isHeldBack: transaction.isHeldBack(now: now), speaksHTTP1: transaction.speaksHTTP1,
                    bodyBegun: transaction.bodyBegun, isShortcut: transaction.isShortcut)
            })
    }
}

/// The timers of one download, by their identifiers on its loop.
struct DownloadTimers {
    /// The timer of the next tick.
    var tick: Int?
    /// The timer after which a server is requested from once more.
    var wait: Int?
    /// Timers of connections whose next request is delayed, by the connection's number.
    var requestDelays: [Int: Int] = [:]

    mutating func stopTick(_ core: LoopCore) {
        if let tick { core.cancelTimer(tick) }
        tick = nil
    }

    mutating func stopRequestDelay(_ number: Int, _ core: LoopCore) {
        if let timer = requestDelays.removeValue(forKey: number) { core.cancelTimer(timer) }
    }

    mutating func stopAll(_ core: LoopCore) {
        stopTick(core)
        if let wait { core.cancelTimer(wait) }
        wait = nil
        for timer in requestDelays.values { core.cancelTimer(timer) }
        requestDelays = [:]
    }
}

extension DownloadRun {
    func snapshot() -> DownloadSnapshot {
        let now = MonotonicTime.now().milliseconds
        return DownloadSnapshot(
            connections: connections.compactMap { connection in
                machine[connection.number].map { describe(connection, $0, now: now) }
            }, ranges: file.written, exchanges: connections.compactMap(\.transaction.exchangeUnderWay))
    }

    private func describe(
        _ connection: DownloadConnection, _ segment: SegmentConnection, now: Int64
    ) -> DownloadSnapshot.Connection {
        let next = segment.position(connection.writer.position)
        let wasSent = segment.isUnderWay || segment.isReceiving
        let first = wasSent ? segment.request.from ?? 0 : segment.start
        let end =
            machine.table?.claims[connection.number]?.end ?? segment.end ?? segment.reach ?? file.version.total
        return DownloadSnapshot.Connection(
            address: connection.transaction.launcher.peerAddress, first: min(first, next), next: next,
            end: end.map { max(next, $0) }, rate: segment.timing.rate(at: now))
    }
}

/// The check of the invariants, between two events and in debug builds.
extension DownloadRun {
    /// Checks the invariants of ``DownloadStateMachine``, and that every pause has its owner. Never called from within
    /// libcurl's callbacks.
    func checkInvariants(_ event: StaticString = #function) {
        assert(violation == nil, "\(event): \(violation ?? "")")
    }

    /// The invariant that does not hold; `nil` where all do.
    private var violation: String? {
        for connection in connections {
            if let reason = unownedPause(of: connection) {
                return "connection \(connection.number) is paused: \(reason)"
            }
            if connection.transaction.isUnderWay != machine[connection.number]?.isUnderWay {
                return "connection \(connection.number) and its exchange disagree about what is under way"
            }
        }
        if connections.map(\.number).sorted() != machine.connections.map(\.number).sorted() {
            return "the connections are not those of the state machine"
        }
        return machine.violation(facts(), isDiskBusy: !file.isAtRest || file.isCompleting)
    }

    /// The reason of a pause that nothing will end; `nil` where each has its owner.
    private func unownedPause(of connection: DownloadConnection) -> String? {
        let transaction = connection.transaction
        guard transaction.isUnderWay else { return nil }
        let pauses = transaction.pauses
        if pauses.contains(.rate), !transaction.isResting { return "no timer ends its rest" }
        if pauses.contains(.suspended), !machine.isSuspended { return "the task is not suspended" }
        if pauses.contains(.checkpoint), !file.isAhead { return "no checkpoint is due" }
        if pauses.contains(.disk), !connection.writer.isBlocked { return "no block is on its way to the disk" }
        return nil
    }
}

/// The exchange of one connection of a download, and what its bytes pass through on their way to the file.
///
/// Lives on its loop's thread. Its state is a ``SegmentConnection``.
final class DownloadConnection {
    let transaction: Transaction
    let writer: BodyWriter
    /// Undoes the coding of the body under way.
    var decoder: BodyDecoder?
    /// The head by which the destination will be decided, once the first byte has been validated.
    var undecided: ResourceMetadata?
    /// Whether the first byte of the body is validated: the head's type matters only where there is a body.
    var validatesFirstByte = false

    init(_ transaction: Transaction, file: DownloadFile) {
        self.transaction = transaction
        writer = BodyWriter(file: file)
    }

    var number: Int { transaction.number }

    /// Closes it without an event. To be called from outside libcurl's callbacks.
    func close() {
        transaction.cancel()
        writer.release()
    }
}

/// The additional connections of one download, beyond the one that every task has. Each is borrowed from the connection
/// limit of its origin and returned to it.
struct BorrowedConnections {
    private let task: DownloadTask
    private var session: Session { task.session }
    /// The origins by connection number.
    private var origins: [Int: String] = [:]

    init(of task: DownloadTask) {
        self.task = task
    }

    /// Borrows a connection.
    ///
    /// - Returns: whether the origin's limit permits another connection.
    mutating func borrow(_ number: Int, at origin: String) -> Bool {
        guard session.borrowConnection(at: origin, for: task) else { return false }
        origins[number] = origin
        return true
    }

    /// Returns the connection borrowed for `number`. If `number` is the task's own connection, another connection at
    /// its `origin` is returned instead and then counts as the task's own.
    mutating func giveBack(_ number: Int, at origin: String?) {
        guard let lent = origins[number] != nil ? number : origins.first(where: { $1 == origin })?.key,
            let origin = origins.removeValue(forKey: lent)
        else { return }
        session.giveBackConnection(at: origin)
    }

    mutating func giveBackAll() {
        for origin in origins.values { session.giveBackConnection(at: origin) }
        origins = [:]
    }

    /// The numbers of the connections at whose origins other tasks wait for a connection.
    var wanted: Set<Int> { Set(origins.filter { session.wantsConnection(at: $1) }.keys) }
}

/// A measurement of the share of time for which a thread is running, from one call to the next.
struct ThreadLoad {
    private var last: (wall: MonotonicTime, spent: MonotonicTime)?
    /// The minimum share for a thread to count as busy.
    private static let busy = 0.65

    /// Returns whether the calling thread has hardly been idle since the last call. More connections would then not
    /// increase the throughput.
    mutating func isBusy() -> Bool {
        let (wall, spent) = (MonotonicTime.now(), MonotonicTime.ofThread())
        defer { last = (wall, spent) }
        guard let last else { return false }
        let passed = Double(wall.nanoseconds - last.wall.nanoseconds)
        return passed > 0 && Double(spent.nanoseconds - last.spent.nanoseconds) / passed >= Self.busy
    }
}
