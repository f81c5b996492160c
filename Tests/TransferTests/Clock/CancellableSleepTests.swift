import Curl
import Foundation
import Testing

@testable import Transfer

@Suite("Sleeping until a moment", .serialized, .timeLimit(.minutes(1)))
struct CancellableSleepTests {
    private let clock = RetryClock.system

    @Test("a sleep ends after its time, and at once where there is none")
    func ends() async {
        let begun = clock.now()
        await clock.sleep(30)
        #expect(clock.now().milliseconds(since: begun) >= 29)
        await clock.sleep(0)
        await clock.sleep(-1)
    }

    @Test("a cancelled sleep ends, whether it was cancelled before it began or while it lasts")
    func cancelled() async {
        for isBegun in [false, true] {
            let task = Task { [clock] in await clock.sleep(86_400_000) }
            if isBegun { await clock.sleep(5) }
            task.cancel()
            await task.value
        }
    }

    @Test("20,000 sleeps of a day that were cancelled leave no memory taken")
    func nothingStays() async throws {
        try await cancelSleeps(2_000)
        // Memory of concurrent tests varies between rounds; a leak of the sleeps would show in each.
        var least = Int.max
        for _ in 0..<5 where least >= 4 << 20 {
            let before = try residentBytes()
            try await cancelSleeps(20_000)
            least = min(least, try residentBytes() - before)
        }
        #expect(least < 4 << 20, "\(least) bytes")
    }

    private func cancelSleeps(_ count: Int) async throws {
        for _ in 0..<count {
            let task = Task { [clock] in await clock.sleep(86_400_000) }
            await Task.yield()
            task.cancel()
            await task.value
        }
    }

    private func residentBytes() throws -> Int {
        let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        return try #require(Int(words[1])) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
