import Testing

@testable import Transfer

@Suite("Which of its sources a download asks")
struct DownloadSourceTests {
    private func sources(_ mirrors: Int) -> DownloadSources {
        var request = TransferRequest(url: "http://own/file")
        request.mirrors = (1...mirrors).map { "http://mirror\($0)/file" }
        return DownloadSources(request)
    }

    private static let second: Int64 = 1_000_000

    /// Returns the number of the source that replaces or joins the own one, whose throughput is 1 MB/s.
    private func better(
        in sources: DownloadSources, seconds: Int64, isShared: Bool = false, mayReturn: Bool = true
    ) -> Int? {
        sources.better(
            at: 0, than: Double(Self.second), left: seconds * Self.second, users: [0], isShared: isShared,
            mayReturn: mayReturn)?.number
    }

    @Test("an untried one is tried where ten seconds are left, and twice as many after each trial that brought less")
    func trials() {
        var sources = sources(3)
        #expect(better(in: sources, seconds: 9) == nil && better(in: sources, seconds: 10) == 1)
        sources[1].record(rate: 1000)
        #expect(better(in: sources, seconds: 19) == nil && better(in: sources, seconds: 20) == 2)
        sources[2].record(rate: 1000)
        #expect(better(in: sources, seconds: 39) == nil && better(in: sources, seconds: 40) == 3)
        sources[3].record(rate: 1000)
        #expect(better(in: sources, seconds: 1_000) == nil)
    }

    @Test("a single source that sends no ranges is left for an untried one where 80 seconds are left")
    func noWayBack() {
        let sources = sources(1)
        #expect(better(in: sources, seconds: 79, mayReturn: false) == nil)
        #expect(better(in: sources, seconds: 80, mayReturn: false) == 1)
        #expect(better(in: sources, seconds: 10, isShared: true, mayReturn: false) == 1)
    }

    @Test("a source that is known to be faster is taken, ever more reluctantly")
    func known() {
        var sources = sources(1)
        sources[1].record(rate: 1.5 * Double(Self.second))
        #expect(better(in: sources, seconds: 1) == nil && better(in: sources, seconds: 2) == 1)
        sources.recordReturn()
        #expect(better(in: sources, seconds: 1_000) == nil)
        sources[1].record(rate: 2.1 * Double(Self.second))
        #expect(better(in: sources, seconds: 2) == 1)
        for _ in 0..<10 { sources.recordReturn() }
        sources[1].record(rate: 3.9 * Double(Self.second))
        #expect(better(in: sources, seconds: 1_000) == nil)
        sources[1].record(rate: 4.1 * Double(Self.second))
        #expect(better(in: sources, seconds: 2) == 1)
    }

    @Test("F80: one that serves a single connection gets no second one for as long as that is known")
    func singleService() {
        var sources = sources(1)
        sources[0].recordSingleService(until: 1_000)
        func best(at now: Int64, _ users: [Int: (count: Int, rate: Double)]) -> Int? {
            sources.best(at: now, users: users, where: { _ in true })?.number
        }
        #expect(best(at: 0, [:]) == 0)
        #expect(best(at: 0, [0: (1, 1e6), 1: (1, 1e3)]) == 1)
        #expect(best(at: 1_000, [0: (1, 1e6), 1: (1, 1e3)]) == 0)
        sources[1].recordSingleService(until: 1_000)
        #expect(best(at: 0, [0: (1, 1e6), 1: (1, 1e3)]) == nil)
    }

    @Test("one that rests or has another file is not taken")
    func unusable() {
        var sources = sources(2)
        sources[1].fail(at: 0)
        #expect(better(in: sources, seconds: 100) == 2)
        sources[2].drop()
        #expect(better(in: sources, seconds: 100) == nil)
    }
}
