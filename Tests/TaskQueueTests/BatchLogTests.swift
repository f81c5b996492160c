import Logging
import TaskModel
import Testing

@testable import TaskQueue

@Suite("The log entry about the end of a batch")
struct BatchLogTests {
    @Test("the end of a batch is told with its numbers")
    func entry() throws {
        var event = TaskEvent(sequence: 1, at: 0, type: .batchFinished)
        (event.batch, event.owner) = ("nightly", 1000)
        event.totals = BatchResult(completed: 3, failed: 1, cancelled: 0, bytesDone: 9)
        let entry = try #require(BatchLog.entry(event))
        #expect(
            entry.text
                == "batch nightly finished: 3 completed, 1 failed; dlctl list --batch nightly --state failed")
        #expect(
            entry.metadata == ["event": "batch-finished", "batch": "nightly", "owner": "1000", "bytes": "9"])
        #expect(BatchLog.entry(TaskEvent(sequence: 1, at: 0, type: .completed)) == nil)
    }
}
