import Synchronization
import TaskModel
import Testing

@testable import TaskQueue

@Suite("Progress shared by subscribers")
struct SharedProgressTests {
    private func status(_ id: Int64, owner: UInt32) -> TaskStatus {
        TaskStatus(
            TaskRecord(
                id: TaskID(id), specification: TaskSpecification(url: "https://a.example/f"), owner: owner,
                lifecycle: TaskLifecycle(), createdAt: 9))
    }

    @Test("subscribers that ask within 100 ms share an inquiry, and each hears of its own tasks")
    func shared() async {
        let clock = ManualClock()
        let inquiries = Mutex(0)
        let running = [status(1, owner: 1), status(2, owner: 2)]
        let progress = SharedProgress(clock: clock.clock) {
            inquiries.withLock { $0 += 1 }
            return running
        }
        #expect(await progress.statuses(owner: 1, generation: 1).map(\.id) == [TaskID(1)])
        #expect(await progress.statuses(owner: 2, generation: 2).map(\.id) == [TaskID(2)])
        #expect(await progress.statuses(owner: nil, generation: 3).count == 2)
        #expect(inquiries.withLock { $0 } == 1)
        clock.advance(by: 100)
        #expect(await progress.statuses(owner: nil, generation: 3).count == 2)
        #expect(inquiries.withLock { $0 } == 2)
    }

    @Test("that nothing of a user's own runs is not believed after an event, whatever others run")
    func ownIdle() async {
        let running = Mutex([status(1, owner: 1)])
        let progress = SharedProgress(clock: ManualClock().clock) { running.withLock { $0 } }
        #expect(await progress.statuses(owner: 1, generation: 1).count == 1)
        running.withLock { $0.append(status(2, owner: 2)) }
        #expect(await progress.statuses(owner: 2, generation: 2).map(\.id) == [TaskID(2)])
    }

    @Test("that nothing runs is not believed after an event")
    func idle() async {
        let running = Mutex<[TaskStatus]>([])
        let progress = SharedProgress(clock: ManualClock().clock) { running.withLock { $0 } }
        #expect(await progress.statuses(owner: nil, generation: 1).isEmpty)
        running.withLock { $0 = [status(1, owner: 1)] }
        #expect(await progress.statuses(owner: nil, generation: 1).isEmpty, "no event came since")
        #expect(await progress.statuses(owner: nil, generation: 2).count == 1)
    }
}
