import TestSupport
import Testing

@testable import Transfer

@Suite("How many connections a download has")
struct ConnectionGrowthTests {
    /// A line whose connections bring `each` bytes a second, and all together `total` at most.
    private struct Line {
        var growth: ConnectionGrowth
        var each: Double
        var total: Double
        var now: Int64 = 0
        var received = 0.0
        var targets: [Int] = []
        /// Milliseconds that a new connection takes.
        var delay: Int64 = 0
        private var changes: [(time: Int64, target: Int)] = [(0, 1)]

        init(_ segments: Segments, each: Double, total: Double) {
            growth = ConnectionGrowth(segments)
            self.each = each
            self.total = total
        }

        private var active: Int {
            let due = changes.last { $0.time <= now - delay }?.target ?? 1
            return min(due, changes.last?.target ?? 1)
        }

        mutating func pass(_ milliseconds: Int64, left: Int64 = .max) {
            let end = now + milliseconds
            while now < end {
                now += 50
                received += min(Double(active) * each, total) / 20
                let target = growth.look(now: now, received: Int64(received), active: active, left: left)
                if target != changes.last?.target { changes.append((now, target)) }
                targets.append(target)
            }
        }
    }

    @Test("a fixed number is wanted at once and for ever", arguments: [1, 4, 64])
    func fixed(count: Int) {
        var line = Line(.fixed(count), each: 1e6, total: 1e6)
        #expect(line.growth.target == count && !line.growth.isTrying)
        line.pass(30_000)
        #expect(Set(line.targets) == [count])
    }

    @Test("automatic begins with one and grows to the limit where each brings more", arguments: [2, 5, 16])
    func grows(most: Int) {
        var line = Line(.automatic(upTo: most), each: 1e6, total: 1e9)
        #expect(line.growth.target == 1 && line.growth.isTrying)
        line.pass(3_000)
        #expect(line.growth.target == most && !line.growth.isTrying)
        #expect(line.targets == line.targets.sorted())
    }

    @Test("where more bring nothing it goes back to one within a second, and tries again ever more seldom")
    func useless() {
        var line = Line(.automatic, each: 1e7, total: 1e7)
        line.pass(1_500)
        #expect(line.growth.target == 1 && line.targets.contains(4))
        line.pass(120_000)
        let share = Double(line.targets.count { $0 > 1 }) / Double(line.targets.count)
        #expect(share < 0.05)
        let trials = zip(line.targets, line.targets.dropFirst()).count { $0 == 1 && $1 > 1 }
        #expect((3...6).contains(trials))
    }

    @Test("a line that is full with six of them gets no more than eight, and no fewer than six")
    func full() {
        var line = Line(.automatic, each: 1e6, total: 6e6)
        line.pass(9_000)
        #expect((6...8).contains(line.growth.target))
        // A step back was tried meanwhile, cost too much, and was taken back.
        #expect(line.targets.drop { $0 < 8 }.contains(4))
    }

    @Test("connections that take long to be made are waited for")
    func slowToJoin() {
        var line = Line(.automatic(upTo: 8), each: 1e6, total: 1e9)
        line.delay = 400
        line.pass(5_000)
        #expect(line.growth.target == 8)
    }

    @Test("nothing is tried for what is here in a moment")
    func nearTheEnd() {
        var line = Line(.automatic, each: 1e7, total: 1e9)
        line.pass(5_000, left: 2_000_000)
        #expect(Set(line.targets) == [1])
    }

    @Test("a host's limit holds for ever, a refusal for a while")
    func limits() {
        var line = Line(.automatic, each: 1e6, total: 1e9)
        line.growth.limit(to: 3)
        line.pass(60_000)
        #expect(line.growth.target == 3 && line.targets.allSatisfy { $0 <= 3 })
        line.growth.limit(to: 0)
        #expect(line.growth.target == 1)
        line = Line(.automatic, each: 1e6, total: 1e9)
        line.growth.settle(at: 1, now: 0)
        line.pass(9_000)
        #expect(line.growth.target == 1)
        line.pass(30_000)
        #expect(line.growth.target > 1)
        // A fixed number is kept to, but for a host's limit.
        var fixed = ConnectionGrowth(.fixed(4))
        fixed.settle(at: 1, now: 0)
        #expect(fixed.target == 4)
        fixed.limit(to: 2)
        #expect(fixed.target == 2)
    }

    @Test(
        "whatever the line does, there is one at least and never more than allowed",
        arguments: 1...100 as ClosedRange<UInt64>)
    func bounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let most = Int.random(in: 1...64, using: &generator)
        var growth = ConnectionGrowth(.automatic(upTo: most))
        var (now, received, ceiling) = (Int64(0), Int64(0), most)
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...400, using: &generator)
            received += Int64.random(in: 0...5_000_000, using: &generator)
            switch Int.random(in: 0..<200, using: &generator) {
            case 0:
                ceiling = max(1, min(ceiling, Int.random(in: 0...most, using: &generator)))
                growth.limit(to: ceiling)
            case 1: growth.settle(at: Int.random(in: 0...most, using: &generator), now: now)
            default: break
            }
            let target = growth.look(
                now: now, received: received, active: Int.random(in: 0...growth.target, using: &generator),
                left: Int64.random(in: 0...1_000_000_000, using: &generator))
            #expect(target == growth.target && target >= 1 && target <= ceiling)
        }
    }
}
