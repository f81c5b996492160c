import Testing

@testable import Transfer

struct CheckpointWindowTests {
    @Test("a checkpoint is due after each interval of received bytes")
    func interval() {
        var window = CheckpointWindow(interval: 100, limit: nil)
        #expect(window.isFresh)
        var isDue = window.receive(99)
        #expect(!isDue && !window.isFresh)
        isDue = window.receive(1)
        #expect(isDue && window.isFresh)
        let due = [50, 500, 99].map { window.receive($0) }
        #expect(due == [false, true, false])
    }

    @Test("the first bytes make a checkpoint due at once if that is asked for, and later ones after each interval")
    func atOnce() {
        var window = CheckpointWindow(interval: 100, limit: nil, isDueAtOnce: true)
        let due = [1, 99, 1].map { window.receive($0) }
        #expect(due == [true, false, true])
    }

    @Test("receiving pauses at the limit beyond the last confirmed checkpoint")
    func limit() {
        var window = CheckpointWindow(interval: 10, limit: 100)
        #expect(!window.isExceeded(by: 99) && window.isExceeded(by: 100))
        window.confirm(40, of: 100)
        #expect(!window.isExceeded(by: 139) && window.isExceeded(by: 140))
        let unlimited = CheckpointWindow(interval: 10, limit: nil)
        #expect(!unlimited.isExceeded(by: 1 << 60))
    }

    @Test("F87: a checkpoint that is confirmed after a later one takes nothing back")
    func late() {
        var window = CheckpointWindow(interval: 10, limit: 100)
        window.confirm(90, of: 120)
        window.confirm(20, of: 120)
        #expect(!window.isExceeded(by: 189) && window.isExceeded(by: 190))
    }

    @Test("a checkpoint covers no more bytes than the part holds, also after bytes are dropped")
    func dropped() {
        var window = CheckpointWindow(interval: 10, limit: 100)
        window.confirm(500, of: 80)
        #expect(window.isExceeded(by: 180) && !window.isExceeded(by: 179))
        window.limit(to: 30)
        #expect(window.isExceeded(by: 130) && !window.isExceeded(by: 129))
        window.limit(to: 60)
        #expect(window.isExceeded(by: 130))
        window.limit(to: 0)
        #expect(window.isExceeded(by: 100))
    }

    @Test("large blocks are gathered only where they are small beside the limit")
    func blocks() {
        #expect(CheckpointWindow(interval: 1, limit: nil).allowsBlocks(of: 1 << 20))
        #expect(CheckpointWindow(interval: 1, limit: 16 << 20).allowsBlocks(of: 1 << 20))
        #expect(!CheckpointWindow(interval: 1, limit: (16 << 20) - 1).allowsBlocks(of: 1 << 20))
    }
}
