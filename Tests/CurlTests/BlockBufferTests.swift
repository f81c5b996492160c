import Testing

@testable import Curl

@Suite("The large blocks of a fast body")
struct BlockBufferTests {
    private let pool = BlockPool()
    private let now = MonotonicTime(nanoseconds: 1)
    private static let size = BlockPool.blockSize

    /// Appends zeros in pieces of `length` bytes until the block has to be written.
    ///
    /// - Returns: the number of bytes in the block.
    private func fill(_ block: inout BlockBuffer, from position: Int64, of length: Int) -> Int {
        let piece = [UInt8](repeating: 0, count: length)
        var end = position
        piece.withUnsafeBytes { piece in
            while !block.isFull {
                let taken = block.append(piece, at: end, now: now)
                guard taken > 0 else { return }
                end += Int64(taken)
            }
        }
        return block.count
    }

    @Test("blocks end at multiples of their size in the file", arguments: [0, 1, 4096, 1 << 20, (1 << 20) + 5])
    func alignment(position: Int64) {
        var block = BlockBuffer(pool: pool)
        block.begin()
        let first = fill(&block, from: position, of: 10_000)
        #expect((position + Int64(first)) % Int64(Self.size) == 0)
        block.release()
        let second = fill(&block, from: position + Int64(first), of: 10_000)
        #expect(second == Self.size)
        block.end()
    }

    @Test("a block that is not full after a quarter of a second has to be written; a new one may be filled then")
    func time() {
        var block = BlockBuffer(pool: pool)
        block.begin()
        let piece = [UInt8](repeating: 1, count: 100)
        let counts = piece.withUnsafeBytes { piece in
            let begin = block.append(piece, at: 0, now: now)
            let soon = block.append(piece, at: 100, now: now.advanced(milliseconds: 249))
            let late = block.append(piece, at: 200, now: now.advanced(milliseconds: 250))
            return [begin, soon, late]
        }
        #expect(counts == [100, 100, 0] && block.count == 200)
        block.release()
        let again = piece.withUnsafeBytes { block.append($0, at: 200, now: now.advanced(milliseconds: 300)) }
        #expect(again == 100)
        block.end()
    }

    @Test("without a free block nothing is taken")
    func limit() throws {
        pool.begin()
        let taken = (0..<BlockPool.limit).compactMap { _ in pool.acquire() }
        #expect(taken.count == BlockPool.limit && pool.acquire() == nil)
        var block = BlockBuffer(pool: pool)
        block.begin()
        let count = fill(&block, from: 0, of: 100)
        #expect(count == 0)
        pool.release(try #require(taken.first))
        let next = fill(&block, from: 0, of: 100)
        #expect(next == Self.size)
        block.end()
        for one in taken.dropFirst() { pool.release(one) }
        pool.end()
        #expect(pool.freeCount == 0)
    }

    @Test("free blocks are kept while a body uses blocks, and no longer")
    func keeping() {
        var block = BlockBuffer(pool: pool)
        block.begin()
        _ = fill(&block, from: 0, of: 100_000)
        guard let queued = block.detachMemory() else {
            Issue.record("there is no block")
            return
        }
        _ = fill(&block, from: 0, of: 100_000)
        block.release()
        #expect(pool.freeCount == 1)
        block.end()
        #expect(pool.freeCount == 0)
        // One that was still to be written.
        pool.release(queued)
        #expect(pool.freeCount == 0)
    }
}
