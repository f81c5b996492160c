import FoundationEssentials
import TestSupport
import Testing

@testable import Transfer

@Suite("Sets of byte ranges")
struct ByteRangeSetTests {
    @Test("after any insertions the set holds what a map of bits holds", arguments: 0..<20 as Range<UInt64>)
    func againstBitmap(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var set = ByteRangeSet()
        var bits = [Bool](repeating: false, count: 200)
        for _ in 0..<60 {
            let start = Int.random(in: 0..<200, using: &generator)
            let end = min(200, start + Int.random(in: 0...20, using: &generator))
            set.insert(Int64(start)..<Int64(end))
            for index in start..<end { bits[index] = true }
            #expect(set.ranges == Self.ranges(of: bits))
            #expect(set.count == Int64(bits.count { $0 }))
            #expect(set.contiguousEnd == Int64(bits.firstIndex(of: false) ?? 200))
        }
    }

    private static func ranges(of bits: [Bool]) -> [Range<Int64>] {
        var found: [Range<Int64>] = []
        for (index, bit) in bits.enumerated() where bit {
            let place = Int64(index)
            if let last = found.last, last.upperBound == place {
                found[found.count - 1] = last.lowerBound..<(place + 1)
            } else {
                found.append(place..<(place + 1))
            }
        }
        return found
    }

    @Test("nothing is there of a set whose first range begins later")
    func contiguousEnd() {
        #expect(ByteRangeSet().contiguousEnd == 0)
        #expect(ByteRangeSet([5..<10]).contiguousEnd == 0)
        #expect(ByteRangeSet([5..<10, 0..<3]).contiguousEnd == 3)
        #expect(ByteRangeSet([5..<10, 0..<5]).contiguousEnd == 10)
    }

    @Test("it is written as one flat list, and read back the same")
    func coding() throws {
        let set = ByteRangeSet([0..<10, 20..<30])
        let text = try JSONEncoder().encode(set)
        #expect(String(decoding: text, as: UTF8.self) == "[0,10,20,30]")
        #expect(try JSONDecoder().decode(ByteRangeSet.self, from: text) == set)
    }

    @Test(
        "numbers that make no ranges are left out, and never end the process",
        arguments: ["[]", "[5]", "[-5,10]", "[10,5]", "[3,3]", "[9223372036854775807,-9223372036854775808]"])
    func garbage(text: String) throws {
        #expect(try JSONDecoder().decode(ByteRangeSet.self, from: Data(text.utf8)).ranges.isEmpty)
    }
}
