import TaskModel
import Testing

@testable import TaskQueue

@Suite("The order of due checkpoints")
struct CheckpointQueueTests {
    private var queue = CheckpointQueue()

    @Test("the task whose last checkpoint is oldest comes first")
    mutating func order() {
        queue.set([(TaskID(rawValue: 1), 20), (TaskID(rawValue: 2), 10), (TaskID(rawValue: 3), 30)])
        #expect([queue.next(), queue.next(), queue.next(), queue.next()].map { $0?.rawValue } == [2, 1, 3, nil])
    }

    @Test("no due checkpoint is started beyond the limit, and one that ends makes room")
    mutating func limit() {
        for _ in 0..<CheckpointQueue.limit { queue.began() }
        queue.set([(TaskID(rawValue: 1), 0)])
        #expect(queue.next() == nil)
        queue.ended()
        #expect(queue.next()?.rawValue == 1)
        #expect(queue.underWay == CheckpointQueue.limit - 1)
    }

    @Test("a newer list replaces the older one")
    mutating func replaced() {
        queue.set([(TaskID(rawValue: 1), 0)])
        queue.set([])
        #expect(queue.next() == nil)
    }
}
