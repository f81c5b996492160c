import TaskModel
import Testing

@testable import dlctl

@Suite("The summary of a wait") struct WaitSummaryTests {
    @Test("it tells how many, bytes, time and mean rate")
    func completed() {
        var tally = WaitTally(tasks: 2)
        for id in [Int64(1), 2] {
            tally.end(
                TaskID(id), sampleTask(id, .completed, done: 50 << 20, of: 50 << 20), isCompleted: true, isNew: true)
        }
        let summary = WaitSummary(tally: tally, tasks: 2, elapsed: 10_000, others: [], areOthersShown: false)
        #expect(summary.lines() == ["2 of 2 tasks completed: 100 MiB in 10 s, 10.0 MiB/s"])
    }

    @Test("tasks that did not complete are named with what to do, and many are counted")
    func failed() {
        var tally = WaitTally(tasks: 12)
        let error = TaskFailure(code: .http(404), message: "not\u{1B} found")
        let tasks = (1...Int64(12)).map { sampleTask($0, .failed, error: error) }
        tally.end(TaskID(1), sampleTask(1, .failed, done: 9, of: 10), isCompleted: false, isNew: true)
        for task in tasks.dropFirst() { tally.end(task.id, task, isCompleted: false, isNew: true) }
        func lines(_ count: Int, shown: Bool) -> [String] {
            WaitSummary(
                tally: tally, tasks: 12, elapsed: 10, others: tasks.prefix(count).map { ($0.id, $0) },
                areOthersShown: shown
            ).lines()
        }
        #expect(
            lines(1, shown: false) == [
                "0 of 12 tasks completed, 12 failed", "  a.iso: task 1 failed: http-404: not\\u{1B} found",
                "check the URL (dlctl set 1 --url URL), or try again: dlctl retry 1",
            ])
        #expect(
            lines(2, shown: true) == [
                "0 of 12 tasks completed, 12 failed",
                "check the URL (dlctl set ID --url URL), or try again: dlctl retry 1 2",
            ])
        #expect(lines(12, shown: false).count == 13)
        #expect(lines(12, shown: false).contains { $0.contains("and 2 more") })
    }

    @Test("each cause has advice of its own, and a cancelled task is retried as it is")
    func causes() {
        let tasks = [
            sampleTask(1, .failed, error: TaskFailure(code: .tooLarge, message: "")), sampleTask(2, .cancelled),
            sampleTask(3, .failed, error: TaskFailure(code: .tooLarge, message: "")),
        ]
        let summary = WaitSummary(
            tally: WaitTally(tasks: 3), tasks: 3, elapsed: 10, others: tasks.map { ($0.id, $0) }, areOthersShown: true)
        let advice = summary.remedies()
        #expect(advice.count == 2 && advice.last == "to try again: dlctl retry 2")
        #expect(advice.first?.contains("dlctl set ID --max-size SIZE") == true)
        #expect(advice.first?.hasSuffix("then: dlctl retry 1 3") == true)
    }
}
