import TestSupport
import Testing

@testable import Transfer

/// Transactions as values, under random orders of events and, for their first choices, under all of them.
@Suite("A transaction's state machine under every order of events")
struct TransactionModelTests {
    /// Runs a model to its end.
    private func run(_ model: inout TransactionModel, calmAfter steps: Int) {
        var trail: [TransactionModel.Event] = []
        for step in 0..<2_000 {
            if step >= steps { model.isCalm = true }
            let events = model.possibleEvents
            guard let first = events.first else { break }
            let event = model.isCalm ? first : model.choices.choose(events)
            trail.append(event)
            model.happen(event)
            if let fault = model.fault {
                Issue.record("\(fault) after \(trail.suffix(12)), state \(model.machine.state.words)")
                return
            }
        }
        if model.machine.isUnderWay { Issue.record("no end after \(trail.count) events: \(trail.suffix(12))") }
    }

    @Test("every start has one end, and every pause an owner", arguments: 0..<2_000)
    func random(seed: Int) {
        let choices = Choices(generator: SeededGenerator(seed: UInt64(seed)))
        var model = TransactionModel(choices, isSecure: seed % 2 == 0)
        run(&model, calmAfter: 120)
        #expect(model.starts == model.ends && model.starts > 0)
    }

    @Test("all choices of the first events", arguments: [true, false])
    func exhaustive(isSecure: Bool) {
        var script: [Int]? = []
        var count = 0
        while let current = script {
            var model = TransactionModel(Choices(script: current), isSecure: isSecure)
            run(&model, calmAfter: 8)
            count += 1
            script = model.fault == nil ? model.choices.next(upTo: 7) : nil
        }
        #expect(count > 1_000)
    }
}
