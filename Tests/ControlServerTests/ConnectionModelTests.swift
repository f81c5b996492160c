import TestSupport
import Testing

@testable import ControlServer

/// Connections as values, under random orders of events.
@Suite("A connection's state machine under every order of events")
struct ConnectionModelTests {
    private static let disturbances: Set<ConnectionModel.Event> = [
        .filesFailed, .filesRefused, .lineDeadline, .stallDeadline, .drain,
    ]

    /// Returns the bytes of a client in random pieces, and its lines.
    private static func script(
        _ kinds: [ConnectionModel.Kind], _ generator: inout SeededGenerator
    ) -> (pieces: [String], lines: [String]) {
        var lines: [String] = []
        var text = ""
        for number in 0..<Int.random(in: 1...12, using: &generator) {
            let kind = kinds[Int.random(in: 0..<kinds.count, using: &generator)]
            let isLong = kind == .quick && Bool.random(using: &generator)
            let line = "\(kind.rawValue)\(number)" + String(repeating: "x", count: isLong ? 40 : 0)
            lines.append(line)
            text += line + "\n"
            if Int.random(in: 0..<4, using: &generator) == 0 { text += " \n" }
        }
        var pieces: [String] = []
        while !text.isEmpty {
            let piece = text.prefix(Int.random(in: 1...60, using: &generator))
            pieces.append(String(piece))
            text.removeFirst(piece.count)
        }
        return (pieces, lines)
    }

    /// Runs a model until nothing can happen any more.
    private func run(
        _ model: inout ConnectionModel, _ generator: inout SeededGenerator, isDisturbed: Bool
    ) {
        var trail: [ConnectionModel.Event] = []
        for _ in 0..<2_000 {
            var events = model.possibleEvents
            // A disturbance is rare, so that the connection gets somewhere.
            if !isDisturbed || Int.random(in: 0..<20, using: &generator) > 0 {
                events.removeAll { Self.disturbances.contains($0) }
            }
            // The stream has no end of its own, so the subscriber stops at some time.
            if events.isEmpty, model.machine.isSubscribed { events = model.possibleEvents.filter { $0 == .drain } }
            guard !events.isEmpty else { break }
            let event = events[Int.random(in: 0..<events.count, using: &generator)]
            trail.append(event)
            model.happen(event)
            if let violation = model.violation {
                Issue.record("\(violation) after \(trail.suffix(12))")
                return
            }
        }
        if let remainder = model.remainder { Issue.record("\(remainder) after \(trail.suffix(20))") }
    }

    @Test("every line of a client that reads is carried out once, in order; then it ends", arguments: 0..<400)
    func undisturbed(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        let (pieces, lines) = Self.script([.quick, .costly, .notification], &generator)
        var model = ConnectionModel(script: pieces, seed: UInt64(10_000 + seed), refusesSurplus: false)
        run(&model, &generator, isDisturbed: false)
        #expect(!model.isDisturbed)
        #expect(model.executed == lines)
        #expect(model.answered == lines.filter { !$0.hasPrefix("n") })
    }

    @Test("whatever a client does and whenever the server stops, nothing is held in the end", arguments: 0..<1_000)
    func disturbed(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(20_000 + seed))
        let (pieces, lines) = Self.script([.quick, .costly, .notification, .subscription, .files], &generator)
        var model = ConnectionModel(script: pieces, seed: UInt64(30_000 + seed), refusesSurplus: true)
        run(&model, &generator, isDisturbed: true)
        #expect(model.executed == Array(lines.prefix(model.executed.count)))
        let expected = model.executed.filter { !$0.hasPrefix("n") }
        #expect(model.answered == Array(expected.prefix(model.answered.count)))
    }
}
