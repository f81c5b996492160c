import ControlProtocol
import NIOCore
import TaskModel
import TaskQueue
import Testing

@testable import ControlServer

/// The transitions of a connection's state machine as a table: every event in every situation.
@Suite("The transitions of a connection's state machine")
struct ConnectionTransitionTests {
    enum Situation: String, CaseIterable {
        case idle
        /// Half a line is here.
        case halfLine
        /// A long line waits for its turn to be received.
        case longLine
        /// A line waits for its turn.
        case waiting
        /// A quick request runs.
        case running
        /// A request runs, and the next line is decoded.
        case ahead
        case receivingFiles
        case subscribed
        case pageRequested
        case pageGranted
        /// A request runs, and no further line is accepted.
        case draining
        /// A response is unread, and the connection closes after it.
        case ending
        case closed
    }

    private static let ticket = Workload.Ticket(user: 1, lane: nil, bytes: 1)

    private static func line(_ text: String) -> ConnectionEvent { .bytesReceived(ByteBuffer(string: text)) }

    private static let long = String(repeating: "x", count: 3_000)

    private static func reply(isEmpty: Bool = false) -> RequestProcessor.Reply {
        var reply = RequestProcessor.Reply()
        if !isEmpty { reply.answer = ByteBuffer(string: "a") }
        return reply
    }

    private static var subscription: RequestProcessor.Reply {
        var reply = reply()
        reply.subscription = EventSubscription(last: 0, journal: "j") { _ in AsyncStream<[TaskEvent]> { $0.finish() } }
        return reply
    }

    private static var files: RequestProcessor.Reply {
        var reply = reply()
        reply.room = DescriptorQuota(total: 10).reserve(1, for: 1)
        return reply
    }

    private static func machine(_ situation: Situation) -> ConnectionStateMachine {
        var machine = ConnectionStateMachine(limits: ConnectionLimits())
        func apply(_ events: ConnectionEvent...) {
            for event in events { _ = words(event, &machine) }
        }
        func run(_ reply: RequestProcessor.Reply? = nil) {
            apply(line("x\n"), .turnGranted(ticket))
            if let reply { apply(.replied(reply, ticket), .writeEnded) }
        }
        apply(.readRequested)
        switch situation {
        case .idle: break
        case .halfLine: apply(line("x"))
        case .longLine: apply(line(long), .readRequested)
        case .waiting: apply(line("x\n"))
        case .running: run()
        case .ahead:
            run()
            apply(line(long + "\n"), .aheadAnswered(ticket))
        case .receivingFiles: run(files)
        case .subscribed: run(subscription)
        case .pageRequested:
            run(subscription)
            apply(.pageRequested)
        case .pageGranted:
            run(subscription)
            apply(.pageRequested, .pageGranted(ticket))
        case .draining:
            run()
            apply(.drain)
        case .ending:
            run()
            apply(.drain, .replied(reply(), ticket))
        case .closed: apply(.closed)
        }
        return machine
    }

    private static let events: [(String, ConnectionEvent)] = [
        ("half a line", line("y")),
        ("line", line("y\n")),
        ("long half", line(long)),
        ("long line", line(long + "\n")),
        ("read", .readRequested),
        ("input closed", .inputClosed),
        ("unwritable", .writabilityChanged(false)),
        ("writable", .writabilityChanged(true)),
        ("write ended", .writeEnded),
        ("closed", .closed),
        ("turn", .turnGranted(ticket)),
        ("cost", .costFound(9, ticket)),
        ("response", .replied(reply(), ticket)),
        ("no response", .replied(reply(isEmpty: true), ticket)),
        ("subscription", .replied(subscription, ticket)),
        ("files expected", .replied(files, ticket)),
        ("ahead", .aheadAnswered(ticket)),
        ("not ahead", .aheadAnswered(nil)),
        ("long line granted", .longLineGranted),
        ("surplus granted", .surplusChanged(to: 9)),
        ("surplus refused", .surplusRefused),
        ("files", .filesReceived),
        ("files failed", .filesFailed("r")),
        ("files refused", .filesRefused),
        ("page requested", .pageRequested),
        ("page granted", .pageGranted(ticket)),
        ("page returned", .pageReturned),
        ("page read", .pageRead(ByteBuffer(string: "e"))),
        ("stream ended", .subscriptionEnded),
        ("line late", .lineDeadlinePassed),
        ("stalled", .stallDeadlinePassed),
        ("drain", .drain),
    ]

    /// Applies an event, and returns the actions in a few words. No turn is granted, and memory always is.
    private static func words(_ event: ConnectionEvent, _ machine: inout ConnectionStateMachine) -> String {
        var words: [String] = []
        func note(_ action: ConnectionAction) {
            let word = Self.word(action)
            if word != "-" { words.append(word) }
            if case .changeSurplus(_, let bytes) = action { note(machine.handle(.surplusChanged(to: bytes))) }
        }
        note(machine.handle(event))
        while let action = machine.next(), words.count < 20 { note(action) }
        return words.isEmpty ? "-" : words.joined(separator: ", ")
    }

    private static func word(_ action: ConnectionAction) -> String {
        switch action {
        case .none: "-"
        case .read: "read"
        case .allowLongLine: "allow long line"
        case .respond(let reply, _):
            reply.room != nil
                ? "respond, expect files"
                : reply.subscription != nil ? "respond, subscribe" : reply.answer == nil ? "finish" : "respond"
        case .refuse(_, let ticket): ticket == nil ? "refuse" : "release, refuse"
        case .resumeInput: "resume input"
        case .close: "close"
        case .requestTurn(let lane, _, let ticket): "request \(lane)\(ticket == nil ? "" : ", release")"
        case .execute: "execute"
        case .executeAhead: "execute ahead"
        case .requestAhead: "request ahead"
        case .decodeAhead: "decode ahead"
        case .requestLongLine: "request long line"
        case .releaseLongLine: "release long line"
        case .changeSurplus(let before, let bytes): bytes > before ? "charge" : "discharge"
        case .release: "release"
        case .requestPage: "request page"
        case .grantPage: "grant page"
        case .sendEvents(_, let ticket): ticket == nil ? "send uncharged" : "send"
        case .endPage(let ticket): ticket == nil ? "end page" : "end page, release"
        case .endSubscription(let ticket): ticket == nil ? "end stream" : "end stream, release"
        case .startLineDeadline: "start line deadline"
        case .cancelLineDeadline: "cancel line deadline"
        case .startStallDeadline: "start stall deadline"
        case .cancelStallDeadline: "cancel stall deadline"
        case .cancelWaits: "cancel waits"
        case .abandon: "abandon"
        }
    }

    /// The state after an event in a few words.
    private static func state(_ machine: ConnectionStateMachine) -> String {
        let request =
            switch machine.request {
            case .none: "idle"
            case .waiting: "waiting"
            case .running: "running"
            case .receivingFiles: "files"
            }
        return machine.lifecycle == .open ? request : "\(machine.lifecycle) \(request)"
    }

    private static func table(_ situation: Situation) -> [String] {
        events.map { name, event in
            var machine = machine(situation)
            let before = state(machine)
            let words = words(event, &machine)
            let after = state(machine)
            return "\(name): \(words)\(after == before ? "" : " -> \(after)")"
        }
    }

    @Test("every event in every situation", arguments: Situation.allCases)
    func transitions(_ situation: Situation) {
        // An event that is not listed has no effect.
        let found = Self.table(situation).filter { !$0.hasSuffix(": -") }
        let expected = Self.expected[situation] ?? []
        for (row, expected) in zip(found, expected) { #expect(row == expected, "\(situation)") }
        #expect(found.count == expected.count)
        if found != expected {
            print("        .\(situation): [")
            print(found.map { "            \"\($0)\"," }.joined(separator: "\n"))
            print("        ],")
        }
    }

    // MARK: Single rules

    @Test("a line that is a little too long is refused, even while a request runs")
    func slightlyTooLongLine() {
        var machine = Self.machine(.running)
        let line = ByteBuffer(repeating: UInt8(ascii: "x"), count: MessageLimits.lineLength + 1)
        _ = Self.words(.bytesReceived(line), &machine)
        #expect(!Self.words(Self.line("\n"), &machine).contains("ahead"))
        #expect(Self.words(.replied(Self.reply(), Self.ticket), &machine).contains("stall deadline, refuse"))
    }

    @Test("a client that reads slowly but steadily is kept; one that stands still is not")
    func steadyReader() {
        var machine = Self.machine(.running)
        #expect(Self.words(.replied(Self.reply(), Self.ticket), &machine).hasSuffix("start stall deadline"))
        _ = Self.words(Self.line("x\n"), &machine)
        _ = Self.words(.turnGranted(Self.ticket), &machine)
        _ = Self.words(.replied(Self.reply(), Self.ticket), &machine)
        _ = Self.words(.writeEnded, &machine)
        #expect(Self.words(.stallDeadlinePassed, &machine) == "start stall deadline")
        #expect(Self.words(.stallDeadlinePassed, &machine).hasPrefix("close"))
    }

    @Test("no request may follow source.receive before its response")
    func nothingFollows() {
        var machine = Self.machine(.running)
        _ = Self.words(Self.line("y"), &machine)
        #expect(
            Self.words(.replied(Self.files, Self.ticket), &machine).hasPrefix("release, refuse"))
    }
}
