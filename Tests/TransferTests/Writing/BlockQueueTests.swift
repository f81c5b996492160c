import Curl
import Testing

@testable import Transfer

struct BlockQueueTests {
    private static let size = BodyBuffer.largestSize

    @Test("receiving pauses while the queue has many blocks or many bytes")
    func full() {
        var queue = BlockQueue()
        #expect(queue.isEmpty && !queue.isFull)
        for _ in 0..<BlockQueue.limit { queue.add(Self.size) }
        #expect(queue.isFull)
        queue.remove(Self.size, after: 500, failed: false)
        #expect(!queue.isFull && queue.count == BlockQueue.limit - 1)
        queue = BlockQueue()
        for _ in 1..<BlockQueue.byteLimit / BlockPool.blockSize { queue.add(BlockPool.blockSize) }
        #expect(!queue.isFull)
        queue.add(BlockPool.blockSize)
        #expect(queue.isFull)
        queue.remove(BlockPool.blockSize, after: 1, failed: true)
        #expect(!queue.isFull)
    }

    @Test("a slow disk is fast again after enough quick writes in a row, once nothing is queued")
    func recovery() {
        var queue = BlockQueue()
        queue.diskBecameSlow()
        func write(_ count: Int, after milliseconds: Int64 = BlockQueue.quickWrite) {
            for _ in 0..<count {
                queue.add(Self.size)
                queue.remove(Self.size, after: milliseconds, failed: false)
            }
        }
        write(BlockQueue.recovery - 1)
        write(1, after: BlockQueue.quickWrite + 1)
        write(BlockQueue.recovery - 1)
        #expect(queue.isDiskSlow, "a slow write starts the count anew")
        for _ in 0..<2 { queue.add(Self.size) }
        queue.remove(Self.size, after: 0, failed: false)
        #expect(queue.isDiskSlow, "a block is still queued")
        queue.remove(Self.size, after: 0, failed: false)
        #expect(!queue.isDiskSlow)
    }

    @Test("a failed write is not a sign of a fast disk")
    func failure() {
        var queue = BlockQueue()
        queue.diskBecameSlow()
        for _ in 0..<BlockQueue.recovery * 2 {
            queue.add(Self.size)
            queue.remove(Self.size, after: 0, failed: true)
        }
        #expect(queue.isEmpty && queue.isDiskSlow)
    }
}
