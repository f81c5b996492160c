import TaskModel
import TaskStore
import Testing

@testable import TaskQueue

@Suite("Which results of runs are reported")
struct OutcomeNoticesTests {
    private var notices = OutcomeNotices()

    private static func record(owner: UInt32 = 1, error: TaskFailure? = nil) -> TaskRecord {
        var record = TaskRecord(
            id: TaskID(1), specification: TaskSpecification(kind: .download, url: "http://h/a"), owner: owner,
            lifecycle: TaskLifecycle(), createdAt: 0)
        record.error = error
        return record
    }

    private static let failure = TaskFailure(code: .io, message: "m", httpStatus: nil)

    private static func outcome(_ reason: TaskReason?, isFailure: Bool = true) throws -> TaskConclusion {
        var lifecycle = TaskLifecycle()
        if let reason {
            try lifecycle.apply(.start)
            try lifecycle.apply(.park(reason, until: 1))
        }
        return TaskConclusion(lifecycle: lifecycle, attempts: 1, failures: 1, error: isFailure ? failure : nil)
    }

    @Test("a failure of its own is reported each time, a success never")
    mutating func ordinary() throws {
        #expect(notices.isNews(try Self.outcome(.retry), of: Self.record()) == true)
        #expect(notices.isNews(try Self.outcome(.retry), of: Self.record()) == true)
        #expect(notices.isNews(try Self.outcome(nil, isFailure: false), of: Self.record()) == false)
    }

    @Test("an exhausted quota is reported once per owner until there is room")
    mutating func quota() throws {
        let outcome = try Self.outcome(.quota)
        #expect(notices.isNews(outcome, of: Self.record()) == true)
        #expect(notices.isNews(outcome, of: Self.record()) == false)
        #expect(notices.isNews(outcome, of: Self.record(owner: 2)) == true)
        notices.quotaHasRoom(of: 1)
        #expect(notices.isNews(outcome, of: Self.record()) == true)
        #expect(notices.isNews(outcome, of: Self.record(owner: 2)) == false)
        notices.quotaHasRoom(of: nil)
        #expect(notices.isNews(outcome, of: Self.record(owner: 2)) == true)
    }

    @Test("a disk problem is reported once per task")
    mutating func disk() throws {
        for reason in [TaskReason.disk, .diskFull] {
            #expect(notices.isNews(try Self.outcome(reason), of: Self.record()) == true)
            #expect(notices.isNews(try Self.outcome(reason), of: Self.record(error: Self.failure)) == false)
        }
    }

    @Test("an unavailable network is reported once until a task completes")
    mutating func network() throws {
        #expect(notices.isNews(try Self.outcome(.network), of: Self.record()) == true)
        #expect(notices.isNews(try Self.outcome(.network), of: Self.record()) == false)
        notices.taskCompleted()
        #expect(notices.isNews(try Self.outcome(.network), of: Self.record()) == true)
    }
}
