import TaskModel
import Testing

@Suite("The lanes of events")
struct EventLanesTests {
    private func event(_ sequence: Int64, task: Int64?, batch: String? = nil) -> TaskEvent {
        var event = TaskEvent(sequence: sequence, at: 0, type: .completed, id: task.map { TaskID($0) })
        event.batch = batch
        return event
    }

    private func queue(jobs: Int = 2, retries: Int = 1, _ events: [TaskEvent]) -> EventLanes {
        var queue = EventLanes(jobs: jobs, retries: retries, after: 10)
        for event in events { queue.add(event) }
        return queue
    }

    @Test("the lowest number runs first, as many at once as there are jobs")
    func order() {
        var queue = queue([event(11, task: 1), event(12, task: 2), event(13, task: 3)])
        #expect(queue.next()?.event.sequence == 11)
        #expect(queue.next()?.event.sequence == 12)
        #expect(queue.next() == nil)
        #expect(queue.ended(12, isSuccess: true) == .done)
        #expect(queue.next()?.event.sequence == 13)
    }

    @Test("the events of a task, and of a batch, run one after the other")
    func lanes() {
        var queue = queue(
            jobs: 9,
            [
                event(11, task: 1), event(12, task: 1), event(13, task: nil, batch: "b"),
                event(14, task: nil, batch: "b"), event(15, task: nil, batch: "c"),
            ])
        #expect(
            [queue.next(), queue.next(), queue.next(), queue.next()].map { $0?.event.sequence } == [11, 13, 15, nil])
        _ = queue.ended(11, isSuccess: true)
        #expect(queue.next()?.event.sequence == 12)
        _ = queue.ended(13, isSuccess: true)
        #expect(queue.next()?.event.sequence == 14)
    }

    @Test("a failed command runs again later, holds up its task alone, and is given up after the retries")
    func retries() {
        var queue = queue([event(11, task: 1), event(12, task: 1), event(13, task: 2)])
        _ = queue.next()
        #expect(queue.ended(11, isSuccess: false) == .retry(after: 1))
        #expect(queue.next()?.event.sequence == 13)
        #expect(queue.next() == nil, "the task waits")
        #expect(queue.position == 10)
        queue.isDue(event(11, task: 1))
        #expect(queue.next() == EventLanes.Entry(event: event(11, task: 1), failures: 1))
        #expect(queue.ended(11, isSuccess: false) == .givenUp)
        #expect(queue.next()?.event.sequence == 12)
    }

    @Test("on request the event that has failed least goes first")
    func fewestFailures() {
        var queue = queue(jobs: 1, retries: 9, [event(11, task: 1), event(12, task: 2), event(13, task: 3)])
        #expect(queue.hasReady)
        for expected in [11, 12, 13, 11, 12] as [Int64] {
            #expect(queue.next(fewestFailures: true)?.event.sequence == expected)
            _ = queue.ended(expected, isSuccess: false)
            queue.isDue(event(expected, task: expected - 10))
        }
        #expect(queue.next()?.event.sequence == 11, "otherwise the lowest number does")
        _ = queue.ended(11, isSuccess: false)
        #expect(queue.hasReady)
        for number in [12, 13] as [Int64] {
            #expect(queue.next()?.event.sequence == number)
            _ = queue.ended(number, isSuccess: false)
        }
        #expect(!queue.hasReady && !queue.isEmpty)
    }

    @Test("the delay doubles up to a minute, however many retries there are")
    func delays() {
        var queue = queue(retries: 100, [event(11, task: 1)])
        var delays: [Double] = []
        for _ in 0..<100 {
            guard queue.next() != nil, case .retry(let delay) = queue.ended(11, isSuccess: false) else { break }
            delays.append(delay)
            queue.isDue(event(11, task: 1))
        }
        #expect(delays.count == 100 && delays.prefix(7) == [1, 2, 4, 8, 16, 32, 60] && delays.last == 60)
    }

    @Test("the position is that before the first event that is not done")
    func position() {
        var queue = queue(jobs: 3, [event(11, task: 1), event(14, task: 2), event(15, task: 3)])
        #expect(queue.position == 10)
        for _ in 0..<3 { _ = queue.next() }
        _ = queue.ended(11, isSuccess: true)
        #expect(queue.position == 13)
        _ = queue.ended(15, isSuccess: true)
        #expect(queue.position == 13)
        _ = queue.ended(14, isSuccess: true)
        #expect(queue.position == 15 && queue.isIdle)
        queue.skip(20)
        #expect(queue.position == 20)
    }

    @Test("an owner with many events leaves room for another's")
    func owners() {
        func owned(_ sequence: Int64, by owner: UInt32) -> TaskEvent {
            var event = event(sequence, task: sequence)
            event.owner = owner
            return event
        }
        var queue = queue([owned(11, by: 1), owned(12, by: 1), owned(13, by: 1), owned(14, by: 2)])
        #expect(queue.count(of: 1) == 3 && queue.count(of: 2) == 1)
        #expect([queue.next(), queue.next()].map { $0?.event.sequence } == [11, 14])
        _ = queue.ended(14, isSuccess: true)
        #expect(queue.count(of: 2) == 0)
        #expect(queue.next()?.event.sequence == 12)
        _ = queue.ended(12, isSuccess: false)
        #expect(queue.count(of: 1) == 3, "it is held until it is done")
    }

    @Test("it takes a limited number of events")
    func room() {
        var queue = queue([])
        var number: Int64 = 10
        while queue.hasRoom {
            number += 1
            queue.add(event(number, task: number))
        }
        #expect(number - 10 == EventLanes.capacity)
        _ = queue.next()
        #expect(!queue.hasRoom, "an event whose command runs counts")
        _ = queue.ended(11, isSuccess: true)
        #expect(queue.hasRoom)
    }
}
