import ControlProtocol
import NIOCore

/// One client's connection: its lines are carried out one after the other, and its events go out between the
/// answers. Belongs to the event loop.
///
/// It takes no more from the client than it can serve: with a line waiting, a request under way or answers unread,
/// it soon stops reading, and the client's own socket fills up.
final class ConnectionHandler: ChannelDuplexHandler, TabledConnection {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Bytes that may wait behind a complete line before reading pauses.
    private static let readAhead = 65_536

    private enum Step {
        case line(ByteBuffer)
        case decoding(Task<Result<RequestProcessor.Message, RPCError>, Never>)
        case tooLong
    }

    let peer: Peer
    private let processor: RequestProcessor
    private let table: ConnectionTable
    private let limits: ConnectionLimits

    private var context: ChannelHandlerContext?
    private var decoder = LineDecoder()
    private var lastActivity: NIODeadline
    /// A request is being carried out.
    private var isBusy = false
    /// What comes after it, taken already.
    private var ahead: Step?
    /// The client will send nothing more; it may still read.
    private var isInputClosed = false
    /// No further line is taken; it ends with the request under way.
    private var isDraining = false
    /// Nothing more is written; the connection closes once everything has been taken from it.
    private var isEnding = false
    /// A read that was held back.
    private var isReadHeld = false
    /// Writes that the kernel has not taken yet.
    private var writesUnderWay = 0
    private var halfLineDeadline: Scheduled<Void>?
    /// Which line that deadline is about.
    private var lineOfDeadline: Int?
    private var stallDeadline: Scheduled<Void>?
    private var pump: Task<Void, Never>?
    /// The pump waits for this while the client leaves things unread.
    private var roomForEvents: EventLoopPromise<Void>?

    init(peer: Peer, handler: any ControlHandler, table: ConnectionTable, limits: ConnectionLimits) {
        self.peer = peer
        self.table = table
        self.limits = limits
        processor = RequestProcessor(handler: handler, peer: peer)
        lastActivity = .now()
    }

    // MARK: - As the table knows it

    var idleSince: NIODeadline? { isBusy || pump != nil ? nil : lastActivity }

    func close() {
        context?.close(promise: nil)
    }

    func drain() {
        isDraining = true
        pump?.cancel()
        if !isBusy { end() }
    }

    // MARK: - Reading

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isEnding, !isDraining else { return }
        lastActivity = .now()
        decoder.append(unwrapInboundIn(data))
        advance()
    }

    func read(context: ChannelHandlerContext) {
        if mayRead {
            context.read()
        } else {
            isReadHeld = true
        }
    }

    private var mayRead: Bool {
        !isEnding && !isDraining && (!decoder.hasItem || decoder.count < Self.readAhead)
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
        roomForEvents?.fail(ChannelError.ioOnClosedChannel)
        roomForEvents = nil
        context.fireChannelInactive()
    }

    // MARK: - Carrying out

    /// Takes the next step that can be taken.
    private func advance() {
        guard let context else { return }
        while !isBusy, !isEnding, !isDraining, context.channel.isWritable, let step = ahead ?? nextStep() {
            ahead = nil
            switch step {
            case .line(let line): begin(context) { [processor] in processor.read(line) }
            case .decoding(let message): begin(context) { await message.value }
            case .tooLong:
                let error = RPCError.invalidRequest("a line is longer than \(MessageLimits.lineLength) bytes")
                send(RequestProcessor.errorLine(error), context)
                end()
            }
        }
        decodeAhead()
        watchHalfLine(context)
        if isReadHeld, mayRead {
            isReadHeld = false
            context.read()
        }
        if isInputClosed, !isBusy, !decoder.hasItem, pump == nil { end() }
    }

    private func nextStep() -> Step? {
        while let item = decoder.next() {
            switch item {
            case .line(let line):
                let blank = Array(" \t\r".utf8)
                if !line.readableBytesView.allSatisfy(blank.contains) { return .line(line) }
            case .tooLong: return .tooLong
            }
        }
        return nil
    }

    /// While one line is carried out the next is read; it is carried out after it all the same.
    private func decodeAhead() {
        guard isBusy, ahead == nil, !isEnding, !isDraining, let step = nextStep() else { return }
        if case .line(let line) = step {
            ahead = .decoding(Task { [processor] in processor.read(line) })
        } else {
            ahead = step
        }
    }

    private func begin(
        _ context: ChannelHandlerContext,
        decoding: @escaping @Sendable () async -> Result<RequestProcessor.Message, RPCError>
    ) {
        isBusy = true
        table.taskBegan()
        let eventLoop = context.eventLoop
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        // The decoding, too, happens away from the event loop: a line of 1 MiB must delay nobody else.
        Task { [processor, isSubscribed = pump != nil] in
            let reply = await processor.reply(to: await decoding(), isSubscribed: isSubscribed)
            eventLoop.execute { connection.value.finish(reply) }
        }
    }

    private func finish(_ reply: RequestProcessor.Reply) {
        defer { table.taskEnded() }
        isBusy = false
        lastActivity = .now()
        guard let context, !isEnding else { return }
        if let answer = reply.answer { send(answer, context) }
        if isDraining {
            end()
            return
        }
        if let subscription = reply.subscription { serve(subscription, context) }
        advance()
    }

    /// The deadline stands only while half a line waits, so that an idle connection wakes nobody.
    private func watchHalfLine(_ context: ChannelHandlerContext) {
        let line = isEnding || isInputClosed || ahead != nil ? nil : decoder.growingLine
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

    private func send(_ line: ByteBuffer, _ context: ChannelHandlerContext) {
        writesUnderWay += 1
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { _ in self.written() }
        context.writeAndFlush(wrapOutboundOut(line), promise: promise)
    }

    private func written() {
        writesUnderWay -= 1
        if isEnding, writesUnderWay == 0 { close() }
    }

    /// Closes once the client has taken what was written, or has left it unread for too long.
    private func end() {
        guard !isEnding else { return }
        isEnding = true
        guard writesUnderWay > 0 else {
            close()
            return
        }
        watchStall()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            if !isEnding {
                stallDeadline?.cancel()
                stallDeadline = nil
            }
            roomForEvents?.succeed()
            roomForEvents = nil
            advance()
        } else {
            watchStall()
        }
        context.fireChannelWritabilityChanged()
    }

    private func watchStall() {
        guard let context, stallDeadline == nil else { return }
        stallDeadline = context.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(limits.stalled)) { self.close() }
    }

    // MARK: - Events

    private func serve(_ subscription: EventSubscription, _ context: ChannelHandlerContext) {
        table.taskBegan()
        let eventLoop = context.eventLoop
        let connection = NIOLoopBound(self, eventLoop: eventLoop)
        pump = Task {
            for await page in subscription.pages {
                let lines = RequestProcessor.lines(page)
                let room = eventLoop.flatSubmit { connection.value.sendEvents(lines, on: eventLoop) }
                if (try? await room.get()) == nil {
                    // The stream is asked once more, as a cancelled task: only so does its maker hear of the end.
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            eventLoop.execute { connection.value.pumpEnded() }
        }
    }

    /// - Returns: succeeds when there is room for another; fails when the connection is ending.
    private func sendEvents(_ lines: ByteBuffer, on eventLoop: any EventLoop) -> EventLoopFuture<Void> {
        guard let context, !isEnding, !isDraining else {
            return eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
        }
        send(lines, context)
        guard !context.channel.isWritable else { return eventLoop.makeSucceededVoidFuture() }
        let promise = eventLoop.makePromise(of: Void.self)
        roomForEvents = promise
        return promise.futureResult
    }

    private func pumpEnded() {
        defer { table.taskEnded() }
        pump = nil
        if !isBusy { end() } else { isDraining = true }
    }
}
