import ControlProtocol
import TaskModel
import Testing

@testable import dlctl

@Suite struct UnchangedTasksTests {
    @Test(
        "tasks that were named say in which state they are already",
        arguments: [
            (SelectionAction.resume, TaskState.active), (.resume, .queued), (.pause, .paused),
            (.cancel, .cancelled), (.retry, .queued),
        ])
    func named(action: SelectionAction, state: TaskState) {
        #expect(
            UnchangedTasks(action).reason([sampleTask(7, state)], now: 0)
                == "task 7 is already \(state.rawValue)")
    }

    @Test("a ready task says what keeps it from starting")
    func ready() {
        var task = sampleTask(7, .queued, reason: .scheduled)
        task.notBefore = 5
        #expect(
            UnchangedTasks(.resume).reason([task], now: 0, clock: { "\($0)" })
                == "task 7 is already queued (paused by the schedule until 5)")
    }

    @Test("two tasks are named, and many are counted")
    func many() {
        let unchanged = UnchangedTasks(.resume)
        let tasks = (1...4).map { sampleTask($0, $0 == 4 ? .active : .queued) }
        #expect(
            unchanged.reason(Array(tasks.suffix(2)), now: 0) == "task 3 is already queued, task 4 is already active")
        #expect(unchanged.reason(tasks, now: 0) == "the tasks are already 3 queued, 1 active")
        #expect(unchanged.reason([], now: 0) == nil)
    }

    @Test(
        "a filter says which states the command is for, and which there are",
        arguments: [
            (SelectionAction.resume, "nothing is paused or waiting; 3 are queued; 1 is active"),
            (.pause, "nothing is queued, active or waiting; 3 are queued; 1 is active"),
            (.retry, "nothing is failed, cancelled or in need of a login or URL; 3 are queued; 1 is active"),
            (.cancel, "nothing is queued, active, waiting or paused; 3 are queued; 1 is active"),
        ])
    func filter(action: SelectionAction, words: String) {
        #expect(UnchangedTasks(action).reason(counts: ["queued": 3, "active": 1], isAll: true) == words)
    }

    @Test(
        "the states of the tasks come with the command that fits",
        arguments: [
            (SelectionAction.retry, TaskState.paused, "3 are paused: dlctl resume paused --batch b"),
            (.retry, .completed, "3 are completed: dlctl retry completed --batch b"),
            (.resume, .failed, "3 are failed: dlctl retry failed --batch b"),
            (.cancel, .completed, "3 are completed: dlctl remove completed --batch b"),
            (.set, .cancelled, "3 are cancelled: dlctl retry cancelled --batch b"),
            (.pause, .paused, "; 3 are paused"),
        ])
    func fittingCommand(action: SelectionAction, state: TaskState, words: String) {
        let reason = UnchangedTasks(action).reason(
            counts: [state.rawValue: 3], isAll: false, conditions: " --batch b")
        #expect(reason.hasSuffix(words), "\(reason)")
    }

    @Test("a filter with conditions speaks of what matches")
    func conditions() {
        let unchanged = UnchangedTasks(.resume)
        #expect(
            unchanged.reason(counts: ["completed": 2], isAll: false, isPart: true)
                == "none of them is paused or waiting; 2 are completed: dlctl retry completed; and more")
        #expect(unchanged.reason(counts: [:], isAll: false) == "no task matches")
        #expect(unchanged.reason(counts: ["queued": 0], isAll: true) == "there are no tasks")
    }
}
