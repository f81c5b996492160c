import NIOCore
import TaskModel
import TaskQueue
import TestSupport

@testable import ControlServer

/// A whole connection as a value: the state machine, a client with a script, a channel, and a workload. It performs
/// every action without I/O, so that a test can order the events as it likes.
struct ConnectionModel {
    /// What may happen next.
    enum Event: CaseIterable {
        case bytes, endOfInput, turn, longLine, page, reply, written, writable, unwritable
        case filesReceived, filesFailed, filesRefused
        case pageWanted, pageEmpty, pageRead, streamEnded
        case lineDeadline, stallDeadline, drain
    }

    /// The kinds of requests, by the first letter of their lines.
    enum Kind: Character {
        case quick = "q"
        /// A short line whose request turns out to need more.
        case costly = "c"
        case notification = "n"
        case subscription = "s"
        case files = "f"
    }

    private enum Pump { case none, idle, waiting, granted, sending, ended }

    private(set) var machine: ConnectionStateMachine
    private(set) var violation: String?
    /// The lines whose requests were carried out, in order.
    private(set) var executed: [String] = []
    /// The lines whose responses were written, in order.
    private(set) var answered: [String] = []
    private(set) var isClosed = false
    /// Whether the connection ended for another reason than the end of its input.
    private(set) var isDisturbed = false

    private var generator: SeededGenerator
    private var script: [ByteBuffer]
    private var isInputEnded = false
    private var mayDeliver = false
    private var isWritable = true
    private var isPerforming = false
    private var running: (line: String, lane: Workload.Lane, ticket: Workload.Ticket)?
    private var ahead: String?
    private var waitingLane: Workload.Lane?
    private var isLongLineWaiting = false
    private var isLongLineHeld = false
    private var isPageWaiting = false
    private var surplus = 0
    private var isReceivingFiles = false
    /// Whether the link does not pass on the client's bytes, because they belong to open files.
    private var isLinkHeld = false
    private var received = ""
    private let refusesSurplus: Bool
    private var pump = Pump.none
    private var isPumpCancelled = false
    private var writes: [(line: String?, ticket: Workload.Ticket?)] = []
    private var isLineDeadlineSet = false
    private var isStallDeadlineSet = false
    private var lastTicket: UInt32 = 0
    private var tickets: Set<UInt32> = []
    private let shares = DescriptorQuota(total: 10)

    /// The length up to which a line is short.
    static let shortLine = 16

    /// - Parameter refusesSurplus: whether there is sometimes no room for surplus input.
    init(script: [String], seed: UInt64, refusesSurplus: Bool) {
        self.refusesSurplus = refusesSurplus
        var limits = ConnectionLimits()
        limits.shortLine = Self.shortLine
        machine = ConnectionStateMachine(limits: limits)
        generator = SeededGenerator(seed: seed)
        self.script = script.map { ByteBuffer(string: $0) }
        report(.readRequested)
    }

    // MARK: - Events

    var possibleEvents: [Event] { Event.allCases.filter(isPossible) }

    private func isPossible(_ event: Event) -> Bool {
        switch event {
        case .reply: return running != nil
        case .streamEnded: return [.idle, .waiting, .granted, .sending].contains(pump) && (isClosed || isPumpCancelled)
        default: break
        }
        guard !isClosed else { return false }
        return switch event {
        case .bytes: mayDeliver && !script.isEmpty && !isInputEnded && !isLinkHeld
        case .endOfInput: !isInputEnded && script.isEmpty
        case .turn: waitingLane != nil
        case .longLine: isLongLineWaiting
        case .page: isPageWaiting
        case .written: !writes.isEmpty
        case .writable: !isWritable && writes.isEmpty
        case .unwritable: isWritable && writes.count > 1
        case .filesReceived, .filesFailed: isReceivingFiles
        case .pageWanted: pump == .idle && !isPumpCancelled
        case .pageEmpty, .pageRead: pump == .granted
        case .lineDeadline: isLineDeadlineSet
        case .stallDeadline: isStallDeadlineSet
        case .filesRefused, .drain: true
        case .reply, .streamEnded: false
        }
    }

    mutating func happen(_ event: Event) {
        switch event {
        case .bytes:
            mayDeliver = false
            let bytes = script.removeFirst()
            received += String(buffer: bytes)
            report(.bytesReceived(bytes))
            if !isClosed { report(.readRequested) }
        case .endOfInput:
            isInputEnded = true
            report(.inputClosed)
        case .turn:
            waitingLane = nil
            report(.turnGranted(ticket()))
        case .longLine: grantLongLine()
        case .page:
            isPageWaiting = false
            report(.pageGranted(ticket()))
        case .reply: reply()
        case .written: writeEnded()
        case .writable, .unwritable:
            isWritable = event == .writable
            report(.writabilityChanged(isWritable))
        case .filesReceived:
            isReceivingFiles = false
            report(.filesReceived)
        case .filesFailed:
            (isReceivingFiles, isDisturbed) = (false, true)
            report(.filesFailed("r"))
        case .filesRefused: disturb(.filesRefused)
        case .pageWanted:
            if machine.mayRequestPage {
                pump = .waiting
                report(.pageRequested)
            } else {
                isPumpCancelled = true
            }
        case .pageEmpty:
            pump = .idle
            report(.pageReturned)
        case .pageRead:
            pump = .sending
            report(.pageRead(ByteBuffer(string: "e")))
            if pump == .sending, !writes.contains(where: { $0.line == "e" }), !isClosed { pump = .idle }
        case .streamEnded:
            (pump, isDisturbed) = (.ended, true)
            report(.subscriptionEnded)
        case .lineDeadline:
            isLineDeadlineSet = false
            disturb(.lineDeadlinePassed)
        case .stallDeadline:
            isStallDeadlineSet = false
            disturb(.stallDeadlinePassed)
        case .drain: disturb(.drain)
        }
    }

    private mutating func disturb(_ event: ConnectionEvent) {
        isDisturbed = true
        report(event)
    }

    private mutating func grantLongLine() {
        (isLongLineWaiting, isLongLineHeld) = (false, true)
        report(.longLineGranted)
    }

    private mutating func writeEnded() {
        let write = writes.removeFirst()
        if let ticket = write.ticket { release(ticket) }
        if write.line == "e" { pump = .idle } else if let line = write.line, !isClosed { answered.append(line) }
        report(.writeEnded)
    }

    private mutating func reply() {
        guard let (line, lane, ticket) = running else { return }
        running = nil
        var reply = RequestProcessor.Reply()
        reply.answer = ByteBuffer(string: "a")
        switch line.first.flatMap(Kind.init) {
        case .quick: break
        case .costly where lane == .quick: return report(.costFound(1_000, ticket))
        case .notification: reply.answer = nil
        case .subscription where !machine.isSubscribed:
            reply.subscription = EventSubscription(last: 0, journal: "j") { _ in
                AsyncStream<[TaskEvent]> { $0.finish() }
            }
        case .files: reply.room = shares.reserve(1, for: 1)
        case .costly, .subscription, nil: break
        }
        executed.append(line)
        report(.replied(reply, ticket))
    }

    // MARK: - Actions

    private mutating func report(_ event: ConnectionEvent) {
        let isOutermost = !isPerforming
        isPerforming = true
        perform(machine.handle(event))
        guard isOutermost else { return }
        var steps = 0
        while let action = machine.next() {
            perform(action)
            steps += 1
            if steps > 1_000 {
                violation = "the actions after \(event) have no end"
                break
            }
        }
        isPerforming = false
    }

    private mutating func perform(_ action: ConnectionAction) {
        switch action {
        case .none, .allowLongLine: break
        case .resumeInput: isLinkHeld = false
        case .read:
            if isReceivingFiles { violation = "input is read that belongs to open files" }
            mayDeliver = true
        case .respond(let reply, let ticket): respond(reply, ticket)
        case .refuse(_, let ticket):
            isDisturbed = true
            if let ticket { release(ticket) }
            write(nil, nil)
        case .close: close()
        case .requestTurn(let lane, _, let ticket):
            if waitingLane != nil || running != nil { violation = "two requests at once" }
            if Bool.random(using: &generator) {
                report(.turnGranted(self.ticket()))
            } else {
                waitingLane = lane
            }
            if let ticket { release(ticket) }
        case .execute(let line, let lane, let ticket): execute(String(buffer: line), lane, ticket)
        case .executeAhead(let ticket):
            guard let line = ahead else { return violation = "no line was decoded ahead" }
            ahead = nil
            execute(line, .heavy, ticket)
        case .requestAhead: report(.aheadAnswered(Bool.random(using: &generator) ? ticket() : nil))
        case .decodeAhead(let line): ahead = String(buffer: line)
        case .requestLongLine:
            if isLongLineHeld || isLongLineWaiting { violation = "two long lines" }
            if Bool.random(using: &generator) { grantLongLine() } else { isLongLineWaiting = true }
        case .releaseLongLine:
            if !isLongLineHeld { violation = "a long line is released that is not held" }
            isLongLineHeld = false
        case .changeSurplus(let before, let bytes):
            if before != surplus { violation = "the surplus is not what was charged" }
            if bytes > 0, refusesSurplus, Int.random(in: 0..<8, using: &generator) == 0 {
                disturb(.surplusRefused)
            } else {
                surplus = bytes
                report(.surplusChanged(to: bytes))
            }
        case .release(let ticket): release(ticket)
        case .requestPage:
            if Bool.random(using: &generator) { report(.pageGranted(ticket())) } else { isPageWaiting = true }
        case .grantPage: pump = .granted
        case .sendEvents(let lines, let ticket): write(String(buffer: lines), ticket ?? self.ticket())
        case .endPage(let ticket), .endSubscription(let ticket):
            if let ticket { release(ticket) }
            if pump == .waiting || pump == .granted { (pump, isPumpCancelled) = (.idle, true) }
            isPageWaiting = false
        case .startLineDeadline: isLineDeadlineSet = true
        case .cancelLineDeadline: isLineDeadlineSet = false
        case .startStallDeadline:
            if isStallDeadlineSet || writes.isEmpty { violation = "a needless stall deadline" }
            isStallDeadlineSet = true
        case .cancelStallDeadline: isStallDeadlineSet = false
        case .cancelWaits: cancelWaits()
        case .abandon:
            (isLineDeadlineSet, isStallDeadlineSet) = (false, false)
            (waitingLane, isLongLineWaiting, isPageWaiting, ahead) = (nil, false, false, nil)
            cancelWaits()
        }
    }

    private mutating func cancelWaits() {
        isReceivingFiles = false
        isPumpCancelled = true
    }

    private mutating func execute(_ line: String, _ lane: Workload.Lane, _ ticket: Workload.Ticket) {
        if running != nil { violation = "two requests at once" }
        if isReceivingFiles { violation = "a request runs while open files are expected" }
        running = (line, lane, ticket)
    }

    private mutating func respond(_ reply: RequestProcessor.Reply, _ ticket: Workload.Ticket) {
        if reply.room != nil {
            (isReceivingFiles, isLinkHeld) = (true, true)
            let lines = received.split(separator: "\n").filter { $0 != " " }
            if !received.hasSuffix("\n") || lines.count != executed.count {
                violation = "open files are expected after other input"
            }
        }
        if reply.answer != nil { write(executed.last, ticket) } else { release(ticket) }
        guard reply.subscription != nil else { return }
        if pump != .none { violation = "two subscriptions" }
        (pump, isPumpCancelled) = (.idle, false)
    }

    private mutating func write(_ line: String?, _ ticket: Workload.Ticket?) {
        writes.append((line, ticket))
        // The kernel often accepts a write during the call.
        if writes.count == 1, Bool.random(using: &generator) { writeEnded() }
    }

    private mutating func close() {
        guard !isClosed else { return }
        isClosed = true
        while !writes.isEmpty { writeEnded() }
        report(.closed)
    }

    // MARK: - Tickets

    private mutating func ticket() -> Workload.Ticket {
        lastTicket += 1
        tickets.insert(lastTicket)
        return Workload.Ticket(user: lastTicket, lane: nil, bytes: 1)
    }

    private mutating func release(_ ticket: Workload.Ticket) {
        if tickets.remove(ticket.user) == nil { violation = "a ticket is released twice" }
    }

    /// The reason why the connection has not ended as it must; `nil` if it has.
    var remainder: String? {
        if !isClosed { return "the connection is open" }
        if !tickets.isEmpty { return "tickets are held" }
        if isLongLineHeld { return "the turn for a long line is held" }
        if surplus > 0 { return "input is charged" }
        if isReceivingFiles { return "open files are expected" }
        if isLineDeadlineSet || isStallDeadlineSet { return "a deadline is set" }
        return nil
    }
}
