import ControlClient
import ControlProtocol
import Glibc
import TaskModel
import Testing

@testable import dlctl

/// A daemon in memory: tasks, events to come, and the behaviour when they run out.
private final class FakeSource: TaskSource {
    var deadline = Deadline.never
    var tasks: [TaskID: TaskStatus] = [:]
    var calls: [String] = []
    enum Step {
        /// The tasks change to these, and the event is delivered.
        case event(TaskEvent, [TaskID: TaskStatus])
        /// A silent wait until the deadline.
        case silence
        case loss
    }
    /// The results of the requests for the next event.
    var script: [Step] = []
    var whenSubscribed: () -> Void = {}
    /// The page, counted from 0, before which the connection ends.
    var lostPage: Int?

    func subscribe(
        after: Int64?, journal: String?, since: Milliseconds?, filter: EventFilter
    ) -> EventsSubscribeResult {
        calls.append("subscribe")
        whenSubscribed()
        return EventsSubscribeResult(last: 0, journal: "j")
    }

    func nextEvent(until deadline: Deadline) throws(ClientError) -> TaskEvent? {
        guard !script.isEmpty else { throw .malformedAnswer("waited for more events than there were") }
        switch script.removeFirst() {
        case .event(let event, let tasks):
            self.tasks = tasks
            return event
        case .silence: return nil
        case .loss: throw .connectionLost(path: "/s")
        }
    }

    func taskIfKnown(_ id: TaskID) -> TaskStatus? {
        calls.append("get \(id)")
        return tasks[id]
    }

    func page(_ parameters: TaskListParameters) -> TaskListResult { TaskListResult(tasks: [], next: nil) }

    func forEachPage(
        filter: TaskFilter?, limit: Int?, after: TaskID?, newest: Int?, _ body: ([TaskStatus]) throws -> Bool
    ) throws {
        let number = calls.count { $0 == "list" }
        calls.append("list")
        if number == lostPage { throw ClientError.connectionLost(path: "/s") }
        _ = try body(tasks.values.sorted { $0.id < $1.id })
    }

    /// Appends a step after which the task is `task`.
    func change(to task: TaskStatus, _ type: TaskEvent.Kind) {
        var tasks = self.tasks
        for case .event(_, let later) in script { tasks = later }
        tasks[task.id] = type == .removed ? nil : task
        script.append(.event(TaskEvent(sequence: 1, at: 0, type: type, id: task.id), tasks))
    }
}

@Suite struct TaskWaiterTests {
    private final class Reports {
        var failures: [Failure] = []
        var sleeps = 0
        var notes: [String] = []
    }
    private let reports = Reports()

    private func waiter(
        _ ids: [Int64], _ source: FakeSource, isFollowing: Bool = false, wantsDetails: Bool = true,
        deadline: Deadline = .never, showsEvents: Bool = false,
        connect: @escaping () throws(ClientError) -> any TaskSource = { () throws(ClientError) in
            throw .noDaemon(paths: ["/s"], errno: ENOENT)
        }
    ) -> TaskWaiter {
        let reports = reports
        return TaskWaiter(
            ids.map { TaskID($0) }, client: source, isFollowing: isFollowing, wantsDetails: wantsDetails,
            deadline: deadline, onEvent: showsEvents ? { _ in } : nil,
            connect: connect,
            sleep: { _ in reports.sleeps += 1 }, report: { reports.failures.append($0) },
            note: { reports.notes.append($0) })
    }

    @Test("a task that ends between the subscription and the look is seen")
    func noRace() throws {
        let source = FakeSource()
        source.tasks[TaskID(7)] = sampleTask(7, .active)
        source.whenSubscribed = { source.tasks[TaskID(7)] = sampleTask(7, .completed) }
        let waiter = waiter([7], source)
        try waiter.run()
        #expect(waiter.conclude())
        #expect(source.calls == ["subscribe", "get 7"])
    }

    @Test("events of tasks bring the wait to its end, whatever order they end in")
    func follows() throws {
        let source = FakeSource()
        for id in [1, 2] { source.tasks[TaskID(Int64(id))] = sampleTask(Int64(id), .queued) }
        source.change(to: sampleTask(9, .completed), .completed)
        source.change(to: sampleTask(2, .completed), .completed)
        source.change(to: sampleTask(1, .completed), .completed)
        let waiter = waiter([1, 2, 1], source)
        try waiter.run()
        #expect(waiter.settled.map(\.id) == [TaskID(1), TaskID(2)])
        #expect(waiter.conclude())
        #expect(reports.failures.isEmpty)
    }

    @Test("each task that did not complete has its line")
    func failures() throws {
        let source = FakeSource()
        source.tasks[TaskID(1)] = sampleTask(1, .failed, error: TaskFailure(code: .http(404), message: "not found"))
        source.tasks[TaskID(2)] = sampleTask(2, .active)
        source.tasks[TaskID(3)] = sampleTask(3, .paused, reason: .auth)
        source.change(to: sampleTask(2), .removed)
        let waiter = waiter([1, 2, 3], source)
        try waiter.run()
        #expect(!waiter.conclude())
        #expect(
            reports.failures.map(\.message) == [
                "task 1 failed: http-404: not found", "task 2 was removed",
                "task 3 is paused: auth; give a login: dlctl set 3 --user NAME --password-file FILE "
                    + "(or --header 'K: V')",
            ])
    }

    @Test("a task that was heard to complete has completed, though it is no longer in the history")
    func completedAndForgotten() throws {
        let source = FakeSource()
        source.tasks[TaskID(1)] = sampleTask(1, .active)
        source.tasks[TaskID(2)] = sampleTask(2, .active)
        let other = [TaskID(2): sampleTask(2, .active)]
        source.script.append(.event(TaskEvent(sequence: 1, at: 0, type: .completed, id: TaskID(1)), other))
        source.change(to: sampleTask(2, .completed), .completed)
        let waiter = waiter([1, 2], source)
        try waiter.run()
        #expect(waiter.conclude(), "\(reports.failures)")
        #expect(waiter.settled.map(\.id) == [TaskID(2)])
    }

    @Test("a task that was heard to complete has completed, though the connection ends before the last look")
    func completedAndLost() throws {
        let ids = Array(Int64(1)...300)
        let source = FakeSource()
        for id in ids { source.tasks[TaskID(id)] = sampleTask(id, .active) }
        for id in ids { source.change(to: sampleTask(id, .completed), .completed) }
        source.lostPage = 1
        let second = FakeSource()
        // The history is shorter than the number of tasks.
        for id in ids.dropFirst(100) { second.tasks[TaskID(id)] = sampleTask(id, .completed) }
        let waiter = waiter(ids, source) { () throws(ClientError) in second }
        try waiter.run()
        #expect(waiter.conclude(), "\(reports.failures.count) failures")
        #expect(waiter.settled.count == 200)
    }

    @Test("a task that its user paused is waited for")
    func pausedByUser() throws {
        let source = FakeSource()
        source.tasks[TaskID(1)] = sampleTask(1, .active)
        source.change(to: sampleTask(1, .paused, reason: .user), .paused)
        source.change(to: sampleTask(1, .completed), .completed)
        let waiter = waiter([1], source)
        try waiter.run()
        #expect(waiter.conclude())
        #expect(source.script.isEmpty)
    }

    @Test("tasks that a user paused are named once, with the command that resumes them")
    func pausedNotes() throws {
        let source = FakeSource()
        for id in 1...Int64(3) { source.tasks[TaskID(id)] = sampleTask(id, id == 3 ? .active : .paused, reason: .user) }
        source.change(to: sampleTask(3, .paused, reason: .user), .paused)
        source.change(to: sampleTask(1, .paused, reason: .user), .paused)
        for id in 1...Int64(3) { source.change(to: sampleTask(id, .completed), .completed) }
        try waiter([1, 2, 3], source).run()
        #expect(reports.notes == ["2 tasks are paused: dlctl resume 1 2", "task 3 is paused: dlctl resume 3"])
    }

    @Test("a task that begins to wait is told once with its cause, not for what the user asked, and not beside events")
    func waitingNotes() throws {
        func run(showsEvents: Bool) throws {
            let source = FakeSource()
            source.tasks = [TaskID(1): sampleTask(1, .active), TaskID(2): sampleTask(2, .waiting, reason: .scheduled)]
            for code in [503, 503, 500] {
                let error = TaskFailure(code: .http(code), message: "")
                var tasks = source.tasks
                tasks[TaskID(1)] = sampleTask(1, .waiting, reason: .retry, error: error)
                let event = TaskEvent(sequence: 1, at: 0, type: .waiting, id: TaskID(1), reason: .retry, error: error)
                source.script.append(.event(event, tasks))
            }
            for id in [1, 2] as [Int64] { source.change(to: sampleTask(id, .completed), .completed) }
            try waiter([1, 2], source, showsEvents: showsEvents).run()
        }
        try run(showsEvents: false)
        // The other cause comes within the minute for which a task is not told of again.
        #expect(reports.notes == ["task 1 is waiting: server replied 503"])
        try run(showsEvents: true)
        #expect(reports.notes.count == 1)
    }

    @Test("after a wait that was cut short, the tasks are read once more as far as the daemon answers")
    func cutShort() throws {
        let source = FakeSource()
        source.tasks = [TaskID(1): sampleTask(1, .completed), TaskID(2): sampleTask(2, .active)]
        source.script.append(.silence)
        let waiter = waiter([2, 1], source, deadline: .after(seconds: 0))
        #expect(throws: Failure.waitedTooLong) { try waiter.run() }
        #expect(waiter.known(source).map(\.state) == [.active, .completed])
        #expect(waiter.known(nil).map(\.id) == [TaskID(1)])
    }

    @Test("an unknown id ends the wait at once")
    func unknown() throws {
        let source = FakeSource()
        source.tasks[TaskID(1)] = sampleTask(1, .active)
        #expect(throws: Failure.unknown(TaskID(5))) { try waiter([1, 5], source).run() }
    }

    @Test("the deadline ends the wait with its own exit code")
    func deadline() throws {
        let source = FakeSource()
        source.tasks[TaskID(1)] = sampleTask(1, .active)
        source.script.append(.silence)
        #expect(throws: Failure.waitedTooLong) { try waiter([1], source, deadline: .after(seconds: 0)).run() }
        #expect(Failure.waitedTooLong.status == .timedOut)
    }

    @Test("the deadline holds for every answer, those on a second connection too")
    func deadlineOfAnswers() throws {
        let deadline = Deadline.after(seconds: 1_000)
        var seen: [Deadline] = []
        let first = FakeSource()
        first.tasks[TaskID(1)] = sampleTask(1, .active)
        first.script.append(.loss)
        first.whenSubscribed = { seen.append(first.deadline) }
        let second = FakeSource()
        second.tasks[TaskID(1)] = sampleTask(1, .completed)
        second.whenSubscribed = { seen.append(second.deadline) }
        try waiter([1], first, deadline: deadline) { () throws(ClientError) in second }.run()
        #expect(seen == [deadline, deadline])
    }

    @Test("a daemon that restarts is waited for, and what ended meanwhile is found out")
    func restart() throws {
        let first = FakeSource()
        first.tasks = [TaskID(1): sampleTask(1, .active), TaskID(2): sampleTask(2, .active)]
        first.script.append(.loss)
        let second = FakeSource()
        second.tasks = [TaskID(1): sampleTask(1, .completed)]
        var attempts = 0
        let waiter = waiter([1, 2], first) { () throws(ClientError) in
            attempts += 1
            if attempts < 3 { throw .noDaemon(paths: ["/s"], errno: ENOENT) }
            return second
        }
        try waiter.run()
        #expect(attempts == 3)
        #expect(reports.sleeps == 2)
        #expect(waiter.settled.map(\.id) == [TaskID(1)])
        #expect(waiter.endings[TaskID(2)] == .removed)
        #expect(reports.failures == [.daemonAway])
    }

    @Test("a gap in the events makes the waiter look again")
    func gap() throws {
        let source = FakeSource()
        source.tasks[TaskID(1)] = sampleTask(1, .active)
        let later = [TaskID(1): sampleTask(1, .completed)]
        source.script.append(.event(TaskEvent(sequence: 9, at: 0, type: .gap), later))
        let waiter = waiter([1], source)
        try waiter.run()
        #expect(waiter.conclude())
    }

    @Test("of tasks that were followed from before they came, nothing is asked")
    func following() throws {
        let source = FakeSource()
        for id in [1, 2] { source.tasks[TaskID(Int64(id))] = sampleTask(Int64(id), .queued) }
        source.change(to: sampleTask(2, .completed), .completed)
        source.change(to: sampleTask(1, .failed, error: TaskFailure(code: .dns, message: "no such name")), .failed)
        let waiter = waiter([1, 2], source, isFollowing: true, wantsDetails: false)
        try waiter.run()
        #expect(!waiter.conclude())
        #expect(waiter.endings[TaskID(2)] == .completed)
        #expect(reports.failures.map(\.message) == ["task 1 failed: dns: no such name"])
        // The reason for a failure is only in the task itself.
        #expect(source.calls == ["get 1"])
    }

    @Test("followed tasks whose daemon restarts are looked at")
    func followingRestart() throws {
        let first = FakeSource()
        first.script.append(.loss)
        let second = FakeSource()
        second.tasks = [TaskID(1): sampleTask(1, .completed)]
        let waiter = waiter([1, 2], first, isFollowing: true, wantsDetails: false) { () throws(ClientError) in second }
        try waiter.run()
        #expect(second.calls == ["subscribe", "get 1", "get 2"])
        #expect(waiter.endings[TaskID(2)] == .removed)
    }

    @Test("many neighbouring tasks are looked at by pages")
    func many() throws {
        let source = FakeSource()
        let ids = Array(Int64(1)...500)
        for id in ids { source.tasks[TaskID(id)] = sampleTask(id, .completed) }
        let waiter = waiter(ids, source)
        try waiter.run()
        #expect(waiter.conclude())
        #expect(source.calls == ["subscribe", "list"])
    }
}
