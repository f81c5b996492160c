import Glibc
import TestSupport
import Testing

@testable import Transfer

/// Every lie of the catalogue, replayed as events without a socket.
@Suite("A download's state machine with the responses of misbehaving servers")
struct MisbehavingServerReplayTests {
    /// The lies of every suite.
    static let lies: [Lie] =
        MisbehavingServerRangeTests.lies + MisbehavingServerBodyTests.lies + [MisbehavingServerBodyTests.trailers]
        + MisbehavingServerVersionTests.lies + MisbehavingServerHostTests.limits + MisbehavingServerHostTests.late
        + MisbehavingServerHostTests.troubles + MisbehavingServerHostTests.redirects
        + MisbehavingServerDigestTests.corruptions + MisbehavingServerDigestTests.statements
        + MisbehavingServerChaosTests.lies

    /// The seeds to test; `REPLAY_SEEDS=7-7` selects others.
    private static let seeds: Range<UInt64> = {
        let words =
            getenv("REPLAY_SEEDS").map { String(cString: $0).split(separator: "-").compactMap { UInt64($0) } } ?? []
        return words.count == 2 && words[0] <= words[1] ? words[0]..<words[1] + 1 : 0..<2
    }()

    @Test("a download is right or fails, in whatever order the events of a lie come", arguments: lies)
    func withstands(lie: Lie) {
        var events = 0
        for replay in MisbehavingServerReplay.all(of: lie, seeds: Self.seeds) {
            let outcome = replay.run()
            events += outcome.events.count
            switch outcome.verdict {
            case .right, .failed: break
            case .wrong, .stuck:
                let words = outcome.events.suffix(400).joined(separator: " ")
                Issue.record("\(replay): \(outcome.verdict) after \(outcome.events.count) events: \(words)")
            }
        }
        if getenv("LIAR_VERBOSE") != nil {
            print("REPLAY \(lie.testDescription): \(events) events")
        }
    }

    @Test("every lie is replayed, none under the name of another")
    func completeness() {
        let names = Self.lies.map { "\($0.testDescription) \($0.lives)" }
        #expect(Set(names).count == names.count)
        #expect(names.count > 250)
    }
}
