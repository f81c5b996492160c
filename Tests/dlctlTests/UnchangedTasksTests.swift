import ControlProtocol
import TaskModel
import Testing

@testable import dlctl

@Suite struct UnchangedTasksTests {
    @Test(
        "tasks that were named say in which state they are already",
        arguments: [
            (MethodName.taskResume, TaskState.active), (.taskResume, .queued), (.taskPause, .paused),
            (.taskCancel, .cancelled), (.taskRetry, .queued),
        ])
    func named(method: MethodName, state: TaskState) {
        #expect(
            UnchangedTasks(method: method).reason([sampleTask(7, state)], now: 0)
                == "task 7 is \(state.rawValue) already")
    }

    @Test("a ready task says what keeps it from starting")
    func ready() {
        var task = sampleTask(7, .queued, reason: .scheduled)
        task.notBefore = 5
        #expect(
            UnchangedTasks(method: .taskResume).reason([task], now: 0, clock: { "\($0)" })
                == "task 7 is queued already (paused by the schedule until 5)")
    }

    @Test("two tasks are named, and many are counted")
    func many() {
        let unchanged = UnchangedTasks(method: .taskResume)
        let tasks = (1...4).map { sampleTask($0, $0 == 4 ? .active : .queued) }
        #expect(
            unchanged.reason(Array(tasks.suffix(2)), now: 0) == "task 3 is queued already, task 4 is active already")
        #expect(unchanged.reason(tasks, now: 0) == "the tasks are 3 queued, 1 active already")
        #expect(unchanged.reason([], now: 0) == nil)
    }

    @Test(
        "a filter says which states the command is for, and which there are",
        arguments: [
            (MethodName.taskResume, "nothing is paused or waiting; 3 queued, 1 active"),
            (.taskPause, "nothing is queued, active or waiting; 3 queued, 1 active"),
            (.taskRetry, "nothing is failed or cancelled; 3 queued, 1 active"),
            (.taskCancel, "nothing is queued, active, waiting or paused; 3 queued, 1 active"),
        ])
    func filter(method: MethodName, words: String) {
        #expect(UnchangedTasks(method: method).reason(counts: ["queued": 3, "active": 1], isAll: true) == words)
    }

    @Test("a filter with conditions speaks of what matches")
    func conditions() {
        let unchanged = UnchangedTasks(method: .taskResume)
        #expect(
            unchanged.reason(counts: ["completed": 2], isAll: false, isPart: true)
                == "none of them is paused or waiting; 2 completed and more")
        #expect(unchanged.reason(counts: [:], isAll: false) == "no task matches")
        #expect(unchanged.reason(counts: ["queued": 0], isAll: true) == "there are no tasks")
    }
}
