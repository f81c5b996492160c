import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("The activity of a run")
struct RunActivityTests {
    private static let stallTimeout: Milliseconds = 60_000

    private var activity = RunActivity(now: 0)

    private mutating func observe(
        _ transferred: Int64, at now: Milliseconds, isHeldBack: Bool = false
    ) -> RunActivity.Changes {
        activity.observe(transferred, isHeldBack: isHeldBack, stallTimeout: Self.stallTimeout, now: now)
    }

    @Test("a run without a first byte is silent after a second, and its first byte ends that")
    mutating func firstByte() {
        #expect(observe(0, at: 999) == .init())
        #expect(observe(0, at: 1_000) == .init(silence: true))
        #expect(observe(0, at: 2_000) == .init())
        #expect(observe(1, at: 3_000) == .init(hasFirstBytes: true, silence: false))
        #expect(observe(2, at: 4_000) == .init())
    }

    @Test("a run that has received bytes is silent after a third of its stall time-out")
    mutating func laterBytes() {
        _ = observe(1, at: 0)
        #expect(observe(1, at: 19_999) == .init())
        #expect(observe(1, at: 20_000) == .init(silence: true))
    }

    @Test("a run that is held back is not silent")
    mutating func heldBack() {
        #expect(observe(0, at: 5_000, isHeldBack: true) == .init())
        #expect(observe(0, at: 5_999) == .init())
    }

    @Test("the connection stalls a time-out after the last byte or the last retry; before a byte that is not known")
    mutating func stall() {
        _ = observe(0, at: 1_000)
        #expect(activity.stall(after: 60_000) == nil && activity.lastMoved == 0)
        _ = observe(1, at: 2_000)
        _ = observe(1, at: 50_000)
        #expect(activity.stall(after: 60_000) == 62_000 && activity.lastMoved == 2_000)
        _ = activity.observe(1, retries: 1, isHeldBack: false, stallTimeout: Self.stallTimeout, now: 65_000)
        #expect(activity.stall(after: 60_000) == 125_000 && activity.lastMoved == 2_000)
        #expect(activity.stall(after: 0) == nil && activity.stall(after: .max) == .max)
    }

    @Test("a run without a slot is neither silent nor the first to receive")
    mutating func released() {
        #expect(activity.releaseSlot() == .active)
        #expect(activity.releaseSlot() == nil)
        #expect(observe(0, at: 100_000) == .init())
        #expect(observe(1, at: 100_001) == .init())
    }

    @Test("a silent run tells so when it releases its slot")
    mutating func releasedSilently() {
        _ = observe(0, at: 1_000)
        #expect(activity.releaseSlot() == .silent)
        #expect(!activity.isSilent)
    }

    @Test("under random observations, the reported changes add up to the state", arguments: 0..<100)
    mutating func random(seed: Int) {
        var generator = SeededGenerator(seed: UInt64(seed))
        var (now, bytes, isSilent, firsts) = (Milliseconds(0), Int64(0), false, 0)
        for _ in 0..<200 {
            now += .random(in: 0...8_000, using: &generator)
            if Bool.random(using: &generator) { bytes += .random(in: 0...2, using: &generator) }
            if Int.random(in: 0..<100, using: &generator) == 0, let slot = activity.releaseSlot() {
                #expect(isSilent == (slot == .silent))
                isSilent = false
            }
            let changes = observe(bytes, at: now, isHeldBack: .random(using: &generator))
            if let silence = changes.silence {
                #expect(silence != isSilent)
                isSilent = silence
            }
            if changes.hasFirstBytes { firsts += 1 }
            #expect(activity.isSilent == isSilent)
        }
        #expect(firsts <= 1)
    }
}
