import TestSupport
import Testing

@testable import Transfer

@Suite("Automatic connections over simulated lines")
struct GrowthSimulationTests {
    @Test(
        "a named line takes at most 1.1 times as long as with the best fixed number, with at most twice as many",
        arguments: GrowthLines.named.indices)
    func named(index: Int) {
        let judgement = GrowthJudgement(GrowthLines.named[index], step: 0.05)
        #expect(judgement.ratio <= 1.1, "\(judgement.line.name)")
        #expect(!judgement.hasTooMany, "\(judgement.line.name): \(judgement.automatic.settled) for \(judgement.need)")
    }

    /// A shorter run of `Tests/Benchmarks/growth.sh`, which simulates 1,000 lines in an optimised build.
    @Test("of random lines, 19 of 20 do, and none takes half as long again")
    func random() {
        var generator = SeededGenerator(seed: 1)
        let judgements = (0..<80).map { _ in
            GrowthJudgement(GrowthLines.random(using: &generator), step: 0.05)
        }
        let ratios = judgements.map(\.ratio).sorted()
        #expect(judgements.count { $0.ratio <= 1.1 } >= 75)
        #expect((ratios.last ?? 2) < 1.5)
        #expect(judgements.count(where: \.hasTooMany) <= 5)
    }
}
