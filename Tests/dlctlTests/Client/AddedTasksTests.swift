import ControlProtocol
import TaskModel
import Testing

@testable import dlctl

@Suite("What was there already")
struct AddedTasksTests {
    @Test("one task under a known key is named with its state, and nothing is said of new ones")
    func key() {
        var task = sampleTask(17, .completed)
        task.key = "nightly-1"
        let found = AddedTasks(TaskAddResult(ids: [task.id], found: [task.id]))
        #expect(found.note(of: task) == "task 17 already has the key nightly-1 (completed); nothing was added")
        let mixed = AddedTasks(TaskAddResult(ids: [TaskID(18), task.id], found: [task.id]))
        #expect(mixed.note(of: task) == "task 17 already has the key nightly-1 (completed); it was not added again")
        #expect(AddedTasks(TaskAddResult(ids: [task.id])).countOfFound == 0)
    }

    @Test("several tasks are counted by state, as far as the states are known")
    func several() {
        let ids = [TaskID(1), TaskID(2), TaskID(3)]
        let found = AddedTasks(TaskAddResult(ids: ids, found: ids))
        let states = ["completed": 2, "failed": 1]
        #expect(found.note(states: states) == "nothing to add: 3 tasks already exist (2 completed, 1 failed)")
        #expect(found.note(states: ["completed": 1]) == "nothing to add: 3 tasks already exist")
        let batch = QueueCommitResult(added: 0, updated: 1, unchanged: 2, pruned: 0, ids: [])
        #expect(
            AddedTasks(batch).note(states: states)
                == "nothing to add: 3 tasks already exist (2 completed, 1 failed), of which 1 changed")
        let some = QueueCommitResult(added: 2, updated: 0, unchanged: 1, pruned: 0, ids: [[TaskID(7), TaskID(8)]])
        #expect(AddedTasks(some).note(states: [:]) == "1 task already exists")
        #expect(AddedTasks(some).ids == [TaskID(7), TaskID(8)])
    }
}
