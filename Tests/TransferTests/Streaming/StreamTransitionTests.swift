import Curl
import TestSupport
import Testing

@testable import Transfer

/// The transitions of a stream's connection: every event in every phase as a table, and random orders of events.
@Suite("The transitions of a stream's connection")
struct StreamTransitionTests {
    typealias Machine = StreamStateMachine

    enum State: String, CaseIterable { case resolving, connecting, open, securing, judging, aborted, ended }

    private static let cut = TransferError(.truncated, "r")

    private static func moment(_ milliseconds: UInt64) -> MonotonicTime {
        MonotonicTime(nanoseconds: milliseconds * 1_000_000)
    }

    private static func machine(in state: State) -> Machine {
        var machine = Machine(stallTimeout: 1_000, now: moment(1_000))
        if state == .resolving { return machine }
        _ = machine.routeResolved()
        if state == .connecting { return machine }
        _ = machine.connected(moment(2_000))
        if state == .securing || state == .judging { machine.handshakeBegan(7) }
        if state == .judging { _ = machine.handshakeEnded(moment(2_100)) }
        if state == .aborted || state == .ended { _ = machine.failed(.cancelled) }
        if state == .ended { _ = machine.connectionEnded(nil) }
        return machine
    }

    private static func words(_ action: StreamAction) -> String {
        switch action {
        case .none: "-"
        case .connect: "connect"
        case .abort: "abort"
        case .evaluateCertificates: "judge"
        case .completeHandshake(let number): "complete \(number)"
        case .reportReadClose: "report close"
        case .reportBetterRoute: "report route"
        case .performOperations: "perform"
        case .startTimer(let time): "timer \(time.milliseconds)"
        case .end(let error): "end \(error?.code.rawValue ?? "well")"
        }
    }

    private typealias Event = @Sendable (inout Machine) -> String

    private static let events: [(String, Event)] = [
        ("route resolved", { words($0.routeResolved()) }),
        ("connected", { words($0.connected(moment(2_000))) }),
        (
            "handshake began",
            { machine in
                machine.handshakeBegan(8)
                return if case .securing(let number) = machine.phase { "securing \(number)" } else { "-" }
            }
        ),
        ("handshake ended", { words($0.handshakeEnded(moment(2_200))) }),
        ("trusted", { words($0.certificatesEvaluated(nil)) }),
        ("not trusted", { words($0.certificatesEvaluated(cut)) }),
        ("read closed", { words($0.readClosed()) }),
        ("better route", { words($0.betterRouteFound()) }),
        ("performed", { words($0.operationsPerformed(due: nil, isAwaited: true, moment(2_500))) }),
        (
            "performed, call due",
            { words($0.operationsPerformed(due: moment(2_600), isAwaited: true, moment(2_500))) }
        ),
        ("timer", { words($0.timerFired(nil, isAwaited: false, moment(9_000))) }),
        ("timer, call expired", { words($0.timerFired(cut, isAwaited: false, moment(9_000))) }),
        (
            "timer, stalled",
            { machine in
                _ = machine.operationsPerformed(due: nil, isAwaited: true, moment(2_500))
                return words(machine.timerFired(nil, isAwaited: true, moment(3_500)))
            }
        ),
        ("failed", { words($0.failed(cut)) }),
        ("connection ended", { words($0.connectionEnded(nil)) }),
        ("connection broke", { words($0.connectionEnded(cut)) }),
    ]

    @Test("every event in every phase")
    func events() {
        let found = Self.events.map { name, event in
            let cells = State.allCases.map { state -> String in
                var machine = Self.machine(in: state)
                return event(&machine)
            }
            return ([name] + cells).joined(separator: " | ")
        }
        for (row, expected) in zip(found, Self.expectedEvents) { #expect(row == expected) }
        #expect(found.count == Self.expectedEvents.count)
        if found != Self.expectedEvents { print(found.map { "        \"\($0)\"," }.joined(separator: "\n")) }
    }

    /// The columns are the states, in their order.
    private static let expectedEvents: [String] = [
        "route resolved | connect | - | - | - | - | - | -",
        "connected | - | perform | - | - | - | - | -",
        "handshake began | - | - | securing 8 | securing 7 | - | securing 8 | -",
        "handshake ended | - | - | - | judge | - | - | -",
        "trusted | - | - | - | - | complete 7 | - | -",
        "not trusted | - | - | - | - | abort | - | -",
        "read closed | report close | report close | report close | report close | report close | report close | -",
        "better route | - | - | report route | report route | report route | report route | -",
        "performed | - | - | timer 3500 | - | - | timer 3500 | -",
        "performed, call due | timer 2600 | timer 2600 | timer 2600 | timer 2600 | timer 2600 | timer 2600 | -",
        "timer | perform | perform | perform | perform | perform | perform | -",
        "timer, call expired | end truncated | abort | abort | abort | abort | abort | -",
        "timer, stalled | perform | perform | abort | perform | perform | abort | -",
        "failed | end truncated | abort | abort | abort | abort | abort | -",
        "connection ended | end well | end well | end well | end well | end well | end cancelled | -",
        "connection broke | end truncated | end truncated | end truncated | end truncated | end truncated | end cancelled | -",
    ]

    // MARK: Single rules

    @Test("the time without a byte counts from the last byte, and only while a call waits")
    func stall() {
        var clock = StreamStallClock(timeout: 1_000, lastActivity: Self.moment(5_000))
        var found: [MonotonicTime?] = []
        found.append(clock.stall(isAwaited: false, Self.moment(7_000)))
        found.append(clock.stall(isAwaited: true, Self.moment(7_500)))
        found.append(clock.stall(isAwaited: true, Self.moment(7_900)))
        clock.lastActivity = Self.moment(8_000)
        found.append(clock.stall(isAwaited: true, Self.moment(8_100)))
        _ = clock.stall(isAwaited: false, Self.moment(8_200))
        found.append(clock.stall(isAwaited: true, Self.moment(8_300)))
        #expect(found.map { $0?.milliseconds } == [nil, 8_500, 8_500, 9_000, 9_300])
        var patient = StreamStallClock(timeout: 0, lastActivity: Self.moment(0))
        let none = patient.stall(isAwaited: true, Self.moment(7_000))
        #expect(none == nil)
    }

    @Test("one timer runs: it is replaced by an earlier one, and followed by another when it has fired")
    func timers() {
        var clock = StreamStallClock(timeout: 1_000, lastActivity: Self.moment(5_000))
        var found: [MonotonicTime?] = []
        found.append(clock.timer(due: nil, isAwaited: true, Self.moment(5_000)))
        found.append(clock.timer(due: Self.moment(7_000), isAwaited: true, Self.moment(5_100)))
        found.append(clock.timer(due: Self.moment(5_500), isAwaited: true, Self.moment(5_200)))
        clock.timerFired()
        found.append(clock.timer(due: nil, isAwaited: true, Self.moment(5_500)))
        #expect(found.map { $0?.milliseconds } == [6_000, nil, 5_500, 6_000])
    }

    @Test(
        "under every order of events the attempt ends once, with the first reason, and reports once",
        arguments: 0..<300)
    func disorder(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var machine = Machine(stallTimeout: 1_000, now: Self.moment(0))
        var (now, ends, reports): (UInt64, [TransferError?], [StreamAction]) = (0, [], [])
        var aborted: TransferError?
        func record(_ action: StreamAction) {
            switch action {
            case .end(let error): ends.append(error)
            case .reportReadClose, .reportBetterRoute: reports.append(action)
            case .completeHandshake: #expect(machine.phase == .open)
            case .connect: #expect(machine.phase == .connecting)
            default: break
            }
        }
        for _ in 0..<200 {
            now += .random(in: 0...300, using: &generator)
            let time = Self.moment(now)
            switch Int.random(in: 0..<14, using: &generator) {
            case 0: record(machine.routeResolved())
            case 1: record(machine.connected(time))
            case 2: machine.handshakeBegan(1)
            case 3: record(machine.handshakeEnded(time))
            case 4: record(machine.certificatesEvaluated(nil))
            case 5: machine.bytesMoved(time)
            case 6: record(machine.readClosed())
            case 7: record(machine.betterRouteFound())
            case 8: record(machine.operationsPerformed(due: nil, isAwaited: .random(using: &generator), time))
            case 9: machine.suspended()
            case 10 where Int.random(in: 0..<10, using: &generator) == 0:
                let error = TransferError(.diskFull, "\(now)")
                let action = machine.failed(error)
                if action == .abort { aborted = aborted ?? error }
                record(action)
            case 11 where Int.random(in: 0..<10, using: &generator) == 0 && machine.phase != .resolving:
                record(machine.connectionEnded(Self.cut))
            case 12:
                let action = machine.timerFired(nil, isAwaited: .random(using: &generator), time)
                if action == .abort { aborted = aborted ?? machine.failure }
                record(action)
            default: break
            }
            #expect(machine.violation == nil)
        }
        if machine.phase == .resolving {
            record(machine.failed(Self.cut))
        } else {
            record(machine.connectionEnded(Self.cut))
        }
        #expect(machine.isEnded && ends.count == 1)
        if let aborted { #expect(ends == [aborted]) }
        #expect(reports.count == Set(reports.map { "\($0)" }).count)
    }
}
