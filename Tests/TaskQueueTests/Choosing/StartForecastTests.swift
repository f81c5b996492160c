import TaskModel
import TaskStore
import TestSupport
import Testing

@testable import TaskQueue

@Suite("The forecast of the order of start") struct StartForecastTests {
    private func group(_ id: Int64, owner: UInt32 = 1, batch: String? = nil) -> FairShareGroup {
        FairShareGroup(id: id, owner: owner, batch: batch)
    }

    private func task(_ id: Int64, _ priority: TaskPriority = .normal, position: Int64? = nil) -> ReadyTask {
        ReadyTask(id: TaskID(id), priority: priority.rank, position: position ?? id, hostFingerprint: id)
    }

    /// Returns the ids in the forecast's order, reading two tasks at a time.
    private func order(
        _ ready: [(group: FairShareGroup, tasks: [ReadyTask])], activeTasks: Int = 1,
        running: [TaskChooser.Place] = []
    ) -> [Int64] {
        var owners = FairShare<UInt32>(credit: 0)
        var groups = FairShare<FairShareGroup.Key>(credit: 0)
        for place in running {
            owners.start(place.group.owner)
            groups.start(place.group)
        }
        var forecast = StartForecast(owners: owners, groups: groups, activeTasks: activeTasks, running: running)
        forecast.set(ready.map(\.group))
        var order: [Int64] = []
        while order.count < 1_000 {
            switch forecast.next() {
            case .task(let task, _): order.append(task.id.rawValue)
            case .read(let group, let last):
                let tasks = ready.first { $0.group == group }?.tasks.sorted() ?? []
                let rest = last.map { last in Array(tasks.drop { $0 != last }.dropFirst()) } ?? tasks
                forecast.add(Array(rest.prefix(2)), to: group)
            case .end: return order
            }
        }
        return order
    }

    @Test("of one owner, by priority and position; batches take turns")
    func oneOwner() {
        let tasks = [task(1), task(2, .high), task(3, position: -5), task(4, .low), task(5)]
        #expect(order([(group(1), tasks)]) == [2, 3, 1, 5, 4])
        let batches = [
            (group(1, batch: "a"), (1...4).map { task($0) }), (group(2, batch: "b"), (5...6).map { task($0) }),
        ]
        #expect(order(batches) == [1, 5, 2, 6, 3, 4])
    }

    @Test("owners take turns, whatever their priorities; an urgent task comes first")
    func owners() {
        let tasks = [
            (group(1, owner: 1), [task(1, .high), task(2, .high), task(3, .high)]),
            (group(2, owner: 2), [task(4, .low), task(5, .low)]),
        ]
        #expect(order(tasks) == [1, 4, 2, 5, 3])
        let urgent = tasks + [(group(3, owner: 3), [task(6, .now)])]
        #expect(order(urgent).first == 6)
    }

    @Test("who runs more waits for the others, until some of it has ended")
    func running() {
        let place = TaskChooser.Place(group: .init(owner: 1, batch: nil), hostFingerprint: 0, isBeyond: false)
        let tasks = [(group(1, owner: 1), [task(1), task(2)]), (group(2, owner: 2), [task(3), task(4)])]
        #expect(order(tasks, activeTasks: 2, running: [place, place]) == [3, 1, 4, 2])
    }

    @Test("with as many slots as tasks, it is the order in which the scheduler takes them")
    func asScheduler() {
        var random = SeededGenerator(seed: 7)
        for round in 0..<200 {
            var ready: [(group: FairShareGroup, tasks: [ReadyTask])] = []
            var id: Int64 = 0
            for number in 1...Int64.random(in: 1...6, using: &random) {
                let group = FairShareGroup(
                    id: number, owner: round % 2 == 0 ? 1 : UInt32(number), batch: "\(number)")
                let tasks = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                    id += 1
                    return ReadyTask(
                        id: TaskID(id), priority: Int.random(in: 0...2, using: &random),
                        position: Int64.random(in: -3...3, using: &random), hostFingerprint: 0)
                }
                ready.append((group, tasks.sorted()))
            }
            var window = ReadyWindow()
            window.set(ready.map(\.group))
            for (group, tasks) in ready { window.add(tasks, to: group.id, limit: 99, excludingHosts: []) }
            var owners = FairShare<UInt32>(credit: 0)
            var groups = FairShare<FairShareGroup.Key>(credit: 0)
            var taken: [Int64] = []
            while let choice = window.removeNext(
                owners: owners, groups: groups, isUrgent: { _, _ in false }, { _, _ in true })
            {
                taken.append(choice.task.id.rawValue)
                owners.start(choice.group.owner)
                groups.start(choice.group.key)
            }
            #expect(order(ready, activeTasks: 1_000) == taken)
        }
    }
}
