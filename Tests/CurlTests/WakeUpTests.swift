import Synchronization
import TestSupport
import Testing

@testable import Curl

@Suite("Wake-up")
struct WakeUpTests {
    @Test("of eight threads that wait for a while, one takes each signal, and the others wait no longer than that")
    func race() async throws {
        let wakeUp = try WakeUp(counting: true)
        let ended = try WakeUp(counting: true)
        let taken = Atomic<Int>(0)
        for _ in 0..<200 {
            for _ in 0..<8 {
                try startThread {
                    if wakeUp.wait(atMost: 5) { taken.wrappingAdd(1, ordering: .relaxed) }
                    ended.signal()
                }
            }
            wakeUp.signal()
            let allEnded = await waiting { (0..<8).allSatisfy { _ in ended.wait(atMost: 10_000) } }
            #expect(allEnded)
            // On a busy machine all threads may have timed out before the signal.
            if taken.exchange(0, ordering: .relaxed) == 0 { wakeUp.wait() }
            #expect(!wakeUp.wait(atMost: 0))
        }
    }

    @Test("signals that do not count are taken at once, and none is waited for")
    func notCounting() throws {
        let wakeUp = try WakeUp(counting: false)
        for _ in 0..<3 { wakeUp.signal() }
        #expect(wakeUp.wait(atMost: 0))
        #expect(!wakeUp.wait(atMost: 0))
        wakeUp.wait()
    }

    @Test("signals that count are taken one by one")
    func counting() throws {
        let wakeUp = try WakeUp(counting: true)
        for _ in 0..<3 { wakeUp.signal() }
        wakeUp.wait()
        #expect(wakeUp.wait(atMost: 0))
        #expect(wakeUp.wait(atMost: 0))
        #expect(!wakeUp.wait(atMost: 0))
    }
}
