import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Transfer

@Suite("Numbered names")
struct NumberedNamesTests {
    private static func name(_ wanted: String, _ number: Int) -> String { "\(wanted) (\(number))" }

    @Test(
        "the first free number is found, in about twice as many looks as its logarithm",
        arguments: [
            0, 1, 2, 3, 4, 7, 8, 9, 2_999, 10_000, 10_001, 1_000_000,
        ])
    func first(count: Int) {
        var looks = 0
        let free = NumberedNames.free { number in
            looks += 1
            return number <= count
        }
        #expect(free == count + 1)
        #expect(looks <= 2 * (Int.bitWidth - (count + 1).leadingZeroBitCount) + 1, "\(looks)")
    }

    @Test("where files were deleted, the number is free, has a neighbour below, and is the same each time")
    func gaps() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<500 {
            let taken = Set((1...60).filter { _ in Int.random(in: 0..<4, using: &generator) > 0 })
            let free = NumberedNames.free { taken.contains($0) }
            #expect(free.map { !taken.contains($0) && ($0 == 1 || taken.contains($0 - 1)) } == true, "\(taken)")
            #expect(free == NumberedNames.free { taken.contains($0) })
        }
    }

    @Test("a number that somebody else was quicker with is passed over, whatever the directory says")
    func lost() {
        #expect(NumberedNames.free(above: 5) { $0 <= 3 } == 6)
        #expect(NumberedNames.free(above: 5) { $0 <= 8 } == 9)
    }

    @Test("a file system in which every name is taken is not asked for ever")
    func everythingTaken() {
        var looks = 0
        let free = NumberedNames.free { _ in
            looks += 1
            return true
        }
        #expect(free == nil && looks < 100)
    }

    @Test("what an earlier life published is found by its owner among thousands of others, until it is gone")
    func earlierLife() throws {
        let place = try Place()
        for number in 1...2_000 {
            let name = Self.name("f", number)
            guard number % 500 == 0 else {
                try place.temporary.write("x", to: name)
                continue
            }
            let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "store-\(number)-a")
            try Array("abc".utf8).withUnsafeBytes { try part.write($0, at: 0) }
            #expect(rename(place.temporary.file(Place.partName), place.temporary.file(name)) == 0)
        }
        let names = EarlierNames()
        func find(_ owner: String) -> String? {
            names.find(owner, wanting: "f", in: place.directory, numbering: Self.name)?.name
        }
        #expect(find("store-1500-a") == Self.name("f", 1_500))
        #expect(find("store-1500-b") == nil)
        #expect(find("store-2000-a") == Self.name("f", 2_000))
        #expect(unlink(place.temporary.file(Self.name("f", 1_500))) == 0)
        #expect(find("store-1500-a") == nil)
        // A file published since is found too.
        let part = try PartFile.make(in: place.directory, name: Place.partName, owner: "store-9-a")
        #expect(rename(place.temporary.file(Place.partName), place.temporary.file(Self.name("f", 2_001))) == 0)
        #expect(part.unsynced == 0 && find("store-9-a") == Self.name("f", 2_001))
    }
}
