import NIOCore

/// The state of one client's connection, and every decision about it: what is read, when a line is carried out, what is
/// sent, and when the connection ends.
///
/// A value without I/O, clock and closures. ``ConnectionHandler`` reports each event and performs the action that comes
/// back. It then performs the actions of ``next()`` until there is none. Events that occur while an action is performed
/// are reported at once; their follow-up actions are left to the outermost report.
///
/// Lines are carried out one after the other, and events are sent between the responses. No more is read from the
/// client than can be served: while a line waits, a request runs or responses are unread, reading soon stops, and the
/// client's own socket fills up. Anything beyond that requires a grant from the ``Workload``.
///
/// The extensions `+Input`, `+Requests` and `+Subscription` group the decisions.
struct ConnectionStateMachine {
    /// The state of the connection as a whole.
    enum Lifecycle: Int {
        case open
        /// The state in which no further line is accepted; the connection ends after the current request.
        case draining
        /// Nothing more is written; the connection closes once all writes have ended.
        case ending
        case closing
        case closed
    }

    /// The request in progress.
    enum Request {
        case none
        /// A line waits for its turn.
        case waiting(ByteBuffer, Workload.Lane)
        /// A request is being carried out. The line of a quick one is kept, because it may turn out to need more.
        case running(quick: ByteBuffer?)
        /// The client is about to send open files.
        case receivingFiles
    }

    /// The permission to send more than a short line.
    enum LongLine {
        case none, requested, granted
    }

    /// The stream of events.
    enum Subscription {
        case none
        case active(Page)
    }

    /// The page of events that is being read.
    enum Page {
        case none
        case requested
        case granted(Workload.Ticket)
    }

    /// The steps that follow an event, in their order.
    enum Stage {
        case chargeInput, takeLines, decodeAhead, requestLongLine, adjustSurplus, setLineDeadline, read, endOfInput
        case drain

        var following: Stage? {
            switch self {
            case .chargeInput: .takeLines
            case .takeLines: .decodeAhead
            case .decodeAhead: .requestLongLine
            case .requestLongLine: .adjustSurplus
            case .adjustSurplus: .setLineDeadline
            case .setLineDeadline: .read
            case .read: .endOfInput
            case .endOfInput, .drain: nil
            }
        }
    }

    let limits: ConnectionLimits
    var lifecycle = Lifecycle.open
    var request = Request.none
    var subscription = Subscription.none
    var longLine = LongLine.none
    /// The ticket of the following line, which was taken from the decoder and is decoded already.
    var ahead: Workload.Ticket?
    /// The number of bytes held here beyond those that the client may send.
    var surplus = 0
    var unread = UnreadWrites()
    var decoder = LineDecoder()
    /// The line that the deadline is for.
    var lineOfDeadline: Int?
    var isStallWatched = false
    var isInputClosed = false
    var isWritable = true
    /// Whether a read was deferred.
    var isReadDeferred = false
    /// The next step; `nil` where nothing is to be done until the next event.
    var stage: Stage?

    init(limits: ConnectionLimits) { self.limits = limits }

    // MARK: State

    /// Whether the connection neither carries out a request nor serves a subscription.
    var isIdle: Bool { !isBusy && !isSubscribed }

    var isSubscribed: Bool { if case .none = subscription { false } else { true } }

    /// Whether a page of events may be requested.
    var mayRequestPage: Bool {
        guard lifecycle == .open, case .active(.none) = subscription else { return false }
        return true
    }

    var isBusy: Bool { if case .none = request { false } else { true } }

    var isOver: Bool { lifecycle.rawValue >= Lifecycle.ending.rawValue }

    var mayRead: Bool {
        if case .receivingFiles = request { return false }
        return lifecycle == .open && !decoder.hasItem
            && (decoder.count <= limits.shortLine || longLine == .granted)
    }

    // MARK: Events

    /// Applies an event.
    mutating func handle(_ event: ConnectionEvent) -> ConnectionAction {
        switch event {
        case .bytesReceived(let bytes):
            guard lifecycle == .open else { return .none }
            decoder.append(bytes)
            stage = .chargeInput
        case .readRequested:
            if mayRead { return .read }
            isReadDeferred = true
        case .inputClosed:
            isInputClosed = true
            stage = .takeLines
        case .writabilityChanged(let isWritable):
            self.isWritable = isWritable
            if isWritable { stage = .takeLines }
        case .writeEnded: return writeEnded()
        case .closed: return closed()

        case .turnGranted(let ticket): return turnGranted(ticket)
        case .costFound(let bytes, let ticket): return costFound(bytes, ticket)
        case .replied(let reply, let ticket): return replied(reply, ticket)
        case .aheadAnswered(let ticket): return ticket.map { decodeAhead($0) } ?? .none
        case .longLineGranted:
            if lifecycle == .closed { return .releaseLongLine }
            longLine = .granted
            // The steps under way include those that follow.
            stage = stage ?? .setLineDeadline
            return .allowLongLine
        case .surplusChanged(let bytes): surplus = bytes
        case .surplusRefused:
            stage = nil
            return .close

        case .filesReceived, .filesFailed: return filesEnded(event)
        case .filesRefused:
            guard !isOver else { return .none }
            stopAccepting()
            return refuse("open files may be passed only after the response to source.receive")

        case .pageRequested, .pageGranted, .pageReturned, .pageRead, .subscriptionEnded:
            return subscriptionEvent(event)

        // The connection drains instead of closing, since the complete lines before it are entitled to their
        // responses.
        case .lineDeadlinePassed, .drain: stopAccepting()
        case .stallDeadlinePassed:
            isStallWatched = false
            // With other data unread, the next deadline starts.
            return unread.isMarkTaken ? .none : .close
        }
        return .none
    }

    /// Returns the next action that follows from the events so far; `nil` where there is none.
    mutating func next() -> ConnectionAction? {
        if let action = nextOfEnd() { return action }
        if lifecycle != .closed, !isStallWatched, !unread.isEmpty {
            isStallWatched = true
            unread.mark()
            return .startStallDeadline
        }
        while let current = stage {
            stage = current.following
            if let action = step(current) { return action }
        }
        return nil
    }

    private mutating func nextOfEnd() -> ConnectionAction? {
        guard isOver else { return nil }
        if case .active(let page) = subscription {
            switch page {
            case .none: break
            case .requested:
                subscription = .active(.none)
                return .endPage(nil)
            case .granted(let ticket):
                subscription = .active(.none)
                return .endPage(ticket)
            }
        }
        if lifecycle == .ending, unread.isEmpty {
            lifecycle = .closing
            return .close
        }
        guard lifecycle == .closed else { return nil }
        if let ticket = ahead {
            ahead = nil
            return .release(ticket)
        }
        if longLine == .granted {
            longLine = .none
            return .releaseLongLine
        }
        return surplus > 0 ? .changeSurplus(from: surplus, to: 0) : nil
    }

    private mutating func step(_ stage: Stage) -> ConnectionAction? {
        switch stage {
        case .chargeInput: return surplusChange()
        case .takeLines:
            guard let action = takeLine() else { return nil }
            self.stage = .takeLines
            return action
        case .decodeAhead: return requestAhead()
        case .requestLongLine: return longLineChange()
        case .adjustSurplus: return surplus > 0 ? surplusChange() : nil
        case .setLineDeadline: return lineDeadlineChange()
        case .read:
            guard isReadDeferred, mayRead else { return nil }
            isReadDeferred = false
            return .read
        case .endOfInput:
            if isInputClosed, isIdle, ahead == nil, !decoder.hasItem { end() }
            return nextOfEnd()
        case .drain:
            if case .receivingFiles = request { request = .none }
            if !isBusy { end() }
            return .cancelWaits
        }
    }

    // MARK: The end

    private mutating func writeEnded() -> ConnectionAction {
        unread.ended()
        guard unread.isEmpty, isStallWatched else { return .none }
        isStallWatched = false
        return .cancelStallDeadline
    }

    mutating func refuse(_ message: String, releasing ticket: Workload.Ticket? = nil) -> ConnectionAction {
        unread.began()
        return .refuse(message, releasing: ticket)
    }

    private mutating func stopAccepting() {
        if lifecycle == .open { lifecycle = .draining }
        if lifecycle != .closed { stage = .drain }
    }

    mutating func end() {
        if !isOver { lifecycle = .ending }
    }

    private mutating func closed() -> ConnectionAction {
        guard lifecycle != .closed else { return .none }
        lifecycle = .closed
        stage = nil
        switch request {
        case .waiting, .receivingFiles: request = .none
        case .none, .running: break
        }
        if longLine == .requested { longLine = .none }
        decoder = LineDecoder()
        return .abandon
    }
}
