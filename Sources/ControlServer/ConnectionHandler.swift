import ControlProtocol
import NIOCore
import TaskQueue

/// The handler of one client's connection. It carries out the lines one after the other, and sends events between the
/// responses. Belongs to the event loop.
///
/// The handler reads no more from the client than it can serve. While a line waits, a request is running or responses
/// are unread, it soon stops reading, and the client's own socket fills up. Anything beyond that requires a grant from
/// the ``Workload``.
final class ConnectionHandler: ChannelDuplexHandler, TabledConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The number of reads in a row while a long line is received.
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
        /// The client is about to send open files.
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
    /// The following step, already taken from the decoder.
    private var ahead: Step?
    /// Whether the client may send more than a short line.
    private var longLine = LongLine.none
    /// The number of bytes held here beyond those that the client may send.
    private var surplus = 0
    /// Whether the client has closed its sending side; it may still read.
    private var isInputClosed = false
    /// Whether no further line is accepted; the connection ends after the current request.
    private var isDraining = false
    /// Whether nothing more is written; the connection closes once all writes have ended.
    private var isEnding = false
    /// Whether a read was deferred.
    private var isReadHeld = false
    private var unread = UnreadWrites()
    private var halfLineDeadline: Scheduled<Void>?
    /// The line that the deadline is for.
    private var lineOfDeadline: Int?
    private var stallDeadline: Scheduled<Void>?
    private var pump: Task<Void, Never>?
    /// The ticket of the page of events that is being read.
    private var pageTicket: Workload.Ticket?
    /// The promise that the pump waits for until the page's turn comes.
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

    // MARK: - Entry of the connection table

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
        // The callback refers to this connection, and the front may keep the client's link for longer.
        link.whenFilesAreRefused(nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isEnding, !isDraining else { return }
        lastActivity = .now()
        decoder.append(unwrapInboundIn(data))
        guard payForSurplus() else { return }
        advance()
    }

    /// Charges the bytes that were received beyond those that the client may send. When the client closes its end, NIO
    /// reads everything it has sent, whether the handler permits reading or not.
    ///
    /// - Returns: `false` if the bytes exceed the limit: the connection is closed.
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

    /// Closes the connection, since no error of a connection can be recovered from.
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

    /// Requests a turn for a line longer than a short one, or gives it back. Such lines are received only in turn,
    /// because their end may take long to arrive.
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
        // A closed channel reads no more, so a failure does not matter.
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

    // MARK: - Execution

    /// Takes every step that is possible now.
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

    /// Decodes the next long line while one line is being carried out. It is still carried out after that one.
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

    /// Requests a turn for `line`, which is then carried out.
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
            // Decoding happens off the event loop too, since a line of 1 MiB must delay no other connection.
            run(ticket, lane, line) { processor.read(line) }
        }
    }

    /// Decodes and carries out a line.
    ///
    /// - Parameter line: the encoded line, for enqueuing it again if it turns out to cost more than a quick request.
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

    /// Waits for the message that carries `room.count` open files.
    ///
    /// - Returns: `false` if the client has already sent something else.
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

    /// Stops reading from a client that repeatedly sends open files without a request for them.
    private func filesAreRefused() {
        guard !isEnding else { return }
        send(
            RequestProcessor.errorLine(.invalidRequest("open files may follow the answer to source.receive alone")), nil
        )
        drain()
    }

    /// Sets or cancels the deadline for the rest of a line. The deadline exists only while half a line waits, so that
    /// an idle connection causes no wake-ups.
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
            // The connection drains instead of closing, since the complete lines before it are entitled to their
            // responses.
            self.drain()
        }
    }

    // MARK: - Writing

    /// - Parameter ticket: the memory that `line` holds until it is written to the socket.
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

    /// Closes the connection once all writes have ended, or once the client has left them unread for too long.
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

    /// Closes the connection if the client leaves sent data unread for too long. Each deadline covers the data that was
    /// unread when it was set, so that a client that reads slowly but steadily is kept.
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
                    // The loop asks the stream once more, now as a cancelled task. Only then does the stream's producer
                    // learn of the end.
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            eventLoop.execute { connection.value.pumpEnded() }
        }
    }

    /// Requests a turn for reading a page of events.
    ///
    /// - Returns: a future that succeeds when a page of events may be read, and fails when the connection is ending.
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

    /// Sends a page of events.
    ///
    /// - Returns: a future that succeeds when they are written to the socket, and fails when the connection is ending.
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
