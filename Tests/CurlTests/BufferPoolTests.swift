import Testing

@testable import Curl

@Suite("Buffers")
struct BufferPoolTests {
    @Test("a buffer that was given back is the next to be taken; two that are out are two")
    func reuse() {
        let pool = BufferPool()
        let first = pool.acquire()
        let second = pool.acquire()
        #expect(first.count == BufferPool.bufferSize && second.count == BufferPool.bufferSize)
        #expect(first.baseAddress != second.baseAddress)
        pool.release(first)
        #expect(pool.acquire().baseAddress == first.baseAddress)
        pool.release(first)
        pool.release(second)
    }

    @Test("more buffers than are kept can be out at once and come back")
    func many() {
        let pool = BufferPool()
        let buffers = (0..<100).map { _ in pool.acquire() }
        #expect(Set(buffers.map { UInt(bitPattern: $0.baseAddress) }).count == 100)
        for buffer in buffers { pool.release(buffer) }
        let again = pool.acquire()
        again[0] = 1
        again[again.count - 1] = 1
        pool.release(again)
    }

    @Test("a buffer has room for what it was asked for, and no more than four times that")
    func sizes() {
        let pool = BufferPool()
        for count in [1, 4096, 4097, 16_384, 16_385, 65_536, 65_537, 131_073, 262_144] {
            let buffer = pool.acquire(count)
            #expect(buffer.count >= count && buffer.count <= max(4 * count, BufferPool.smallestSize))
            pool.release(buffer)
            #expect(pool.acquire(count).baseAddress == buffer.baseAddress)
            pool.release(buffer)
        }
        let largest = pool.acquire(10 * BufferPool.bufferSize)
        #expect(largest.count == BufferPool.bufferSize)
        pool.release(largest)
    }

    @Test("buffers that many needed at once go once fewer do; the one that is in use stays")
    func fewer() {
        let pool = BufferPool()
        let buffers = (0..<16).map { _ in pool.acquire() }
        for buffer in buffers { pool.release(buffer) }
        #expect(pool.freeCount == 16)
        // The turn in which all buffers were in use, and one in which a single buffer was.
        var last: UnsafeMutableRawPointer?
        for _ in 0..<2 * BufferPool.turn {
            let buffer = pool.acquire()
            last = buffer.baseAddress
            pool.release(buffer)
        }
        #expect(pool.freeCount == 1)
        let kept = pool.acquire()
        #expect(kept.baseAddress == last)
        pool.release(kept)
    }

    @Test("buffers that are needed again and again stay")
    func steady() {
        let pool = BufferPool()
        let addresses = Set(
            (0..<8).map { _ in pool.acquire() }.map { buffer in
                defer { pool.release(buffer) }
                return UInt(bitPattern: buffer.baseAddress)
            })
        for _ in 0..<BufferPool.turn {
            let buffers = (0..<8).map { _ in pool.acquire() }
            #expect(Set(buffers.map { UInt(bitPattern: $0.baseAddress) }) == addresses)
            for buffer in buffers { pool.release(buffer) }
        }
        #expect(pool.freeCount == 8)
    }

    @Test("thousands of the smallest buffers come back without their memory, and are taken again")
    func pages() throws {
        let pool = BufferPool()
        let buffers = (0..<3_000).map { _ in pool.acquire(1) }
        for (number, buffer) in buffers.enumerated() {
            _ = buffer.initializeMemory(as: UInt8.self, repeating: UInt8(number % 251))
        }
        #expect(buffers.enumerated().allSatisfy { number, buffer in buffer[4_095] == UInt8(number % 251) })
        for buffer in buffers { pool.release(buffer) }
        #expect(pool.freeCount < 300)
        // A page beyond those that are kept was given back to the system, and reads as zeros.
        #expect(buffers.count { $0[0] == 0 && $0[4_095] == 0 } > 2_600)
        let again = Set((0..<3_000).map { _ in UInt(bitPattern: pool.acquire(1).baseAddress) })
        #expect(again == Set(buffers.map { UInt(bitPattern: $0.baseAddress) }))
    }

    @Test("a buffer that another thread returned is taken again")
    func abandoned() async throws {
        // One thread after the other uses them.
        nonisolated(unsafe) let pool = PagePool()
        nonisolated(unsafe) let first = try #require(pool.acquire())
        let address = UInt(bitPattern: first.baseAddress)
        await Task.detached { pool.abandon(first) }.value
        var others: [UInt] = []
        for _ in 0..<PagePool.groupSize / PagePool.pageSize {
            others.append(UInt(bitPattern: pool.acquire()?.baseAddress))
        }
        #expect(others.contains(address) && Set(others).count == others.count)
    }
}
