import Testing

@testable import TaskQueue

@Suite("Fair shares")
struct FairShareTests {
    /// Whoever of `keys` is next.
    private func next(_ share: FairShare<String>, _ keys: String...) -> String? {
        keys.min { share.weight(of: $0) < share.weight(of: $1) }
    }

    @Test("whoever comes anew may start so many before the others start again, then they take turns")
    func credit() {
        var share = FairShare<String>(credit: 4)
        for _ in 0..<10 { share.start("old") }
        for _ in 0..<4 {
            #expect(next(share, "old", "new") == "new")
            share.start("new")
            share.end("old")
        }
        // 6 of the old and 4 of the new run.
        #expect(share.weight(of: "old") == 6 && share.weight(of: "new") == 4)
        for _ in 0..<2 { share.start("new") }
        #expect(share.weight(of: "old") == share.weight(of: "new"))
    }

    @Test("whoever runs nothing and has nothing to start comes anew; others do not")
    func forgetting() {
        var share = FairShare<String>(credit: 2)
        for key in ["gone", "waits", "runs"] {
            for _ in 0..<3 { share.start(key) }
        }
        for key in ["gone", "waits"] {
            for _ in 0..<3 { share.end(key) }
        }
        share.forgetIdle(but: ["waits"])
        #expect(share.count == 2)
        #expect(share.weight(of: "gone") == -2 && share.weight(of: "waits") == 0 && share.weight(of: "runs") == 3)
    }
}
