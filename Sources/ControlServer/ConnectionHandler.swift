import ControlProtocol
import CoreMetrics
import NIOCore
import TaskQueue

/// The handler of one client's connection. It reports the events of the channel, of the requests and of the timers to
/// the ``ConnectionStateMachine``, and performs its actions. Belongs to the event loop.
final class ConnectionHandler: ChannelDuplexHandler, TabledConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The objects that the connections of one server share. Belongs to the event loop.
    struct Shared {
        let handler: any ControlHandler
        let table: ConnectionTable
        let workload: Workload
        let heavyThreads: HeavyThreads
        /// The thread of requests that read much of the database.
        let searchThreads: HeavyThreads
        let limits: ConnectionLimits
        /// The number of subscribers whose connection was closed because they did not read their events.
        let subscribersDropped: Counter
    }

    /// The number of reads in a row while a long line is received.
    private static let longLineReads: UInt = 32
    /// The longest line that the event loop decodes, in bytes. A line of 1 MiB would delay other connections.
    private static let lineDecodedHere = 512
    /// The number of responses in a row after which other connections have a turn.
    private static let responsesInRow = 16

    let peer: Peer
    private let shared: Shared
    private let processor: RequestProcessor
    private let link: ClientLink
    private var machine: ConnectionStateMachine
    private var isPerforming = false
    private var sentInRow = 0
    private var context: ChannelHandlerContext?
    private var lastActivity: NIODeadline
    /// The message of the line that was decoded ahead.
    private var ahead: Task<Result<RequestProcessor.Message, RPCError>, Never>?
    private var lineDeadline: Scheduled<Void>?
    private var stallDeadline: Scheduled<Void>?
    private var receiver: DescriptorReceiver?
    /// Whether this connection's subscription, or the request for one, is counted in the table.
    private var holdsSubscription = false
    private let pump = EventPump()

    init(peer: Peer, link: ClientLink, shared: Shared) {
        self.peer = peer
        self.link = link
        self.shared = shared
        processor = RequestProcessor(
            handler: shared.handler, peer: peer, searches: SearchRunner(threads: shared.searchThreads))
        machine = ConnectionStateMachine(limits: shared.limits)
        lastActivity = .now()
    }

    private var workload: Workload { shared.workload }
    private var owner: ObjectIdentifier { ObjectIdentifier(self) }

    // MARK: - Entry of the connection table

    var idleSince: NIODeadline? { machine.isIdle ? lastActivity : nil }

    func close() { context?.close(promise: nil) }

    func drain() { handle(.drain) }

    // MARK: - Events of the channel

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let (connection, eventLoop) = (NIOLoopBound(self, eventLoop: context.eventLoop), context.eventLoop)
        link.whenFilesAreRefused { eventLoop.execute { connection.value.handle(.filesRefused) } }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        handle(.closed)
        self.context = nil
        // The callback refers to this connection, and the front may keep the client's link for longer.
        link.whenFilesAreRefused(nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if machine.lifecycle == .open { lastActivity = .now() }
        handle(.bytesReceived(unwrapInboundIn(data)))
    }

    func read(context: ChannelHandlerContext) { handle(.readRequested) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed { handle(.inputClosed) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        handle(.writabilityChanged(context.channel.isWritable))
        context.fireChannelWritabilityChanged()
    }

    /// Closes the connection, since no error of a connection can be recovered from.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        handle(.closed)
        context.fireChannelInactive()
    }

    // MARK: - Actions

    /// Reports an event and performs what follows from it.
    private func handle(_ event: ConnectionEvent) {
        let isOutermost = !isPerforming
        isPerforming = true
        perform(machine.handle(event))
        guard isOutermost else { return }
        while let action = machine.next() { perform(action) }
        isPerforming = false
    }

    private func perform(_ action: ConnectionAction) {
        switch action {
        case .none: break
        case .read: context?.read()
        case .allowLongLine: setReads(Self.longLineReads)
        case .respond(let reply, let ticket): respond(reply, ticket)
        case .refuse(let message, let ticket):
            if let ticket { workload.release(ticket) }
            send(RequestProcessor.errorLine(.invalidRequest(message)), nil)
        case .resumeInput: link.resume()
        case .close: close()

        case .requestTurn(let lane, let bytes, let ticket):
            workload.request(lane, bytes: bytes, user: peer.uid, owner: owner) { [self] in handle(.turnGranted($0)) }
            if let ticket { workload.release(ticket) }
        case .execute(let line, let lane, let ticket):
            execute(line, lane, ticket)
        case .executeAhead(let ticket):
            guard let message = ahead else { return workload.release(ticket) }
            ahead = nil
            execute(.heavy, ticket) { await message.value }
        case .requestAhead(let bytes):
            handle(.aheadAnswered(workload.requestNow(.heavy, bytes: bytes, user: peer.uid)))
        case .decodeAhead(let line):
            ahead = Task(executorPreference: shared.heavyThreads) { [processor] in processor.read(line) }
        case .requestLongLine:
            workload.requestLongLine(user: peer.uid, owner: owner) { [self] in handle(.longLineGranted) }
        case .releaseLongLine:
            setReads(1)
            workload.releaseLongLine(user: peer.uid)
        case .changeSurplus(let before, let bytes):
            let isGranted = workload.changeSurplus(from: before, to: bytes, user: peer.uid)
            handle(isGranted ? .surplusChanged(to: bytes) : .surplusRefused)
        case .release(let ticket): workload.release(ticket)

        case .requestPage:
            workload.request(.events, bytes: RequestCost.eventPage, user: peer.uid, owner: owner) { [self] in
                handle(.pageGranted($0))
            }
        case .grantPage: pump.grantTurn()
        case .sendEvents(let lines, let ticket):
            var ticket = ticket ?? workload.charge(0, user: peer.uid)
            workload.workEnded(&ticket, leaving: lines.storageCapacity)
            send(lines, ticket, pump.takeSending())
        case .endPage(let ticket), .endSubscription(let ticket):
            pump.failTurn()
            if let ticket { workload.release(ticket) }

        case .startLineDeadline:
            lineDeadline?.cancel()
            lineDeadline = schedule(.lineDeadlinePassed, in: shared.limits.halfLine)
        case .cancelLineDeadline: lineDeadline?.cancel()
        // Each deadline covers the data that was unread when it was set, so that a client that reads slowly but
        // steadily is kept.
        case .startStallDeadline: stallDeadline = startStallDeadline()
        case .cancelStallDeadline: stallDeadline?.cancel()
        case .cancelWaits: cancelWaits()
        case .abandon:
            lineDeadline?.cancel()
            stallDeadline?.cancel()
            workload.forget(user: peer.uid, owner: owner)
            releaseSubscription()
            cancelWaits()
            processor.searches.end()
            ahead = nil
        }
    }

    private func cancelWaits() {
        pump.cancel()
        receiver?.cancel()
        receiver = nil
    }

    private func schedule(_ event: ConnectionEvent, in time: Duration) -> Scheduled<Void>? {
        context?.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(time)) { self.handle(event) }
    }

    private func startStallDeadline() -> Scheduled<Void>? {
        context?.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(shared.limits.stalled)) { [self] in
            if machine.isSubscribed, !machine.unread.isMarkTaken { shared.subscribersDropped.increment() }
            handle(.stallDeadlinePassed)
        }
    }

    private func setReads(_ count: UInt) {
        // A closed channel reads no more, so a failure does not matter.
        try? context?.channel.syncOptions?.setOption(.maxMessagesPerRead, value: count)
    }

    // MARK: - Requests

    private func execute(_ line: ByteBuffer, _ lane: Workload.Lane, _ ticket: Workload.Ticket) {
        guard line.readableBytes <= Self.lineDecodedHere else {
            return execute(lane, ticket) { [processor] in processor.read(line) }
        }
        // The handler may block when it prepares a command, so that is left to the task.
        let message = processor.decode(line)
        guard let reply = processor.replyAtHand(to: message) else { return execute(lane, ticket) { message } }
        sentInRow += 1
        guard sentInRow >= Self.responsesInRow, let eventLoop = context?.eventLoop else {
            lastActivity = .now()
            return handle(.replied(reply, ticket))
        }
        sentInRow = 0
        shared.table.taskBegan()
        eventLoop.assumeIsolated().execute {
            self.lastActivity = .now()
            self.taskEnded(.replied(reply, ticket))
        }
    }

    private func execute(
        _ lane: Workload.Lane, _ ticket: Workload.Ticket,
        decoding: @escaping @Sendable () async -> Result<RequestProcessor.Message, RPCError>
    ) {
        guard let eventLoop = context?.eventLoop else { return workload.release(ticket) }
        shared.table.taskBegan()
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        let heavyThreads = lane == .quick ? nil : shared.heavyThreads
        let permit = SubscriptionPermit(
            acquire: {
                (try? await eventLoop.submit { connection.value.acquireSubscription() }.get())
                    ?? .refused(.tooManySubscriptions)
            },
            release: { eventLoop.execute { connection.value.releaseSubscription() } })
        Task(executorPreference: heavyThreads) { [processor] in
            let message = await decoding()
            if lane == .quick, case .success(let message) = message, let cost = RequestCost.heavy(message) {
                eventLoop.execute { connection.value.taskEnded(.costFound(cost, ticket)) }
                return
            }
            let reply = await processor.reply(to: message, permit: permit)
            eventLoop.execute {
                connection.value.lastActivity = .now()
                connection.value.taskEnded(.replied(reply, ticket))
            }
        }
    }

    private func taskEnded(_ event: ConnectionEvent) {
        handle(event)
        shared.table.taskEnded()
    }

    private func respond(_ reply: RequestProcessor.Reply, _ ticket: Workload.Ticket) {
        // The client may send the files as soon as it has the response.
        if let room = reply.room { receiveFiles(room) }
        if let answer = reply.answer {
            var ticket = ticket
            workload.workEnded(&ticket, leaving: answer.storageCapacity)
            send(answer, ticket)
        } else {
            workload.release(ticket)
        }
        if let subscription = reply.subscription { serve(subscription) }
    }

    private func receiveFiles(_ room: DescriptorQuota.Reservation) {
        guard let eventLoop = context?.eventLoop else { return }
        receiver = DescriptorReceiver(
            link: link, room: room, limit: shared.limits.halfLine, eventLoop: eventLoop
        ) { [weak self] in self?.receivedFiles($0) }
    }

    private func receivedFiles(_ outcome: DescriptorReceiver.Outcome) {
        receiver = nil
        lastActivity = .now()
        switch outcome {
        case .files(let files):
            peer.files.replace(with: files)
            handle(.filesReceived)
        case .failed(let reason): handle(.filesFailed(reason))
        }
    }

    /// Sends a line.
    ///
    /// - Parameters:
    ///   - ticket: the memory that `line` holds until it is written to the socket.
    ///   - written: a promise that receives the outcome as well.
    private func send(_ line: ByteBuffer, _ ticket: Workload.Ticket?, _ written: EventLoopPromise<Void>? = nil) {
        guard let context else {
            if let ticket { workload.release(ticket) }
            written?.fail(ChannelError.ioOnClosedChannel)
            return handle(.writeEnded)
        }
        let promise = written ?? context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in
            if let ticket { self.workload.release(ticket) }
            self.handle(.writeEnded)
        }
        context.writeAndFlush(wrapOutboundOut(line), promise: promise)
    }

    // MARK: - Events for a subscriber

    private func acquireSubscription() -> SubscriptionPermit.Decision {
        if holdsSubscription { return .refused(.alreadySubscribed) }
        guard !machine.isOver, shared.table.beginSubscription(of: peer.uid) else {
            return .refused(.tooManySubscriptions)
        }
        holdsSubscription = true
        return .granted
    }

    private func releaseSubscription() {
        guard holdsSubscription else { return }
        holdsSubscription = false
        shared.table.endSubscription(of: peer.uid)
    }

    private func serve(_ subscription: EventSubscription) {
        guard let eventLoop = context?.eventLoop else { return releaseSubscription() }
        shared.table.taskBegan()
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        let room = EventRoom(
            acquire: { (try? await eventLoop.flatSubmit { connection.value.requestPage(on: eventLoop) }.get()) != nil },
            release: { eventLoop.execute { connection.value.handle(.pageReturned) } })
        pump.start(
            subscription, room: room, on: shared.heavyThreads,
            send: { lines in eventLoop.flatSubmit { connection.value.sendEvents(lines, on: eventLoop) } },
            ended: { eventLoop.execute { connection.value.subscriptionEnded() } })
    }

    private func subscriptionEnded() {
        releaseSubscription()
        taskEnded(.subscriptionEnded)
    }

    private func requestPage(on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
        guard machine.mayRequestPage else { return eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel) }
        return pump.awaitTurn(on: eventLoop) { handle(.pageRequested) }
    }

    private func sendEvents(_ lines: ByteBuffer, on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
        pump.awaitSending(on: eventLoop) { handle(.pageRead(lines)) }
    }
}
