import TestSupport
import Testing

@testable import Transfer

@Suite("What is compared where nothing else tells versions apart")
struct OverlapTests {
    private let resource = Resource(size: 24 << 20)

    private func start(_ overlap: Overlap = Overlap(), before front: Int64, of resource: Resource) throws -> Int64 {
        try overlap.start(before: front) { (space: UnsafeMutableRawBufferPointer, offset: Int64) in
            resource.fill(space, from: offset)
            return space.count
        }
    }

    @Test("it is 256 KiB, 64 KiB of a shorter part, and the whole where there is no more than that")
    func plain() throws {
        #expect(try start(before: 1 << 20, of: resource) == 768 << 10)
        #expect(try start(before: 256 << 10, of: resource) == 192 << 10)
        #expect(try start(before: 65 << 10, of: resource) == 1 << 10)
        #expect(try start(before: 64 << 10, of: resource) == 0)
        #expect(try start(before: 1, of: resource) == 0)
        #expect(try start(.brief, before: 8 << 10, of: resource) == 0)
    }

    @Test("it goes back as far as there are bytes that tell versions apart, and not without an end")
    func zeros() throws {
        var blank = resource
        blank.zeros = 4 << 20..<8 << 20
        #expect(try start(before: 8 << 20, of: blank) == 4 << 20 - 256 << 10)
        #expect(try start(before: 8 << 20 + 1, of: blank) < 8 << 20)
        blank.zeros = 1 << 20..<24 << 20
        #expect(try start(before: 20 << 20, of: blank) == 0)
    }

    @Test("one sector again and again tells nothing", arguments: [1, 3, 512, 4096])
    func sectors(period: Int) throws {
        let start = try Overlap().start(before: 2 << 20) { (space: UnsafeMutableRawBufferPointer, offset: Int64) in
            for index in space.indices { space[index] = UInt8((Int(offset) + index) % period & 0xFF) }
            return space.count
        }
        #expect(start == 0)
    }

    @Test("it shrinks once")
    func shrinks() throws {
        var overlap = Overlap()
        let (first, second) = (overlap.shrink(), overlap.shrink())
        #expect(first && !second)
        #expect(try start(overlap, before: 1 << 20, of: resource) == 960 << 10)
    }

    @Test("what cannot be read is no reason to go on")
    func unreadable() throws {
        #expect(try Overlap().start(before: 1 << 20) { _, _ in 0 } == 0)
    }
}
