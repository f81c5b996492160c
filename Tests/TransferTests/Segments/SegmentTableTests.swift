import TestSupport
import Testing

@testable import Transfer

@Suite("Which connection fetches which bytes")
struct SegmentTableTests {
    private static let mebi: Int64 = 1 << 20

    private func next(
        _ table: inout SegmentTable, _ number: Int, _ written: ByteRangeSet = ByteRangeSet(), connections: Int = 4,
        rate: Double = 0, setUp: Double = 0
    ) -> SegmentTable.Work {
        table.next(for: number, written: written, connections: connections, rate: rate, setUp: setUp)
    }

    // MARK: Single steps

    @Test("claims are taken in the order of the file")
    func order() {
        var table = SegmentTable(total: 80 * Self.mebi)
        var ends: [Int64] = []
        for number in 0..<4 {
            guard case .range(let range) = next(&table, number) else {
                Issue.record("no work for \(number)")
                return
            }
            #expect(range.lowerBound == ends.last ?? 0)
            ends.append(range.upperBound)
        }
        #expect(table.claims.count == 4)
    }

    @Test("F80: a connection whose response goes on continues into the claims of silent ones and unclaimed bytes")
    func continued() {
        let mebi = Self.mebi
        var table = SegmentTable(total: 20 * mebi)
        for number in 0..<4 { table.put(number, on: Int64(number) * 3 * mebi..<Int64(number + 1) * 3 * mebi) }
        func extend(_ silent: Set<Int>, upTo reach: Int64 = 20 * mebi) -> Int64? {
            let isExtended = table.extend(
                0, upTo: reach, silent: silent, written: ByteRangeSet(), connections: 4, setUp: 0)
            return isExtended ? table.claims[0]?.end : nil
        }
        #expect(extend([2, 3]) == nil)
        #expect(extend([1, 2, 3]) == 6 * mebi)
        #expect(table.claims[1]?.rest == 0)
        // The response ends within the next claim, whose rest is assigned anew.
        #expect(extend([1, 2, 3], upTo: 8 * mebi) == 8 * mebi)
        #expect(extend([1, 2, 3], upTo: 8 * mebi) == nil)
        #expect(table.unclaimed(written: ByteRangeSet()) == [8 * mebi..<9 * mebi, 12 * mebi..<20 * mebi])
        #expect(extend([1, 2, 3]) == 9 * mebi)
        #expect(extend([1, 2, 3]) == 12 * mebi)
        // Unclaimed bytes are continued into by one share.
        #expect(extend([1, 2, 3]) == 13 * mebi)
        #expect(next(&table, 1, rate: 1e6) == .range(13 * mebi..<14 * mebi))
    }

    @Test("F80: an idle connection takes the whole claim of a silent one over, and leaves empty claims alone")
    func silent() {
        let mebi = Self.mebi
        var table = SegmentTable(total: 8 * mebi)
        table.put(1, on: 0..<4 * mebi)
        table.put(2, on: 4 * mebi..<8 * mebi)
        table.put(3, on: 8 * mebi..<8 * mebi)
        var split = table
        #expect(next(&split, 0, rate: 1e6) == .range(mebi..<2 * mebi))
        #expect(
            table.next(
                for: 0, written: ByteRangeSet(), connections: 4, rate: 1e6, setUp: 0, silent: [1, 2, 3])
                == .takeOver(of: 1, 0..<4 * mebi))
        table.move(0, to: 3 * mebi, rate: 1e6)
        #expect(
            table.next(
                for: 4, written: ByteRangeSet(), connections: 4, rate: 1e6, setUp: 0, silent: [2, 3])
                == .takeOver(of: 2, 4 * mebi..<8 * mebi))
    }

    @Test("a second connection takes part of the first one's claim, which goes to the end")
    func share() throws {
        var table = SegmentTable(total: 12 * Self.mebi)
        table.put(0, on: 0..<table.total)
        table.move(0, to: Self.mebi, rate: 1e6)
        guard case .range(let range) = next(&table, 1) else {
            Issue.record("no work")
            return
        }
        let first = try #require(table.claims[0])
        #expect(first.end == range.lowerBound && first.position == Self.mebi && range.count >= Self.mebi)
    }

    @Test("what is left of a claim is not shared where it is not worth a request")
    func small() {
        var table = SegmentTable(total: 400 << 10)
        table.put(0, on: 0..<table.total)
        #expect(next(&table, 1) == .none)
        #expect(table.claims == [0: SegmentTable.Claim(start: 0, position: 0, end: 400 << 10)])
        // A rest that the other connection receives during this one's set-up is not shared either.
        table = SegmentTable(total: 2 * Self.mebi)
        table.put(0, on: 0..<table.total)
        table.move(0, to: 0, rate: 2_000_000)
        #expect(next(&table, 1, setUp: 1) == .none)
    }

    @Test(
        "what a slow connection needs half a second for is shared, and no less",
        arguments: [50_000, 200_000, 800_000])
    func slowRest(rate: Int64) {
        var table = SegmentTable(total: rate * 55 / 100)
        table.put(0, on: 0..<table.total)
        table.move(0, to: 0, rate: Double(rate))
        // 32 KiB are too little, however long they take.
        let half: SegmentTable.Work = rate < 100_000 ? .none : .range((table.total / 2)..<table.total)
        #expect(next(&table, 1, rate: Double(rate)) == half)
        table = SegmentTable(total: rate * 45 / 100)
        table.put(0, on: 0..<table.total)
        table.move(0, to: 0, rate: Double(rate))
        #expect(next(&table, 1, rate: Double(rate)) == .none)
    }

    @Test("a connection that is four times as fast takes over the whole rest, whatever was gathered of it")
    func takeOver() {
        var table = SegmentTable(total: 4 * Self.mebi)
        table.put(0, on: 0..<table.total)
        table.move(0, to: Self.mebi, rate: 1e5)
        #expect(next(&table, 1, rate: 4e5) == .takeOver(of: 0, Self.mebi..<table.total))
        #expect(table.claims.keys.sorted() == [1])
        // A connection that is three times as fast shares the rest in proportion.
        table = SegmentTable(total: 2 * Self.mebi)
        table.put(0, on: 0..<table.total)
        table.move(0, to: 0, rate: 1e5)
        #expect(next(&table, 1, rate: 3e5) == .range((Self.mebi / 2)..<table.total))
    }

    @Test("what was brought and is not written yet is nobody else's to fetch")
    func gathered() {
        var table = SegmentTable(total: 8 * Self.mebi)
        table.put(0, on: 0..<(4 * Self.mebi))
        table.move(0, to: 200_000, rate: 1e6)
        #expect(table.unclaimed(written: ByteRangeSet()) == [(4 * Self.mebi)..<table.total])
    }

    @Test("whoever stands before bytes that nobody fetches any more goes on, as far as its answer reaches")
    func extend() {
        let quarter = 4 * Self.mebi
        var table = SegmentTable(total: 4 * quarter)
        for number in 0..<4 { table.put(number, on: (Int64(number) * quarter)..<(Int64(number + 1) * quarter)) }
        table.release(1)
        table.extend(written: ByteRangeSet()) { $0 == 0 ? 4 * quarter : nil }
        #expect(table.claims[0]?.end == 2 * quarter)
        table.release(2)
        table.release(3)
        table.extend(written: ByteRangeSet()) { _ in 2 * quarter + 5 }
        #expect(table.claims[0]?.end == 2 * quarter + 5)
        table.extend(written: ByteRangeSet()) { _ in nil }
        #expect(table.claims[0]?.end == 2 * quarter + 5)
        // A claim is not extended over written bytes.
        table.extend(written: ByteRangeSet([(3 * quarter)..<(3 * quarter + 1)])) { _ in .max }
        #expect(table.claims[0]?.end == 3 * quarter)
    }

    // MARK: Invariants

    /// A simulation of connections that start, receive bytes, break and are replaced, as in a run, with checks of the
    /// invariants.
    private struct Simulation {
        struct Connection {
            var position: Int64
            var end: Int64
            /// The end of its response, which may be beyond its claim.
            var reach: Int64
            /// The offset up to which its bytes are written.
            var flushed: Int64
            let rate: Double
        }

        var table: SegmentTable
        var written: ByteRangeSet
        var brought = ByteRangeSet()
        var connections: [Int: Connection] = [:]
        var last = 0
        var generator: SeededGenerator
        let setUp: Double
        var failure: String?

        init(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            let total = Int64.random(in: 1...(seed.isMultiple(of: 3) ? 300 << 20 : 20 << 20), using: &generator)
            table = SegmentTable(total: total)
            // The ranges written in an earlier life.
            written = ByteRangeSet(
                (0..<Int.random(in: 0...5, using: &generator)).map { _ in
                    let start = Int64.random(in: 0..<total, using: &generator)
                    return start..<Int64.random(in: start...total, using: &generator)
                })
            setUp = [0, 0.05, 0.5].randomElement(using: &generator) ?? 0
            self.generator = generator
        }

        mutating func run() -> String? {
            var steps = 0
            while failure == nil, written.count < table.total {
                steps += 1
                if steps > 200_000 { return "no end: \(written.count) of \(table.total)" }
                if connections.isEmpty { add() }
                switch Int.random(in: 0..<20, using: &generator) {
                case 0 where connections.count < 8: add()
                case 1: lose()
                case 2: again()
                case 3: flush()
                default: bring()
                }
                check()
            }
            return failure
        }

        private mutating func pick() -> Int? { connections.keys.sorted().randomElement(using: &generator) }

        private mutating func add() {
            last += 1
            // A quarter of the connections is far slower than the others.
            let rate =
                Int.random(in: 0..<4, using: &generator) == 0 ? 1e5 : Double.random(in: 1e6...3e6, using: &generator)
            ask(last, rate: rate, isNew: true)
        }

        private mutating func ask(_ number: Int, rate: Double, isNew: Bool = false) {
            for (number, connection) in connections {
                table.move(number, to: connection.position, rate: connection.rate)
            }
            let work = table.next(
                for: number, written: written, connections: max(connections.count, 4), rate: isNew ? 0 : rate,
                setUp: setUp)
            connections[number] = nil
            keepToClaims()
            let range: Range<Int64>
            switch work {
            case .none:
                if connections.isEmpty { failure = "nothing to do, and nobody does it" }
                return
            case .range(let given): range = given
            case .takeOver(let victim, let given):
                flush(victim)
                connections[victim] = nil
                range = given
            }
            if range.isEmpty { failure = "an empty range" }
            // A response may contain more than was requested.
            let reach = Bool.random(using: &generator) ? range.upperBound : table.total
            connections[number] = Connection(
                position: range.lowerBound, end: range.upperBound, reach: reach, flushed: range.lowerBound, rate: rate)
        }

        private mutating func keepToClaims() {
            for (number, claim) in table.claims {
                guard let connection = connections[number] else { continue }
                if claim.end < connection.position { failure = "\(number) was cut before where it stands" }
                connections[number]?.end = claim.end
            }
        }

        private mutating func bring() {
            guard let number = pick(), let connection = connections[number] else { return }
            let most = min(connection.end - connection.position, Int64(connection.rate / 2))
            if most > 0 {
                let end = connection.position + Int64.random(in: 1...most, using: &generator)
                let before = brought.count
                brought.insert(connection.position..<end)
                if brought.count - before != end - connection.position { failure = "bytes came twice" }
                connections[number]?.position = end
            }
            guard let now = connections[number], now.position >= now.end else { return }
            table.release(number)
            flush(number)
            if written.count < table.total { ask(number, rate: now.rate) } else { connections[number] = nil }
        }

        private mutating func flush() { if let number = pick() { flush(number) } }

        private mutating func flush(_ number: Int) {
            guard let connection = connections[number] else { return }
            written.insert(connection.flushed..<connection.position)
            connections[number]?.flushed = connection.position
        }

        /// Removes a connection.
        private mutating func lose() {
            guard let number = pick() else { return }
            flush(number)
            table.release(number)
            connections[number] = nil
            for (number, connection) in connections {
                table.move(number, to: connection.position, rate: connection.rate)
            }
            table.extend(written: written) { connections[$0]?.reach }
            keepToClaims()
        }

        /// Requests the rest of a claim again.
        private mutating func again() {
            guard let number = pick(), let connection = connections[number] else { return }
            flush(number)
            connections[number]?.reach = connection.end
        }

        private mutating func check() {
            if failure != nil { return }
            var taken: [Range<Int64>] = []
            for (number, claim) in table.claims {
                guard claim.start >= 0, claim.start <= claim.position || connections[number] == nil,
                    claim.end <= table.total, claim.start <= claim.end
                else { return failure = "claim \(claim) of \(table.total)" }
                if connections[number] == nil { failure = "a claim without a connection" }
                taken.append(claim.start..<claim.end)
            }
            taken.sort { $0.lowerBound < $1.lowerBound }
            for (one, other) in zip(taken, taken.dropFirst()) where one.upperBound > other.lowerBound {
                failure = "claims overlap: \(one), \(other)"
            }
            for (number, connection) in connections {
                guard table.claims[number]?.end == connection.end else {
                    return failure = "\(number) goes to \(connection.end), and claims \(table.claims[number] as Any)"
                }
                let rest = connection.position..<connection.end
                if written.gaps(in: rest).reduce(0, { $0 + $1.count }) != rest.count {
                    failure = "\(number) is to fetch what is written"
                }
            }
            var all = ByteRangeSet(taken + table.unclaimed(written: written))
            for range in written.ranges { all.insert(range) }
            if all != ByteRangeSet([0..<table.total]) {
                failure = "nobody is responsible for \(all.gaps(in: 0..<table.total))"
            }
        }
    }

    @Test(
        "claims never overlap, cover all that is missing, and every byte comes once, whatever connections do",
        arguments: 1...200 as ClosedRange<UInt64>)
    func anything(seed: UInt64) {
        var simulation = Simulation(seed: seed)
        let failure = simulation.run()
        #expect(failure == nil)
        #expect(simulation.written == ByteRangeSet([0..<simulation.table.total]))
    }
}
