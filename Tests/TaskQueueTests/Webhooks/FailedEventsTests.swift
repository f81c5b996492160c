import TaskModel
import Testing
import Transfer

@testable import TaskQueue

@Suite("The events that a receiver has not accepted")
struct FailedEventsTests {
    private var failed = FailedEvents(policy: RetryPolicy())

    private func event(_ sequence: Int64) -> TaskEvent {
        TaskEvent(sequence: sequence, at: 0, type: .completed, id: TaskID(sequence))
    }

    private mutating func add(_ sequence: Int64, isProbe: Bool = false, now: Int64) {
        var generator = ConstantGenerator.largest
        failed.add(event(sequence), "m\(sequence)", isProbe: isProbe, now: now, time: now + 7, using: &generator)
    }

    @Test("an event that fails by itself waits ever longer, up to ten minutes, and is taken once it is due")
    mutating func delays() throws {
        var now: Int64 = 0
        var delays: [Int64] = []
        for _ in 0..<12 {
            add(1, now: now)
            let due = try #require(failed.nextDue)
            #expect(failed.takeDue(now: due - 1).isEmpty)
            #expect(failed.takeDue(now: due).map(\.sequence) == [1])
            #expect(failed.takeDue(now: due).isEmpty && failed.nextDue == nil)
            delays.append(due - now)
            now = due
        }
        #expect(delays == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600].map { $0 * 1_000 })
        #expect(failed.age(of: 1, now: now) == now)
        #expect(failed.count == 1 && failed.since == 7 && failed.lastMessage == "m1")
        failed.remove(1)
        #expect(failed.count == 0 && failed.since == nil && failed.age(of: 1, now: now) == 0)
    }

    @Test("an event that probed a receiver in trouble has no delay of its own")
    mutating func probes() {
        add(1, isProbe: true, now: 10)
        add(1, isProbe: true, now: 20)
        #expect(failed.nextDue == 20)
        #expect(failed.age(of: 1, now: 90_000_000) == 89_999_990)
        add(1, now: 30)
        #expect(failed.nextDue == 1_030, "its first failure by itself")
        #expect(failed.age(of: 1, now: 130) == 120)
        #expect(failed.since == 17)
    }

    @Test("the next attempt is the earliest")
    mutating func earliest() {
        add(1, now: 500)
        add(2, now: 0)
        #expect(failed.nextDue == 1_000)
        #expect(failed.takeDue(now: 1_000).map(\.sequence) == [2])
        #expect(failed.nextDue == 1_500)
    }
}
