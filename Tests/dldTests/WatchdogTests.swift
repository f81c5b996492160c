import Synchronization
import Testing

@testable import dld

@Suite("The watchdog of the daemon's parts")
struct WatchdogTests {
    @Test("parts that turn over are alive")
    func alive() async {
        let turns = Atomic<Int>(0)
        let part = { @Sendable (name: String) in
            Watchdog.Part(name: name) { turns.wrappingAdd(1, ordering: .relaxed) }
        }
        let watchdog = Watchdog([part("a"), part("b")], timeout: .seconds(600))
        #expect(await watchdog.hangingParts() == [])
        #expect(turns.load(ordering: .relaxed) == 2)
    }

    @Test("a part that does not answer in time is named")
    func hanging() async {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let watchdog = Watchdog(
            [
                .init(name: "a") {}, .init(name: "b") { for await _ in gate { return } }, .init(name: "c") {},
            ], timeout: .milliseconds(50))
        #expect(await watchdog.hangingParts() == ["b"])
        open.finish()
    }

    @Test("an idle daemon is checked seldom, unless the administrator's time is longer still")
    func idle() {
        let watchdog = Watchdog([], timeout: .seconds(180))
        #expect(watchdog.interval(isIdle: false) == .seconds(60) && watchdog.timeout(isIdle: false) == .seconds(180))
        #expect(watchdog.interval(isIdle: true) == .seconds(600) && watchdog.timeout(isIdle: true) == .seconds(1_200))
        #expect(Watchdog([], timeout: .seconds(3_600)).timeout(isIdle: true) == .seconds(3_600))
    }
}
