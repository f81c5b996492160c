import TaskModel
import TaskStore
import Testing

@testable import TaskQueue

@Suite("Which of the ready tasks is next")
struct ReadyWindowTests {
    private func group(_ id: Int64, owner: UInt32 = 1, batch: String? = nil) -> FairShareGroup {
        FairShareGroup(id: id, owner: owner, batch: batch)
    }

    private func task(_ id: Int64, _ priority: TaskPriority = .normal, host: Int64 = 1) -> ReadyTask {
        ReadyTask(id: TaskID(id), priority: priority.rank, position: id, hostFingerprint: host)
    }

    /// Returns the order in which all tasks are taken while none ends.
    private func order(
        _ ready: [(FairShareGroup, [ReadyTask])], credit: Int = 0, running: [(UInt32, Int)] = [],
        mayStart: Set<Int64>? = nil, urgentLimit: Int = .max
    ) -> [Int64] {
        var window = ReadyWindow()
        window.set(ready.map(\.0))
        for (group, tasks) in ready { window.add(tasks, to: group.id, limit: 99, excludingHosts: []) }
        var owners = FairShare<UInt32>(credit: credit)
        var groups = FairShare<FairShareGroup.Key>(credit: credit)
        for (owner, count) in running { for _ in 0..<count { owners.start(owner) } }
        var taken: [Int64] = []
        var urgent: [UInt32: Int] = [:]
        while let choice = window.removeNext(
            owners: owners, groups: groups,
            isUrgent: { task, group in
                task.priority == TaskPriority.now.rank && urgent[group.owner, default: 0] < urgentLimit
            },
            { task, _ in mayStart?.contains(task.id.rawValue) ?? true })
        {
            taken.append(choice.task.id.rawValue)
            if choice.task.priority == TaskPriority.now.rank { urgent[choice.group.owner, default: 0] += 1 }
            owners.start(choice.group.owner)
            groups.start(choice.group.key)
        }
        return taken
    }

    @Test("of one owner, higher priorities first; groups without a batch are one queue")
    func oneOwner() {
        let groups = [
            (group(1), [task(5, .high), task(1), task(4)]), (group(2), [task(6, .high), task(2), task(3, .low)]),
        ]
        #expect(order(groups) == [5, 6, 1, 2, 4, 3])
    }

    @Test("batches of one owner take turns within a priority")
    func batches() {
        let groups = [
            (group(1, batch: "a"), (1...6).map { task($0) }),
            (group(2, batch: "b"), [task(7), task(8), task(9, .low)]), (group(3), [task(10)]),
        ]
        #expect(order(groups) == [1, 7, 10, 2, 8, 3, 4, 5, 6, 9])
    }

    @Test("owners take turns, whatever their priorities; one who is behind catches up")
    func owners() {
        let groups = [
            (group(1, owner: 1), [task(1, .high), task(2, .high), task(3, .high)]),
            (group(2, owner: 2), [task(4, .low), task(5, .low), task(6, .low)]),
        ]
        #expect(order(groups) == [1, 4, 2, 5, 3, 6])
        #expect(order(groups, running: [(1, 2)]) == [4, 5, 1, 6, 2, 3])
    }

    @Test("what is to start now goes before all of everybody's")
    func now() {
        let groups = [
            (group(1, owner: 1), [task(1, .high), task(2)]), (group(2, owner: 2), [task(3, .now), task(4)]),
        ]
        #expect(order(groups, running: [(2, 9)]) == [3, 1, 2, 4])
    }

    @Test("owners take turns within what is to start now, and past what each may have of it with everybody else")
    func nowOfSeveral() {
        let groups = [
            (group(1, owner: 1), (1...6).map { task($0, .now) }), (group(2, owner: 2), [task(7, .now)]),
            (group(3, owner: 3), [task(8), task(9)]),
        ]
        #expect(order(groups) == [1, 7, 2, 3, 4, 5, 6, 8, 9])
        #expect(order(groups, running: [(1, 5)]) == [7, 1, 2, 3, 4, 5, 6, 8, 9])
        #expect(order(groups, urgentLimit: 2) == [1, 7, 2, 8, 9, 3, 4, 5, 6])
    }

    @Test("what may not start stays where it is")
    func passedOver() {
        let groups = [(group(1), (1...4).map { task($0) })]
        #expect(order(groups, mayStart: [2, 4]) == [2, 4])
    }

    @Test("a group is read again where nothing of it may start, unless there was no more")
    func lacking() {
        var window = ReadyWindow()
        window.set([group(1), group(2)])
        let none: Set<Int64> = []
        func lacking(_ blocked: Set<Int64> = none, isUrgentOnly: Bool = false) -> [Int64] {
            window.lacking(blocked: { _ in blocked }, isUrgentOnly: isUrgentOnly) { task, _ in
                !blocked.contains(task.hostFingerprint)
            }
            .map(\.id)
        }
        #expect(lacking() == [1, 2])
        window.add([task(1), task(2)], to: 1, limit: 2, excludingHosts: [])
        window.add([task(3)], to: 2, limit: 2, excludingHosts: [])
        #expect(lacking() == [])
        // Host 1 is full: group 1 may have further tasks behind, group 2 has none.
        #expect(lacking([1]) == [1])
        #expect(lacking([1], isUrgentOnly: true) == [])
        window.add([], to: 1, limit: 2, excludingHosts: [1])
        #expect(lacking([1]) == [])
        #expect(lacking([1, 2]) == [])
        #expect(window.ids(of: 1) == [TaskID(1), TaskID(2)])
        var (owners, groups) = (FairShare<UInt32>(credit: 0), FairShare<FairShareGroup.Key>(credit: 0))
        for _ in 0..<3 {
            _ = window.removeNext(owners: owners, groups: groups, isUrgent: { _, _ in false }) { _, _ in true }
        }
        owners.start(1)
        groups.start(group(1).key)
        // Host 1 was excluded when group 1 was last read.
        #expect(lacking() == [1])
    }

    @Test("more than is kept is read again later")
    func kept() {
        var window = ReadyWindow()
        window.set([group(1)])
        let many = (1...Int64(ReadyWindow.tasksKept)).map { task($0 * 2) }
        window.add(many, to: 1, limit: 9_999, excludingHosts: [])
        window.add([task(3), task(99_999)], to: 1, limit: 9_999, excludingHosts: [])
        let ids = window.ids(of: 1)
        #expect(ids.count == ReadyWindow.tasksKept && ids[1] == TaskID(3) && !ids.contains(TaskID(99_999)))
        #expect(window.lacking(blocked: { _ in [1] }, isUrgentOnly: false) { _, _ in false }.map(\.id) == [1])
    }
}
