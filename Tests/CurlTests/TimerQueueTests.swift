import Testing

@testable import Curl

@Suite("Timers")
struct TimerQueueTests {
    private func at(_ milliseconds: UInt64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

    @Test("what is due comes in the order of its time, and what was cancelled does not come")
    func order() {
        var queue = TimerQueue()
        var generator = SystemRandomNumberGenerator()
        var fired: [UInt64] = []
        for (id, time) in (0..<1000).map({ UInt64($0) }).shuffled(using: &generator).enumerated() {
            queue.add(id, at: at(time)) { fired.append(time) }
            if time % 3 == 0 { queue.cancel(id) }
        }
        #expect(queue.next() == at(1))
        while let action = queue.popDue(at: at(499)) { action() }
        #expect(fired == (0..<500).filter { $0 % 3 != 0 })
        #expect(queue.next() == at(500))
        while let action = queue.popDue(at: at(999)) { action() }
        #expect(fired == (0..<1000).filter { $0 % 3 != 0 })
        #expect(queue.next() == nil)
    }

    @Test("a million that are set and cancelled leave nothing behind")
    func cancelled() {
        var queue = TimerQueue()
        for id in 0..<1_000_000 {
            queue.add(id, at: at(UInt64(id) + 1000)) {}
            queue.cancel(id)
        }
        #expect(queue.next() == nil)
        #expect(queue.count <= 64)
    }
}
