import Testing

@testable import Transfer

struct SlowDiskQueueTests {
    @Test("receiving pauses while the queue is full")
    func full() {
        var queue = SlowDiskQueue()
        #expect(queue.isEmpty && !queue.isFull)
        for _ in 0..<SlowDiskQueue.limit { queue.add() }
        #expect(queue.isFull)
        let isFast = queue.remove(after: 500, failed: false)
        #expect(!isFast)
        #expect(!queue.isFull && queue.count == SlowDiskQueue.limit - 1)
    }

    @Test("the loop writes directly again after enough quick writes in a row, once nothing is queued")
    func recovery() {
        var queue = SlowDiskQueue()
        func quick(_ count: Int) -> [Bool] {
            (0..<count).map { _ in
                queue.add()
                return queue.remove(after: SlowDiskQueue.quickWrite, failed: false)
            }
        }
        var results = quick(SlowDiskQueue.recovery - 1)
        #expect(!results.contains(true))
        queue.add()
        let isFastAfterSlow = queue.remove(after: SlowDiskQueue.quickWrite + 1, failed: false)
        #expect(!isFastAfterSlow, "a slow write starts the count anew")
        results = quick(SlowDiskQueue.recovery - 1)
        #expect(!results.contains(true))
        queue.add()
        queue.add()
        let isFastWhileQueued = queue.remove(after: 0, failed: false)
        #expect(!isFastWhileQueued, "a block is still queued")
        let isFastAtLast = queue.remove(after: 0, failed: false)
        #expect(isFastAtLast)
    }

    @Test("a failed write is not a sign of a fast disk")
    func failure() {
        var queue = SlowDiskQueue()
        for _ in 0..<SlowDiskQueue.recovery * 2 {
            queue.add()
            let isFastAfterFailure = queue.remove(after: 0, failed: true)
            #expect(!isFastAfterFailure)
        }
        #expect(queue.isEmpty)
    }
}
