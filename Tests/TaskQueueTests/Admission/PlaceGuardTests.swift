import Glibc
import Synchronization
import TaskModel
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Judging places off the clients' threads")
struct PlaceGuardTests {
    @Test("a look that hangs delays one call, none after it while it hangs, and is forgotten once it returns")
    func hanging() async throws {
        let clock = ManualClock()
        let placeGuard = PlaceGuard(clock: clock.clock)
        let isReleased = Mutex(false)
        let hanging = Task {
            await placeGuard.evaluate {
                while !isReleased.withLock({ $0 }) { usleep(1_000) }
                return 1
            }
        }
        let isOver = Mutex(false)
        let verdict = Task {
            let verdict = await hanging.value
            isOver.withLock { $0 = true }
            return verdict
        }
        try await eventually(that: "the time is over") {
            clock.advance(by: 1_000)
            return isOver.withLock { $0 }
        }
        #expect(await verdict.value == nil)
        // The second call does not wait for the first.
        #expect(await placeGuard.evaluate { 2 } == nil)
        isReleased.withLock { $0 = true }
        try await eventually(that: "places are judged again") { await placeGuard.evaluate { 3 } == 3 }
    }
}
