import TaskModel
import Testing

@testable import dlctl

@Suite("Totals of a wait") struct WaitTallyTests {
    @Test("the bytes of running and ended tasks add up, and the size is known when all sizes are")
    func totals() {
        var tally = WaitTally(tasks: 3)
        tally.record(sampleTask(1, done: 10, of: 100), isNew: false)
        tally.record(sampleTask(2, done: 0), isNew: false)
        #expect(tally.total(rate: 5).bytesTotal == nil)
        tally.record(sampleTask(2, done: 20, of: 50), isNew: false)
        tally.record(sampleTask(1, done: 30, of: 100), isNew: false)
        #expect(tally.total(rate: 5).bytesTotal == nil, "the third task has not been seen")
        tally.end(TaskID(3), sampleTask(3, .failed, done: 5, of: 40), isCompleted: false, isNew: false)
        var total = tally.total(rate: 5)
        #expect(total.bytes == 55 && total.bytesTotal == 190 && total.eta == 27 && total.ended == 1)
        tally.end(TaskID(1), sampleTask(1, .completed, done: 100, of: 100), isCompleted: true, isNew: false)
        tally.end(TaskID(2), nil, isCompleted: false, isNew: false)
        total = tally.total(rate: 0)
        #expect(total.completed == 1 && total.others.words == ", 1 failed, 1 removed" && total.eta == nil)
        #expect(tally.completedBytes == 100)
        #expect(tally.fetched == 90, "ten bytes were there before")
    }
}
