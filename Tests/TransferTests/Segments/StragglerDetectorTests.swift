import Testing

@testable import Transfer

@Suite("Slow connections")
struct StragglerDetectorTests {
    private static let mebi = Double(1 << 20)

    private func subject(_ rate: Double, watched: Int64 = 2_000, rest: Int64 = 50 << 20) -> StragglerDetector.Subject {
        StragglerDetector.Subject(
            number: 1, watched: watched, rate: rate, rest: rest, hasNeighbour: true, isShared: true,
            neighbours: Self.mebi, others: Self.mebi)
    }

    private func replaces(_ subject: StragglerDetector.Subject, best: Double = 0) -> Bool {
        var connections = StragglerDetector()
        return connections.replaces(subject, best: best, setUp: 0.02, now: 0)
    }

    @Test("one that is four times slower than its neighbours is replaced, after a while and where it is worth it")
    func neighbours() {
        #expect(replaces(subject(Self.mebi / 5)))
        #expect(!replaces(subject(Self.mebi / 3)))
        #expect(!replaces(subject(Self.mebi / 5, watched: 1_000)))
        #expect(!replaces(subject(Self.mebi / 5, rest: 1000)))
    }

    @Test("a source's only connection may be slow, but not silent")
    func onlyOne() {
        func only(_ rate: Double, watched: Int64 = 4_000) -> StragglerDetector.Subject {
            var subject = subject(rate, watched: watched)
            (subject.hasNeighbour, subject.neighbours) = (false, 0)
            return subject
        }
        #expect(!replaces(only(10_000)))
        #expect(replaces(only(100)))
        #expect(!replaces(only(0, watched: 3_000)))
    }

    @Test("the only connection of all is held to the best that there was")
    func alone() {
        var alone = subject(Self.mebi / 5)
        (alone.hasNeighbour, alone.isShared, alone.neighbours, alone.others) = (false, false, 0, 0)
        #expect(replaces(alone, best: Self.mebi))
        #expect(!replaces(alone, best: 0))
    }

    @Test("ever later, and not for ever")
    func limits() {
        var connections = StragglerDetector()
        var times: [Int64] = []
        for now in stride(from: Int64(0), to: 2_000_000, by: 1_000) {
            if connections.replaces(subject(0), best: 0, setUp: 0, now: now) { times.append(now) }
        }
        #expect(times.count == 8)
        #expect(zip(times.dropFirst(2), times.dropFirst()).allSatisfy { $0 > 2 * $1 - 1_000 })
    }
}
