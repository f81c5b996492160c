import TestSupport
import Testing

@testable import Transfer

@Suite("How many connections a download has")
struct ConnectionScalerTests {
    /// A download over a simulated line, inspected at the intervals of a real run.
    private struct Download {
        var line: SimulatedLine
        var growth: ConnectionScaler
        var targets: [Int] = []
        var left: Int64 = .max
        var sight: (inout PathObservation) -> Void = { _ in }

        init(
            _ segments: Segments = .automatic, each: Double = .infinity, total: Double = .infinity, burst: Double = 0,
            latency: Double = 0.0002, slowEvery: Int = 0, capacity: PathCapacity? = nil
        ) {
            line = SimulatedLine(
                SimulatedLine.Specification(
                    each: each, total: total, burst: burst, latency: latency, slowEvery: slowEvery))
            growth = ConnectionScaler(segments, capacity: capacity)
            line.open(for: 0)
        }

        mutating func pass(_ milliseconds: Int) {
            for _ in 0..<milliseconds / 50 {
                for _ in 0..<5 { line.pass(0.01) }
                let receiving = line.connections.filter { $0.answers < line.now }
                if receiving.isEmpty { continue }
                var sight = PathObservation(
                    now: Int64((line.now * 1000).rounded()), received: Int64(line.received[0]),
                    connections: receiving.map {
                        PathObservation.Connection(
                            number: $0.number, age: Int64((line.now - $0.answers) * 1000), received: Int64($0.received))
                    }, left: left, setUp: Int64(line.setUp * 1000))
                self.sight(&sight)
                let target = growth.look(sight)
                targets.append(target)
                for connection in line.connections.dropFirst(target) { line.close(connection.number) }
                for _ in 0..<max(0, target - line.connections.count) { line.open(for: 0) }
            }
        }
    }

    @Test("a fixed number is wanted at once and for ever", arguments: [1, 4, 64])
    func fixed(count: Int) {
        var download = Download(.fixed(count), each: 1e6, total: 1e6)
        #expect(download.growth.target == count && !download.growth.isTrying)
        download.pass(30_000)
        #expect(Set(download.targets) == [count])
    }

    @Test("automatic begins with one and has the most that is allowed within half a second", arguments: [2, 5, 16])
    func grows(most: Int) {
        var download = Download(.automatic(upTo: most), each: 1e6)
        #expect(download.growth.target == 1 && download.growth.isTrying)
        download.pass(500)
        #expect(download.growth.target == most)
        #expect(download.targets == download.targets.sorted())
    }

    @Test(
        "connections that each have a rate of their own are never given back, even where it comes in bursts",
        arguments: [(51_200, 0), (51_200, 1), (204_800, 0), (204_800, 1), (4_194_304, 1), (20_971_520, 1)])
    func keeps(rate: Int, burst: Int) {
        var download = Download(each: Double(rate), burst: Double(burst))
        download.pass(60_000)
        #expect(download.targets == download.targets.sorted())
        #expect(download.growth.target == 16 && download.growth.capacity == .each)
    }

    @Test("one slow connection of eight decides nothing")
    func oneSlow() {
        var download = Download(each: 1e6, slowEvery: 8)
        download.pass(30_000)
        #expect(download.targets == download.targets.sorted() && download.growth.target == 16)
    }

    @Test("where more bring nothing it goes back to one within three seconds, and tries more ever more seldom")
    func useless() {
        var download = Download(total: 1e7)
        download.pass(3_000)
        #expect(download.growth.target == 1 && download.targets.contains(4))
        download.pass(120_000)
        let share = Double(download.targets.count { $0 > 1 }) / Double(download.targets.count)
        #expect(share < 0.05)
        let trials = zip(download.targets, download.targets.dropFirst()).count { $0 == 1 && $1 > 1 }
        #expect((2...6).contains(trials))
    }

    @Test(
        "a line that is full with so many of them keeps as many, and no more than half as many again", arguments: 2...10
    )
    func full(need: Int) {
        var download = Download(each: 1e6, total: 1e6 * Double(need))
        download.pass(20_000)
        let last = download.targets.suffix(100).sorted()[50]
        #expect(last >= need && 2 * last <= 3 * need + 1)
    }

    @Test("a line that is slow to start is waited for", arguments: [0.02, 0.08, 0.2])
    func latency(seconds: Double) {
        var download = Download(each: 1e6, latency: seconds)
        download.left = 100_000_000
        download.pass(10_000)
        #expect(download.targets.suffix(100).allSatisfy { $0 == 16 })
        download = Download(total: 1e7, latency: seconds)
        download.pass(10_000)
        #expect(download.growth.target <= 2)
    }

    @Test("nothing is tried for what is here in a moment")
    func nearTheEnd() {
        var download = Download(each: 1e7)
        download.left = 2_000_000
        download.pass(5_000)
        #expect(Set(download.targets) == [1])
    }

    @Test("connections that a host has no room for are asked for again")
    func limits() {
        var download = Download(each: 1e6)
        download.pass(2_000)
        download.growth.cap(to: 5)
        #expect(download.growth.target == 5 && download.growth.isWaiting)
        download.pass(50)
        #expect(download.growth.target == 16)
        // A fixed number is unaffected by the cap.
        var fixed = ConnectionScaler(.fixed(4))
        fixed.cap(to: 1)
        #expect(fixed.target == 4)
    }

    @Test("a machine that is busy for long gets no more connections, one that is for a moment does")
    func busy() {
        var download = Download(each: 1e6)
        download.sight = { $0.isBusy = true }
        download.pass(5_000)
        #expect(Set(download.targets) == [1])
        download = Download(each: 1e6)
        download.sight = { $0.isBusy = $0.now < 200 }
        download.pass(1_000)
        #expect(download.growth.target == 16)
    }

    @Test("a download that is held back by a rate limit gets no more connections, and is not looked at more often")
    func held() {
        var download = Download(each: 1e6)
        download.sight = { $0.isHeld = true }
        download.pass(10_000)
        #expect(Set(download.targets) == [1] && !download.growth.isTrying)
        // Once the limit is lifted, the download tries more connections again.
        download.sight = { _ in }
        download.pass(3_000)
        #expect(download.growth.target == 16)
    }

    @Test("a line that falls to a quarter gets more connections where they help")
    func falls() {
        let specification = SimulatedLine.Specification(each: 2e6, total: 8e6)
        var download = Download(each: 2e6, total: 8e6)
        download.pass(5_000)
        #expect((4...6).contains(download.growth.target))
        // From here on each connection is slower, with the same total.
        let drop = SimulatedLine.Specification(each: 5e5, total: specification.total)
        download.line.change(to: drop)
        download.pass(8_000)
        #expect(download.growth.target == 16)
    }

    @Test("the host's capacity is applied from the first byte on")
    func lessons() {
        var download = Download(each: 1e6, capacity: .each)
        download.pass(100)
        #expect(download.growth.target == 16)
        download = Download(each: 1e6, total: 4e6, capacity: .shared(connections: 4, rate: 4e6))
        download.pass(100)
        #expect(download.growth.target == 4)
        download.pass(5_000)
        #expect(Set(download.targets.dropFirst(2)) == [4])
        // Connections of other downloads are subtracted.
        download = Download(total: 4e6, capacity: .shared(connections: 4, rate: 4e6))
        download.sight = { $0.others = 3 }
        download.pass(5_000)
        #expect(Set(download.targets) == [1])
    }

    @Test("a capacity that is no longer true is forgotten")
    func wrongLesson() {
        var download = Download(each: 1e6, capacity: .shared(connections: 2, rate: 1.6e7))
        download.pass(10_000)
        #expect(download.growth.target == 16)
    }

    @Test("another download's trial is waited for, and what it found out is taken over")
    func siblings() {
        var download = Download(each: 1e6)
        download.sight = {
            $0.others = 4
            $0.mayTry = false
        }
        download.pass(5_000)
        #expect(Set(download.targets) == [1] && download.growth.isWaiting && !download.growth.isTrying)
        download.sight = {
            $0.others = 4
            $0.capacity = .each
        }
        download.pass(100)
        #expect(download.growth.target == 16)
    }

    @Test("what is left is measured by the download's own share of what the host sends")
    func ownShare() {
        var download = Download(each: 1e6)
        download.left = 4_000_000
        download.sight = {
            $0.others = 15
            $0.received *= 16
        }
        download.pass(500)
        #expect(download.growth.target == 16)
    }

    @Test("a download that nothing was tried for, since little seemed to be left, is tried for once more seems to be")
    func untried() {
        var download = Download(each: 1e6)
        download.left = 100_000
        download.pass(1_000)
        #expect(Set(download.targets) == [1] && download.growth.isWaiting)
        download.left = 100_000_000
        download.pass(500)
        #expect(download.growth.target == 16)
    }

    @Test(
        "connections that each have a rate of their own are known for that beside other downloads", arguments: [0, 1])
    func eachBesideOthers(burst: Int) {
        var download = Download(each: 1e6, burst: Double(burst))
        download.sight = {
            $0.others = 3
            // The bytes of the other downloads arrive in the same pattern.
            $0.received += 3 * (burst == 0 ? $0.now * 1_000 : 1_000_000 * (1 + $0.now / 1_000))
        }
        download.pass(1_000)
        #expect(download.growth.capacity == .each && download.growth.target == 16)
    }

    @Test("connections that share a rate with other downloads are not taken to have one each", arguments: [1, 3, 7])
    func sharedBesideOthers(others: Int) {
        // The line gives the same rate to each connection.
        var download = Download(total: 8e6)
        download.sight = { sight in
            sight.others = others
            sight.received = sight.now * 8_000
        }
        for _ in 0..<40 {
            download.line.change(
                to: .init(total: 8e6 * Double(download.growth.target) / Double(download.growth.target + others)))
            download.pass(50)
        }
        #expect(download.growth.capacity != .each)
    }

    @Test(
        "whatever the line does, there is one at least and never more than allowed",
        arguments: 1...100 as ClosedRange<UInt64>)
    func bounds(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let most = Int.random(in: 1...64, using: &generator)
        var growth = ConnectionScaler(.automatic(upTo: most))
        var (now, received) = (Int64(0), Int64(0))
        var capacity: PathCapacity?
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...400, using: &generator)
            if Bool.random(using: &generator) { received += Int64.random(in: 0...5_000_000, using: &generator) }
            switch Int.random(in: 0..<200, using: &generator) {
            case 0: growth.cap(to: Int.random(in: 0...most, using: &generator), isFull: false)
            case 1: growth.cap(to: Int.random(in: 0...most, using: &generator))
            case 2: capacity = .each
            case 3:
                capacity = .shared(
                    connections: Int.random(in: 0...80, using: &generator),
                    rate: Double.random(in: 0...1e9, using: &generator))
            default: break
            }
            let count = Int.random(in: 0...growth.target, using: &generator)
            let target = growth.look(
                PathObservation(
                    now: now, received: received,
                    connections: (0..<count).map {
                        PathObservation.Connection(number: $0, age: Int64($0) * 10, received: received / Int64(count))
                    },
                    others: Int.random(in: 0...2, using: &generator),
                    left: Int64.random(in: 0...1_000_000_000, using: &generator),
                    setUp: Int64.random(in: 0...500, using: &generator),
                    isBusy: Int.random(in: 0..<10, using: &generator) == 0,
                    isHeld: Int.random(in: 0..<100, using: &generator) == 0, capacity: capacity,
                    mayTry: Int.random(in: 0..<10, using: &generator) > 0))
            #expect(target == growth.target && target >= 1 && target <= most)
        }
    }
}
