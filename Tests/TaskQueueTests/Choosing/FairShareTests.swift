import Testing

@testable import TaskQueue

@Suite("Fair shares")
struct FairShareTests {
    /// Returns the key that is served next.
    private func next(_ share: FairShare<String>, _ keys: String...) -> String? {
        keys.min { share.claim(of: $0) < share.claim(of: $1) }
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
        // 6 tasks of `old` and 4 of `new` run.
        for _ in 0..<2 {
            #expect(next(share, "old", "new") == "new")
            share.start("new")
        }
        // Six tasks of each run.
        #expect(next(share, "old", "new") == "old")
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
        #expect(next(share, "runs", "waits", "gone") == "gone")
        #expect(next(share, "runs", "waits") == "waits")
    }

    @Test("where one place is taken in turns by many, each has it as often")
    func onePlace() {
        var share = FairShare<String>(credit: 1)
        let keys = (0..<5).map { "\($0)" }
        var order = ""
        for _ in 0..<15 {
            guard let next = keys.min(by: { share.claim(of: $0) < share.claim(of: $1) }) else { return }
            share.start(next)
            share.end(next)
            order += next
        }
        #expect(order == "012340123401234")
    }
}
