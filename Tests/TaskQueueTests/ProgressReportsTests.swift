import TaskModel
import Testing

@testable import TaskQueue

@Suite("Reports of progress")
struct ProgressReportsTests {
    private func status(_ id: Int64, _ bytes: Int64) -> TaskStatus {
        var record = TaskRecord(
            id: TaskID(id), specification: TaskSpecification(url: "https://a.example/f"), owner: 1000,
            lifecycle: TaskLifecycle(), createdAt: 9)
        record.bytesDone = bytes
        return TaskStatus(record)
    }

    @Test("a task is reported when its values change, at most four times a second")
    func changes() {
        var reports = ProgressReports()
        #expect(reports.isDue(0))
        reports.set([status(1, 5), status(2, 0)], now: 0)
        #expect(reports.take(1, after: 3, at: 7).map(\.id) == [TaskID(1)])
        #expect(!reports.isDue(1_000), "one is still to be reported")
        let second = reports.take(9, after: 3, at: 7)
        #expect(second.map(\.id) == [TaskID(2)] && second.first?.sequence == 3 && second.first?.type == .progress)
        #expect(!reports.isDue(249) && reports.isDue(250))
        #expect(reports.pause(100, hasInquired: true) == 150)
        reports.set([status(1, 6), status(2, 0)], now: 250)
        #expect(reports.take(9, after: 3, at: 7).map(\.bytesDone) == [6])
    }

    @Test("without a running task there is another inquiry only if an event came after the last one")
    func idle() {
        var reports = ProgressReports()
        reports.set([], now: 1_000)
        #expect(reports.pause(1_000, hasInquired: true) == nil)
        #expect(reports.pause(1_010, hasInquired: false) == 240, "a task may have started since")
    }
}
