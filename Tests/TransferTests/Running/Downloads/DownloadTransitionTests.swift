import Curl
import TestSupport
import Testing

@testable import Transfer

/// The transitions of a download's state machine as tables: every outcome of an exchange in every situation, and every
/// event in every phase of a connection.
@Suite("The transitions of a download's state machine")
struct DownloadTransitionTests {
    private static let size: Int64 = 32 << 20
    private static let tag = "\"v1\""

    /// What surrounds the connection whose exchange ends.
    enum Situation: String, CaseIterable {
        /// No byte is here.
        case new
        /// Bytes with a strong validator are here.
        case resumed
        /// Bytes are here that nothing ties to a version.
        case unvalidated
        /// Two connections to one source.
        case shared
        /// One source of two, and a digest.
        case mirrored
        /// All bytes are here.
        case complete
        /// A second connection was refused, and one is left.
        case reduced
    }

    private static func part(_ situation: Situation) -> PartContents {
        let count: Int64 =
            switch situation {
            case .new: 0
            case .complete: size
            default: 8 << 20
            }
        var version = ResourceVersion(origin: "http://own:80/f", total: situation == .unvalidated ? nil : size)
        if situation != .unvalidated { version.validator = head(200, ["ETag: \(tag)"]).validator }
        version.origin = ResumeData.resource(of: "http://own/f")
        var part =
            count == 0
            ? PartContents() : PartContents(version: version, written: ByteRangeSet([0..<count]))
        part.hasDigest = situation == .mirrored
        return part
    }

    /// A machine whose first connection has sent a request, and the facts.
    private static func machine(_ situation: Situation) -> (DownloadStateMachine, DownloadFacts) {
        var request = TransferRequest(url: "http://own/f")
        if situation == .mirrored { request.mirrors = ["http://mirror/f"] }
        var machine = DownloadStateMachine(
            DownloadStateMachine.Configuration(segments: .fixed(2)), sources: DownloadSources(request))
        let part = part(situation)
        var facts = DownloadFacts(now: 10_000, part: part, exchanges: [ExchangeFacts(number: 0, position: part.front)])
        let number = machine.start()
        // A complete part sends no request by itself.
        if situation == .complete {
            _ = machine.send(number, from: part.front, to: nil, facts)
        } else {
            _ = machine.begin(facts)
        }
        if case .overlap = machine.requestRange(number, at: "http://own/f", facts) {
            _ = machine.overlapBegins(number, at: part.front - (256 << 10))
        }
        if part.count > 0, situation != .unvalidated { machine.table = SegmentTable(total: size) }
        switch situation {
        case .shared:
            machine.table?.put(0, on: part.front..<size)
            machine.update(0) { $0.end = Self.size }
            let wish = ConnectionRequest(number: 1, source: 0, like: 0, beside: 0, purpose: .single)
            _ = machine.limitAnswered(wish, isGranted: true, facts)
            facts.exchanges.append(ExchangeFacts(number: 1))
        case .reduced:
            machine.wasShared = true
            machine.traits.refusedConnection = true
        default: break
        }
        return (machine, facts)
    }

    // MARK: Outcomes

    private static let outcomes: [(String, SegmentOutcome)] = [
        ("body ended", .bodyEnded(end: nil)),
        ("body ended short", .bodyEnded(end: size + 1)),
        ("claim fulfilled", .claimFulfilled),
        ("request whole", .requestWhole(reason: "r")),
        ("start over", .startOver(reason: "r")),
        ("unconditionally", .requestUnconditionally),
        ("confirm end", .confirmEnd),
        ("complete", .complete),
        ("changed", .changed(reason: "r")),
        ("unusable", .unusable(reason: "r")),
        ("truncated", .failed(TransferError(.truncated, "r"))),
        ("refused 503", .failed(TransferError(.httpStatus, "r", httpStatus: 503))),
        ("refused 404", .failed(TransferError(.httpStatus, "r", httpStatus: 404))),
        ("refused 501", .failed(TransferError(.httpStatus, "r", httpStatus: 501))),
        ("cancelled", .failed(TransferError(.cancelled, "r"))),
        ("disk full", .refused(TransferError(.diskFull, "r"))),
        ("wrong bytes", .refused(TransferError(.remoteChanged, "r"))),
        ("wrong digest", .refused(TransferError(.checksumMismatch, "r"))),
        ("replaced", .replaced),
        ("own connection", .needsOwnConnection),
    ]

    /// An action in a few words.
    private static func words(_ action: DownloadAction) -> String {
        switch action {
        case .none: "-"
        case .send: "send"
        case .flush(_, .nextClaim): "flush:next"
        case .flush(_, .requestRest): "flush:rest"
        case .flush(_, .requestOn): "flush:on"
        case .flush(_, .closeConnection): "flush:dismiss"
        case .flush(_, .requestOwnURL): "flush:back"
        case .flush(_, .tryNextSource): "flush:turn"
        case .flush(_, .switchSource(let source)): "flush:to \(source)"
        case .flush(_, .change(let source)): "flush:change \(source)"
        case .flush(_, .beginAnew): "flush:anew"
        case .delayRequest(_, let time): "rest \(time)"
        case .wait(_, let time): "wait \(time)"
        case .borrow: "borrow"
        case .rememberSingleService: "remember one"
        case .giveBack: "give back"
        case .open: "open"
        case .grow: "grow"
        case .close: "close"
        case .closeOthers: "close others"
        case .replace(_, _, let source, let isJoining): "replace by \(source)\(isJoining ? " joining" : "")"
        case .interrupt: "interrupt"
        case .requestOwnURL: "go back"
        case .tick: "tick"
        case .restart(_, let reason): reason == nil ? "prepare" : "restart"
        case .finish: "finish"
        case .fail(let error): "fail \(error.code.rawValue)"
        case .sequence(let actions): actions.map(words).joined(separator: ", ")
        }
    }

    private static func table() -> [String] {
        outcomes.map { name, outcome in
            let cells = Situation.allCases.map { situation -> String in
                var (machine, facts) = machine(situation)
                machine.update(0) { $0.phase = .interrupted(outcome) }
                let end = DownloadStateMachine.ExchangeEnd(position: facts[0].position)
                let action = machine.ended(0, end, facts)
                return words(action)
            }
            return ([name] + cells).joined(separator: " | ")
        }
    }

    @Test("every outcome of an exchange, in every situation")
    func outcomes() {
        let found = Self.table()
        for (row, expected) in zip(found, Self.expectedOutcomes) { #expect(row == expected) }
        #expect(found.count == Self.expectedOutcomes.count)
        if found != Self.expectedOutcomes { print(found.map { "        \"\($0)\"," }.joined(separator: "\n")) }
    }

    /// The columns are the situations, in their order.
    private static let expectedOutcomes: [String] = [
        "body ended | finish | fail truncated | finish | flush:dismiss | fail truncated | finish | fail truncated",
        "body ended short | fail truncated | fail truncated | fail truncated | flush:dismiss | fail truncated | fail truncated | fail truncated",
        "claim fulfilled | finish | flush:next | finish | flush:next | flush:next | finish | flush:next",
        "request whole | close others, prepare, send | close others, prepare, send | close others, prepare, send | close others, prepare, send | close others, prepare, send | finish | wait 500",
        "start over | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send",
        "unconditionally | send | send | send | send | send | finish | send",
        "confirm end | send | send | send | send | send | finish | send",
        "complete | finish | finish | finish | finish | finish | finish | finish",
        "changed | close others, prepare, send | close others, prepare, send | close others, prepare, send | flush:dismiss | flush:to 1 | finish | wait 500",
        "unusable | close others, prepare, send | close others, prepare, send | close others, prepare, send | flush:dismiss | flush:to 1 | finish | close others, prepare, send",
        "truncated | fail truncated | fail truncated | fail truncated | flush:dismiss | flush:turn | finish | fail truncated",
        "refused 503 | fail http | fail http | fail http | flush:dismiss | flush:turn | finish | wait 500",
        "refused 404 | fail http | fail http | fail http | flush:dismiss | flush:turn | finish | fail http",
        "refused 501 | fail http | send | send | flush:dismiss | flush:turn | finish | send",
        "cancelled | fail cancelled | fail cancelled | fail cancelled | flush:dismiss | fail cancelled | finish | fail cancelled",
        "disk full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full",
        "wrong bytes | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send | close others, restart, send",
        "wrong digest | fail checksum-mismatch | fail checksum-mismatch | fail checksum-mismatch | flush:dismiss | flush:turn | fail checksum-mismatch | fail checksum-mismatch",
        "replaced | flush:rest | flush:rest | flush:rest | flush:dismiss | flush:rest | finish | flush:rest",
        "own connection | flush:rest | flush:rest | flush:rest | flush:rest | flush:rest | finish | flush:rest",
    ]

    // MARK: Single rules

    @Test("an error of this machine is reported itself, although another source failed before")
    func localError() {
        for (code, expected) in [(TransferError.Code.diskFull, "fail disk-full"), (.tooLarge, "fail http")] {
            var (machine, facts) = Self.machine(.mirrored)
            machine.failures.first = TransferError(.httpStatus, "r", httpStatus: 503)
            machine.update(0) { $0.phase = .interrupted(.refused(TransferError(code, "r"))) }
            #expect(Self.words(machine.ended(0, .init(position: facts[0].position), facts)) == expected)
        }
    }

    @Test("a task that waits for a closed connection of this download does not stop the opening of others")
    func closedConnectionIsWanted() {
        var (machine, facts) = Self.machine(.resumed)
        #expect(Self.words(machine.tick(.init(wanted: [7]), facts)) == "borrow")
    }

    @Test("no connection is opened or closed while the last bytes wait for the disk")
    func completing() {
        var (machine, facts) = Self.machine(.shared)
        facts.exchanges[0].gathered = Self.size - facts.part.count
        #expect(!machine.isScaling(facts))
        #expect(Self.words(machine.tick(.init(wanted: [1]), facts)) == "-")
    }

    // MARK: Events

    enum Phase: String, CaseIterable { case idle, requesting, receiving, discarding, interrupted, resting, closed }

    private typealias Event = @Sendable (inout DownloadStateMachine, DownloadFacts, CurlURL) -> String

    private static let events: [(String, Event)] =
        endEvents + headEvents + byteEvents + continuations

    private static let endEvents: [(String, Event)] = [
        ("end", { machine, facts, _ in words(machine.ended(0, .init(position: facts[0].position), facts)) }),
        (
            "end with error",
            { machine, facts, _ in words(machine.ended(0, .init(error: TransferError(.stalled, "r")), facts)) }
        ),
    ]

    private static let headEvents: [(String, Event)] = [
        ("head 200", head(200, ["Content-Length: \(size)", "ETag: \"v2\""])),
        ("head 206", head(206, range + ["ETag: \(tag)"])),
        ("head 206 elsewhere", head(206, elsewhere + ["ETag: \(tag)"])),
        ("head 304", head(304)),
        ("head 404", head(404)),
        ("head 412", head(412)),
        ("head 416", head(416, ["Content-Range: bytes */\(size)"])),
        ("head 503", head(503)),
    ].map { name, head in (name, { response(&$0, head, $1, $2) }) }

    private static let byteEvents: [(String, Event)] = [
        ("bytes", { machine, facts, _ in bytes(1_000, &machine, facts) }),
        ("bytes to the end", { machine, facts, _ in bytes(size - facts[0].position, &machine, facts) }),
        ("too many bytes", { machine, facts, _ in bytes(size, &machine, facts) }),
        (
            "shared line",
            { machine, facts, _ in
                machine.leavesSharedConnection(0, isDecoding: false, facts.part) ? "moves" : "stays"
            }
        ),
    ]

    private static let continuations: [(String, Event)] = [
        ("flushed: next", { machine, facts, _ in words(machine.flushed(0, .nextClaim, facts)) }),
        ("flushed: dismiss", { machine, facts, _ in words(machine.flushed(0, .closeConnection, facts)) }),
        ("disk full", { machine, facts, _ in words(machine.diskFailed(0, TransferError(.diskFull, "r"), facts)) }),
        (
            "part damaged",
            { machine, facts, _ in words(machine.diskFailed(0, TransferError(.remoteChanged, "r"), facts)) }
        ),
        ("rest ended", { machine, facts, _ in words(machine.delayEnded(0, facts)) }),
        ("wait ended", { machine, facts, _ in words(machine.waitEnded(0, facts)) }),
        ("tick", { machine, facts, _ in words(machine.tick(.init(), facts)) }),
        ("tick sources", { machine, facts, _ in words(machine.tickSources(facts)) }),
        ("cancel", { machine, _, _ in words(machine.fail(TransferError(.cancelled, "r"))) }),
    ]

    private static func bytes(_ count: Int64, _ machine: inout DownloadStateMachine, _ facts: DownloadFacts) -> String {
        var action = machine.bytesReceived(Int(count), on: 0, at: facts[0].position, isDecoding: false)
        if action == .claimReached { action = machine.claimReached(0, Int(count), at: facts[0].position, facts) }
        return "\(action)".split(separator: "(").first.map(String.init) ?? ""
    }

    private static let range = ["Content-Range: bytes \(8 << 20)-\(size - 1)/\(size)", "Content-Length: \(24 << 20)"]
    private static let elsewhere = ["Content-Range: bytes 0-\(size - 1)/\(size)", "Content-Length: \(size)"]

    private static func response(
        _ machine: inout DownloadStateMachine, _ head: ResponseHead, _ facts: DownloadFacts, _ url: CurlURL
    ) -> String {
        let context = DownloadStateMachine.HeadContext(wallTime: 1_700_000_000)
        switch machine.headReceived(0, head, at: url, context, facts) {
        case .discard:
            guard case .discarding(let outcome) = machine[0]?.phase else { return "discard" }
            return "discard: \("\(outcome)".split(separator: "(").first.map(String.init) ?? "")"
        case .receive(let plan):
            return "receive from \(plan.offset >> 20)M\(plan.startsOver == nil ? "" : ", drop")"
        }
    }

    /// The machine of a resumed download whose connection is in the phase.
    private static func machine(in phase: Phase) -> (DownloadStateMachine, DownloadFacts) {
        var (machine, facts) = machine(.resumed)
        machine.table?.put(0, on: facts.part.front..<size)
        machine.update(0) { connection in
            switch phase {
            case .idle:
                connection.isUnderWay = false
                connection.phase = .requesting
            case .requesting: connection.phase = .requesting
            case .receiving:
                connection.phase = .receiving(end: size)
                connection.isPart = true
                connection.isWriting = true
                connection.end = size
            case .discarding: connection.phase = .discarding(.changed(reason: "r"))
            case .interrupted: connection.phase = .interrupted(.claimFulfilled)
            case .resting:
                connection.isUnderWay = false
                connection.isResting = true
            case .closed: break
            }
        }
        if phase == .closed {
            machine.connections = []
            facts.exchanges = []
        }
        return (machine, facts)
    }

    /// Events that cannot happen in a phase: the performer sends no request then, or one is under way.
    private static func isImpossible(_ event: String, in phase: Phase) -> Bool {
        let isIdle = phase == .idle || phase == .resting
        if isIdle, event.hasPrefix("end") || event.hasPrefix("head") { return true }
        let sends = event.hasPrefix("flushed")
        return !isIdle && phase != .closed && sends
    }

    @Test("every event, in every phase of a connection")
    func events() throws {
        let url = try CurlURL("http://own/f")
        let found = Self.events.map { name, event in
            let cells = Phase.allCases.map { phase -> String in
                if Self.isImpossible(name, in: phase) { return "never" }
                var (machine, facts) = Self.machine(in: phase)
                return event(&machine, facts, url)
            }
            return ([name] + cells).joined(separator: " | ")
        }
        for (row, expected) in zip(found, Self.expectedEvents) { #expect(row == expected) }
        #expect(found.count == Self.expectedEvents.count)
        if found != Self.expectedEvents { print(found.map { "        \"\($0)\"," }.joined(separator: "\n")) }
    }

    /// The columns are the phases, in their order.
    private static let expectedEvents: [String] = [
        "end | never | fail truncated | fail truncated | close others, prepare, send | flush:next | never | -",
        "end with error | never | fail stalled | fail stalled | fail stalled | flush:next | never | -",
        "head 200 | never | receive from 0M, drop | receive from 0M, drop | receive from 0M, drop | receive from 0M, drop | never | discard",
        "head 206 | never | receive from 8M | receive from 8M | receive from 8M | receive from 8M | never | discard",
        "head 206 elsewhere | never | receive from 0M | receive from 0M | receive from 0M | receive from 0M | never | discard",
        "head 304 | never | discard: failed | discard: failed | discard: failed | discard: failed | never | discard",
        "head 404 | never | discard: failed | discard: failed | discard: failed | discard: failed | never | discard",
        "head 412 | never | discard: requestWhole | discard: requestWhole | discard: requestWhole | discard: requestWhole | never | discard",
        "head 416 | never | discard: requestWhole | discard: requestWhole | discard: requestWhole | discard: requestWhole | never | discard",
        "head 503 | never | discard: failed | discard: failed | discard: failed | discard: failed | never | discard",
        "bytes | refuse | refuse | append | ignore | refuse | refuse | refuse",
        "bytes to the end | refuse | refuse | append | ignore | refuse | refuse | refuse",
        "too many bytes | refuse | refuse | fail | ignore | refuse | refuse | refuse",
        "shared line | stays | stays | stays | stays | stays | stays | stays",
        "flushed: next | send | never | never | never | never | send | -",
        "flushed: dismiss | close | never | never | never | never | close | -",
        "disk full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full | fail disk-full",
        "part damaged | close others, restart, send | close others, interrupt | close others, interrupt | close others, interrupt | close others, interrupt | close others, restart, send | fail remote-changed",
        "rest ended | send | - | - | - | - | send | -",
        "wait ended | flush:rest | - | - | - | - | flush:rest | -",
        "tick | borrow | borrow | borrow | borrow | borrow | borrow | -",
        "tick sources | - | - | - | - | - | - | -",
        "cancel | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled | fail cancelled",
    ]
}
