import ControlProtocol
import NIOCore
import TaskQueue

/// One client's connection: its lines are carried out one after the other, and its events go out between the
/// answers. Belongs to the event loop.
///
/// It takes no more from the client than it can serve: with a line waiting, a request under way or answers unread,
/// it soon stops reading, and the client's own socket fills up. What it holds besides is asked of the ``Workload``.
final class ConnectionHandler: ChannelDuplexHandler, TabledConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Reads in a row while a long line comes.
    private static let longLineReads: UInt = 32

    private enum Step {
        case line(ByteBuffer)
        case decoding(Task<Result<RequestProcessor.Message, RPCError>, Never>, Workload.Ticket)
        case tooLong
    }

    private enum Phase {
        case idle
        /// A line waits for its turn.
        case waiting(lineLength: Int)
        /// A request is being carried out.
        case running
        /// Open files are to come.
        case receiving(DescriptorReceiver)
    }

    private enum LongLine {
        case none, asked, granted
    }

    let peer: Peer
    private let server: ServerParts
    private let processor: RequestProcessor
    private let link: ClientLink
    private var limits: ConnectionLimits { server.limits }
    private var workload: Workload { server.workload }

    private var context: ChannelHandlerContext?
    private var decoder = LineDecoder()
    private var lastActivity: NIODeadline
    private var phase = Phase.idle
    /// What comes after it, taken already.
    private var ahead: Step?
    /// Whether the client may send more than a short line.
    private var longLine = LongLine.none
    /// The number of bytes that wait here beyond those that the client may send.
    private var surplus = 0
    /// The client will send nothing more; it may still read.
    private var isInputClosed = false
    /// No further line is taken; it ends with the request under way.
    private var isDraining = false
    /// Nothing more is written; the connection closes once everything has been taken from it.
    private var isEnding = false
    /// A read that was held back.
    private var isReadHeld = false
    private var unread = UnreadWrites()
    private var halfLineDeadline: Scheduled<Void>?
    /// Which line that deadline is about.
    private var lineOfDeadline: Int?
    private var stallDeadline: Scheduled<Void>?
    private var pump: Task<Void, Never>?
    /// The ticket of the page of events that is being read.
    private var pageTicket: Workload.Ticket?
    /// The pump waits for this until the page's turn comes.
    private var pageTurn: EventLoopPromise<Void>?

    init(peer: Peer, link: ClientLink, server: ServerParts) {
        self.peer = peer
        self.link = link
        self.server = server
        processor = RequestProcessor(handler: server.handler, peer: peer)
        lastActivity = .now()
    }

    private var isBusy: Bool { if case .idle = phase { false } else { true } }
    private var isRunning: Bool { if case .running = phase { true } else { false } }
    private var owner: ObjectIdentifier { ObjectIdentifier(self) }

    // MARK: - As the table knows it

    var idleSince: NIODeadline? { isBusy || pump != nil ? nil : lastActivity }

    func close() {
        context?.close(promise: nil)
    }

    func drain() {
        isDraining = true
        pump?.cancel()
        stopReceiving()
        if !isBusy { end() }
    }

    // MARK: - Reading

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let (connection, eventLoop) = (NIOLoopBound(self, eventLoop: context.eventLoop), context.eventLoop)
        link.whenFilesAreRefused { eventLoop.execute { connection.value.filesAreRefused() } }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        // It refers to this connection, and the front may know the client for longer.
        link.whenFilesAreRefused(nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isEnding, !isDraining else { return }
        lastActivity = .now()
        decoder.append(unwrapInboundIn(data))
        guard payForSurplus() else { return }
        advance()
    }

    /// When the client closes its end, NIO reads all that it has sent, whether it may be read or not.
    ///
    /// - Returns: `false` where there is no room for it: the connection is closed.
    private func payForSurplus() -> Bool {
        let isSurplus = longLine != .granted && decoder.count > 2 * limits.shortLine && !isEnding
        let bytes = isSurplus ? decoder.capacity : 0
        guard bytes != surplus else { return true }
        if workload.changeSurplus(from: surplus, to: bytes, user: peer.uid) {
            surplus = bytes
            return true
        }
        close()
        return false
    }

    func read(context: ChannelHandlerContext) {
        if mayRead {
            context.read()
        } else {
            isReadHeld = true
        }
    }

    private var mayRead: Bool {
        if case .receiving = phase { return false }
        return !isEnding && !isDraining && !decoder.hasItem
            && (decoder.count <= limits.shortLine || longLine == .granted)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed {
            isInputClosed = true
            advance()
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Nothing is to be done about a connection's error save to end it.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        isEnding = true
        halfLineDeadline?.cancel()
        stallDeadline?.cancel()
        pump?.cancel()
        workload.forget(user: peer.uid, owner: owner)
        if case .waiting = phase { phase = .idle }
        stopReceiving()
        decoder = LineDecoder()
        if case .decoding(_, let ticket) = ahead { workload.release(ticket) }
        ahead = nil
        askForLongLine()
        _ = payForSurplus()  // there is none any more
        failPage()
        context.fireChannelInactive()
    }

    /// More than a short line is received only in turn: its end may be long in coming.
    private func askForLongLine() {
        let isLong = decoder.count > limits.shortLine
        var isHeld = isLong
        if case .waiting(let length) = phase, length > limits.shortLine { isHeld = true }
        switch longLine {
        case .none where isLong && !decoder.hasItem && !isEnding && !isDraining:
            longLine = .asked
            workload.requestLongLine(user: peer.uid, owner: owner) { [self] in
                longLine = .granted
                setReads(Self.longLineReads)
                readOn()
            }
        case .granted where !isHeld:
            longLine = .none
            setReads(1)
            workload.releaseLongLine(user: peer.uid)
        case .asked where isEnding: longLine = .none
        default: break
        }
    }

    private func setReads(_ count: UInt) {
        // Where the channel is closed it reads no more.
        try? context?.channel.syncOptions?.setOption(.maxMessagesPerRead, value: count)
    }

    private func readOn() {
        guard let context else { return }
        watchHalfLine(context)
        if isReadHeld, mayRead {
            isReadHeld = false
            context.read()
        }
    }

    // MARK: - Carrying out

    /// Takes the next step that can be taken.
    private func advance() {
        guard let context else { return }
        while !isBusy, !isEnding, !isDraining, context.channel.isWritable, let step = ahead ?? nextStep() {
            ahead = nil
            switch step {
            case .line(let line): ask(line)
            case .decoding(let message, let ticket): run(ticket, .heavy) { await message.value }
            case .tooLong:
                let error = RPCError.invalidRequest("a line is longer than \(MessageLimits.lineLength) bytes")
                send(RequestProcessor.errorLine(error), nil)
                end()
            }
        }
        decodeAhead()
        askForLongLine()
        if surplus > 0, !payForSurplus() { return }
        readOn()
        if isInputClosed, !isBusy, ahead == nil, !decoder.hasItem, pump == nil { end() }
    }

    private func nextStep() -> Step? {
        while let item = decoder.next() {
            switch item {
            case .line(let line):
                if line.readableBytes > limits.shortLine || !RequestProcessor.isBlank(line) { return .line(line) }
            case .tooLong: return .tooLong
            }
        }
        return nil
    }

    /// While one line is carried out the next long one is read; it is carried out after it all the same.
    private func decodeAhead() {
        guard isRunning, ahead == nil, !isEnding, !isDraining, decoder.lineLength > limits.shortLine,
            let ticket = workload.requestNow(
                .heavy, bytes: RequestCost.longLine(decoder.lineLength, isBatch: false), user: peer.uid)
        else { return }
        if case .line(let line) = decoder.next() {
            let message = Task(executorPreference: server.heavyThreads) { [processor] in processor.read(line) }
            ahead = .decoding(message, ticket)
        } else {
            workload.release(ticket)
        }
    }

    /// Has `line` carried out when its turn comes.
    private func ask(_ line: ByteBuffer) {
        let length = line.readableBytes
        if length <= limits.shortLine {
            ask(line, .quick, RequestCost.quick)
        } else {
            ask(line, .heavy, RequestCost.longLine(length, isBatch: RequestProcessor.isBatch(line)))
        }
    }

    private func ask(_ line: ByteBuffer, _ lane: Workload.Lane, _ bytes: Int) {
        phase = .waiting(lineLength: line.readableBytes)
        workload.request(lane, bytes: bytes, user: peer.uid, owner: owner) { [self, processor] ticket in
            guard !isEnding else { return workload.release(ticket) }
            // The decoding, too, happens away from the event loop: a line of 1 MiB must delay nobody else.
            run(ticket, lane, line) { processor.read(line) }
        }
    }

    /// - Parameter line: given again where it turns out that more is asked for than of a quick request.
    private func run(
        _ ticket: Workload.Ticket, _ lane: Workload.Lane, _ line: ByteBuffer? = nil,
        decoding: @escaping @Sendable () async -> Result<RequestProcessor.Message, RPCError>
    ) {
        guard let eventLoop = context?.eventLoop else {
            phase = .idle
            return workload.release(ticket)
        }
        phase = .running
        server.table.taskBegan()
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        let heavyThreads = lane == .quick ? nil : server.heavyThreads
        Task(executorPreference: heavyThreads) { [processor, isSubscribed = pump != nil] in
            let message = await decoding()
            if lane == .quick, let line, case .success(let message) = message, let cost = RequestCost.heavy(message) {
                eventLoop.execute { connection.value.postpone(line, cost, ticket) }
                return
            }
            let reply = await processor.reply(to: message, isSubscribed: isSubscribed)
            eventLoop.execute { connection.value.finish(reply, ticket) }
        }
    }

    private func postpone(_ line: ByteBuffer, _ cost: Int, _ ticket: Workload.Ticket) {
        defer { server.table.taskEnded() }
        phase = .idle
        if !isEnding { ask(line, .heavy, cost) }
        workload.release(ticket)
    }

    private func finish(_ reply: RequestProcessor.Reply, _ ticket: Workload.Ticket) {
        defer { server.table.taskEnded() }
        phase = .idle
        lastActivity = .now()
        var ticket = ticket
        guard let context, !isEnding else { return workload.release(ticket) }
        if let room = reply.room, !isDraining, !receive(room, context) {
            workload.release(ticket)
            let rule = "nothing may follow source.receive until it is answered"
            send(RequestProcessor.errorLine(.invalidRequest(rule)), nil)
            return end()
        }
        if let answer = reply.answer {
            workload.workEnded(&ticket, leaving: answer.storageCapacity)
            send(answer, ticket)
        } else {
            workload.release(ticket)
        }
        if isDraining {
            end()
            return
        }
        if let subscription = reply.subscription { serve(subscription, context) }
        advance()
    }

    // MARK: - Open files

    /// Waits for the message that brings `room.count` open files.
    ///
    /// - Returns: `false` where the client has sent something else already.
    private func receive(_ room: DescriptorShares.Reservation, _ context: ChannelHandlerContext) -> Bool {
        guard ahead == nil, decoder.count == 0, !isInputClosed else { return false }
        phase = .receiving(
            DescriptorReceiver(
                link: link, room: room, limit: limits.halfLine, eventLoop: context.eventLoop
            ) { [weak self] in self?.received($0) })
        return true
    }

    private func received(_ outcome: DescriptorReceiver.Outcome) {
        phase = .idle
        lastActivity = .now()
        switch outcome {
        case .files(let files):
            peer.files.replace(with: files)
            link.resume()
            advance()
        case .failed(let reason):
            send(RequestProcessor.errorLine(.invalidRequest(reason)), nil)
            end()
        }
    }

    private func stopReceiving() {
        guard case .receiving(let receiver) = phase else { return }
        receiver.cancel()
        phase = .idle
    }

    /// The client sends open files again and again that nobody asked for: nothing more is taken from it.
    private func filesAreRefused() {
        guard !isEnding else { return }
        send(
            RequestProcessor.errorLine(.invalidRequest("open files may follow the answer to source.receive alone")), nil
        )
        drain()
    }

    /// The deadline stands only while half a line waits, so that an idle connection wakes nobody.
    private func watchHalfLine(_ context: ChannelHandlerContext) {
        // A client that may not send on is not late.
        let isStopped = isEnding || isInputClosed || ahead != nil || longLine == .asked
        let line = isStopped ? nil : decoder.growingLine
        guard line != lineOfDeadline else { return }
        lineOfDeadline = line
        halfLineDeadline?.cancel()
        halfLineDeadline = nil
        guard line != nil else { return }
        halfLineDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.halfLine)) {
            // Not at once: the whole lines before it have a right to their answers.
            self.drain()
        }
    }

    // MARK: - Writing

    /// - Parameter ticket: what `line` holds until the client has taken it.
    @discardableResult
    private func send(_ line: ByteBuffer, _ ticket: Workload.Ticket?) -> EventLoopFuture<Void>? {
        guard let context else {
            if let ticket { workload.release(ticket) }
            return nil
        }
        unread.began()
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in
            if let ticket { self.workload.release(ticket) }
            self.written()
        }
        context.writeAndFlush(wrapOutboundOut(line), promise: promise)
        watchStall()
        return promise.futureResult
    }

    private func written() {
        unread.ended()
        guard unread.isEmpty else { return }
        stallDeadline?.cancel()
        stallDeadline = nil
        if isEnding { close() }
    }

    /// Closes once the client has taken what was written, or has left it unread for too long.
    private func end() {
        guard !isEnding else { return }
        isEnding = true
        failPage()
        if unread.isEmpty { close() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { advance() }
        context.fireChannelWritabilityChanged()
    }

    /// Nobody is waited for who leaves unread for so long what was sent to him. Each time the deadline is about what was
    /// unread when it was set, so that a client that reads slowly and steadily is not given up.
    private func watchStall() {
        guard let context, stallDeadline == nil, !unread.isEmpty else { return }
        unread.mark()
        stallDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.stalled)) {
            self.stallDeadline = nil
            if self.unread.isMarkTaken { self.watchStall() } else { self.close() }
        }
    }

    // MARK: - Events

    private func serve(_ subscription: EventSubscription, _ context: ChannelHandlerContext) {
        server.table.taskBegan()
        let eventLoop = context.eventLoop
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        let room = EventRoom(
            take: { (try? await eventLoop.flatSubmit { connection.value.takePage(on: eventLoop) }.get()) != nil },
            giveBack: { eventLoop.execute { connection.value.releasePage() } })
        pump = Task(executorPreference: server.heavyThreads) {
            for await page in subscription.pages(room) {
                let lines = RequestProcessor.lines(page)
                let taken = eventLoop.flatSubmit { connection.value.sendEvents(lines, on: eventLoop) }
                if (try? await taken.get()) == nil {
                    // The stream is asked once more, as a cancelled task: only so does its maker hear of the end.
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            eventLoop.execute { connection.value.pumpEnded() }
        }
    }

    /// - Returns: succeeds when a page of events may be read; fails when the connection is ending.
    private func takePage(on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
        guard context != nil, !isEnding, !isDraining, pageTicket == nil, pageTurn == nil else {
            return eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
        }
        let promise = eventLoop.makePromise(of: Void.self)
        pageTurn = promise
        workload.request(.events, bytes: RequestCost.eventPage, user: peer.uid, owner: owner) { [self] ticket in
            guard let turn = pageTurn else { return workload.release(ticket) }
            pageTurn = nil
            pageTicket = ticket
            turn.succeed()
        }
        return promise.futureResult
    }

    private func releasePage() {
        guard let ticket = pageTicket else { return }
        pageTicket = nil
        workload.release(ticket)
    }

    private func failPage() {
        pageTurn?.fail(ChannelError.ioOnClosedChannel)
        pageTurn = nil
        releasePage()
    }

    /// - Returns: succeeds when the client has taken them; fails when the connection is ending.
    private func sendEvents(_ lines: ByteBuffer, on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
        guard context != nil, !isEnding, !isDraining else {
            releasePage()
            return eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
        }
        var ticket = pageTicket ?? workload.charge(0, user: peer.uid)
        pageTicket = nil
        workload.workEnded(&ticket, leaving: lines.storageCapacity)
        return send(lines, ticket) ?? eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
    }

    private func pumpEnded() {
        defer { server.table.taskEnded() }
        pump = nil
        failPage()
        if !isBusy { end() } else { isDraining = true }
    }
}
