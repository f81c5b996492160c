import Testing

@testable import TaskQueue

@Suite("When freed memory is given back")
struct HeapLevelTests {
    private var level = HeapLevel()

    /// - Returns: the number of the check at which memory is released.
    private mutating func looks(at running: Int, upTo count: Int = 20) -> Int? {
        (1...count).first { _ in level.check(at: running) }
    }

    @Test("a while after half of many tasks have ended, once")
    mutating func fall() {
        #expect(looks(at: 4_000) == nil)
        #expect(looks(at: 2_001) == nil)
        #expect(looks(at: 2_000) == HeapLevel.delay)
        #expect(looks(at: 2_000) == nil)
        #expect(looks(at: 1_000) == HeapLevel.delay)
    }

    @Test("tasks that begin again meanwhile do not put it off, and their end is another one")
    mutating func comesBack() {
        level.record(4_000)
        level.record(0)
        #expect(level.isPending)
        #expect(looks(at: 4_000) == HeapLevel.delay)
        #expect(!level.isPending)
        level.record(0)
        #expect(looks(at: 4_000) == HeapLevel.delay)
    }

    @Test("never where few tasks run")
    mutating func few() {
        #expect(looks(at: HeapLevel.least - 1) == nil)
        #expect(looks(at: 0) == nil)
        #expect(!level.isPending)
    }

    @Test("nothing is owed once nothing runs and memory was given back")
    mutating func idle() {
        level.record(100)
        #expect(looks(at: 0) == HeapLevel.delay)
        #expect(!level.isPending)
        #expect(looks(at: 0) == nil)
    }

    @Test("once a minute where few tasks run at a time, but many one after the other")
    mutating func oneAfterTheOther() {
        for _ in 0..<HeapLevel.many { level.record(3, ended: 1) }
        #expect(level.isPending)
        #expect(looks(at: 3, upTo: 2 * HeapLevel.interval) == HeapLevel.interval)
        #expect(!level.isPending)
        #expect(looks(at: 3, upTo: 2 * HeapLevel.interval) == nil)
        level.record(3, ended: HeapLevel.many)
        #expect(looks(at: 3) == 1)
        level.record(3, ended: HeapLevel.many - 1)
        #expect(looks(at: 3, upTo: 2 * HeapLevel.interval) == nil)
    }
}
