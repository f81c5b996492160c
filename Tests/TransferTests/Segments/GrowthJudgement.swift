@testable import Transfer

/// The result for one line: the automatic number of connections compared with the best fixed one.
struct GrowthJudgement {
    static let fixed = [1, 2, 4, 8, 16]

    let line: SimulatedLine.Specification
    /// The seconds that each fixed number took.
    let seconds: [Double]
    let automatic: GrowthSimulation.Result
    let best: Double
    /// The smallest fixed number within 5 % of the best, over all downloads.
    let need: Int

    init(_ line: SimulatedLine.Specification, step: Double = 0.025) {
        self.line = line
        let simulation = GrowthSimulation(step: step)
        var best = Double.infinity
        var seconds: [Double] = []
        // Runs that take far longer than the best are cut short.
        for count in Self.fixed.reversed() {
            let result = simulation.run(line, .fixed(count), longest: min(2_000, best * 1.3 + 1))
            best = min(best, result.seconds)
            seconds.insert(result.seconds, at: 0)
        }
        self.seconds = seconds
        self.best = best
        let index = seconds.firstIndex { $0 <= best * 1.05 } ?? 0
        need = min(GrowthSimulation.limit, Self.fixed[index] * line.tasks)
        automatic = simulation.run(line, .automatic, longest: best * 4 + 10)
    }

    var ratio: Double { automatic.seconds / best }
    /// Whether it took long enough for the number of connections to settle.
    var isLong: Bool { best >= 6 }
    var hasTooMany: Bool { isLong && automatic.settled > 2 * need }
}
