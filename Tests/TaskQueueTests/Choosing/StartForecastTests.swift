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
        return order(
            ready, StartForecast(owners: owners, groups: groups, activeTasks: activeTasks, running: running))
    }

    private func order(_ ready: [(group: FairShareGroup, tasks: [ReadyTask])], _ forecast: StartForecast) -> [Int64] {
        var forecast = forecast
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

    /// A chooser without a store: the window and the slots of the scheduler.
    private struct Scheduling {
        var window = ReadyWindow()
        var slots: SlotTable
        var owners: FairShare<UInt32>
        var groups: FairShare<FairShareGroup.Key>
        var running: [TaskChooser.Place] = []

        init(_ ready: [(group: FairShareGroup, tasks: [ReadyTask])], slots: Int, perOwner: Int?) {
            window.set(ready.map(\.group))
            for (group, tasks) in ready { window.add(tasks, to: group.id, limit: 99, excludingHosts: []) }
            self.slots = SlotTable(activeTasks: slots, activeTasksPerOwner: perOwner)
            owners = FairShare(credit: slots)
            groups = FairShare(credit: slots)
        }

        /// Starts tasks for as long as there is room.
        mutating func fill() -> [Int64] {
            var started: [Int64] = []
            while true {
                let (slots, hasRoom) = (slots, slots.hasRoom)
                let isUrgent = { (task: ReadyTask, group: FairShareGroup) in
                    task.priority == TaskPriority.now.rank && slots.mayBeUrgent(of: group.owner)
                }
                let choice = window.removeNext(owners: owners, groups: groups, isUrgent: isUrgent) { task, group in
                    slots.hasRoom(for: group.owner)
                        && (hasRoom || (isUrgent(task, group) && slots.hasRoomBeyond(of: group.owner)))
                }
                guard let choice else { return started }
                let place = TaskChooser.Place(
                    group: choice.group.key, hostFingerprint: 0, isBeyond: !hasRoom,
                    isUrgent: isUrgent(choice.task, choice.group))
                self.slots.start(0, of: place.group.owner, beyond: place.isBeyond, isUrgent: place.isUrgent)
                owners.start(place.group.owner)
                groups.start(place.group)
                running.append(place)
                started.append(choice.task.id.rawValue)
            }
        }

        /// Ends the first of the running tasks.
        mutating func endFirst() {
            let place = running.removeFirst()
            slots.end(0, of: place.group.owner, wasSilent: false, beyond: place.isBeyond, wasUrgent: place.isUrgent)
            owners.end(place.group.owner)
            groups.end(place.group)
        }
    }

    @Test("with any number of slots it is the scheduler's order, while the first to start are the first to end")
    func exact() {
        var random = SeededGenerator(seed: 11)
        for round in 0..<500 {
            var ready: [(group: FairShareGroup, tasks: [ReadyTask])] = []
            var id: Int64 = 0
            for number in 1...Int64.random(in: 1...6, using: &random) {
                let group = group(number, owner: .random(in: 1...3, using: &random), batch: "\(number)")
                let tasks = (0..<Int.random(in: 1...8, using: &random)).map { _ in
                    id += 1
                    return ReadyTask(
                        id: TaskID(id), priority: .random(in: 0...3, using: &random),
                        position: .random(in: -3...3, using: &random), hostFingerprint: 0)
                }
                ready.append((group, tasks.sorted()))
            }
            let slots = Int.random(in: 1...6, using: &random)
            let perOwner = Bool.random(using: &random) ? Int.random(in: 1...3, using: &random) : nil
            var scheduling = Scheduling(ready, slots: slots, perOwner: perOwner)
            // The forecast is made while some tasks run.
            var started = scheduling.fill()
            for _ in 0..<Int.random(in: 0...3, using: &random) where !scheduling.running.isEmpty {
                scheduling.endFirst()
                started += scheduling.fill()
            }
            let forecast = StartForecast(
                owners: scheduling.owners, groups: scheduling.groups, activeTasks: slots, activeTasksPerOwner: perOwner,
                running: scheduling.running)
            let left = ready.map { group, tasks in (group, tasks.filter { !started.contains($0.id.rawValue) }) }
            var taken: [Int64] = []
            while !scheduling.running.isEmpty {
                scheduling.endFirst()
                taken += scheduling.fill()
            }
            #expect(order(left, forecast) == taken, "round \(round): \(slots) slots, \(String(describing: perOwner))")
        }
    }

    @Test("of one owner the priority comes first, whatever the number of slots and the batches")
    func priorities() {
        for slots in 1...8 {
            let high = (group(1, batch: "a"), (101...112).map { task($0, .high) })
            let normal = (group(2, batch: "b"), (1...12).map { task($0) })
            var scheduling = Scheduling([normal, high], slots: slots, perOwner: nil)
            var taken = scheduling.fill()
            while !scheduling.running.isEmpty {
                scheduling.endFirst()
                taken += scheduling.fill()
            }
            #expect(taken == Array(101...112) + Array(1...12))
        }
    }

    @Test("among owners in turn, each one's priority counts for herself alone")
    func prioritiesOfOwners() {
        let ready = [
            (group(1, owner: 1, batch: "a"), [task(1, .high, position: 10)]),
            (group(2, owner: 2), [task(2, position: 5)]),
            (group(3, owner: 1, batch: "b"), [task(3, position: 1)]),
        ]
        var scheduling = Scheduling(ready, slots: 1, perOwner: nil)
        var taken = scheduling.fill()
        while !scheduling.running.isEmpty {
            scheduling.endFirst()
            taken += scheduling.fill()
        }
        #expect(taken == [2, 1, 3])
    }
}
