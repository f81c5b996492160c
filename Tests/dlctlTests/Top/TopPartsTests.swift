import ControlProtocol
import TaskModel
import TerminalScreen
import Testing

@testable import dlctl

@Suite struct RateHistoryTests {
    @Test("means are of whole periods; a missing second has the rate before it for a while")
    func means() {
        var history = RateHistory()
        for second: Int64 in 0..<4 { history.add(second * 100, at: second * 1000) }
        #expect(history.means(2, of: 2, at: 3_000) == [50, 250])
        #expect(history.means(8, of: 1, at: 7_000) == [0, 100, 200, 300, 300, 300, 300, nil])
        #expect(history.means(3, of: 1, at: 100_000) == [nil, nil, nil])
        #expect(history.means(0, of: 0, at: 0) == [])
    }

    @Test("a clock that is set back begins anew, and the samples are bounded")
    func bounds() {
        var history = RateHistory()
        for second: Int64 in 0..<5_000 { history.add(1, at: second * 1000) }
        #expect(history.means(5_000, of: 1, at: 4_999_000).count { $0 != nil } <= 1_204)
        history.add(7, at: 1_000)
        #expect(history.means(2, of: 1, at: 1_000) == [nil, 7])
    }
}

@Suite struct RateGraphTests {
    @Test("the scale is 1, 2 or 5 times a power of ten of a unit")
    func scale() {
        #expect(RateGraph.scale(above: 0) == 1024)
        #expect(RateGraph.scale(above: 1025) == 2048)
        #expect(RateGraph.scale(above: 300 << 20) == 500 << 20)
        #expect(RateGraph.scale(above: 501 << 10) == 1 << 20)
        #expect(RateGraph.scale(above: .max) == .max)
    }

    @Test("rates are columns from the bottom, and anything above 0 is visible")
    func columns() {
        var history = RateHistory()
        for (second, rate) in [Int64(0), 1, 512, 1024].enumerated() { history.add(rate, at: Int64(second) * 45_000) }
        let lines = RateGraph(width: 16, height: 2, unicode: true).lines(history, now: 135_000).map(\.text)
        #expect(lines == [" 1.0 KiB/s │   █", "           │ ▁██"])
        #expect(RateGraph(width: 16, height: 0, unicode: true).lines(history, now: 0).isEmpty)
    }
}

@Suite struct TopRowTests {
    @Test("running tasks come first in every order, and equal ones keep theirs")
    func order() {
        var fast = sampleTask(2, name: "b", done: 1, of: 10)
        fast.rate = 100
        fast.eta = 50
        var slow = sampleTask(1, name: "c", done: 9, of: 10)
        slow.rate = 1
        slow.eta = 5
        let tasks = [sampleTask(4, .queued, name: "a"), slow, fast, sampleTask(3, .queued, name: "A")]
        func ids(_ sort: TopQuery.Sort) -> [Int64] {
            TopRow.rows(tasks, sort: sort, byHost: false, collapsed: []).compactMap { $0.task?.id.rawValue }
        }
        #expect(ids(.start) == [4, 1, 2, 3])
        #expect(ids(.rate) == [2, 1, 4, 3])
        #expect(ids(.left) == [1, 2, 4, 3])
        #expect(ids(.progress) == [1, 2, 4, 3])
        #expect(ids(.name) == [2, 1, 4, 3])
    }

    @Test(
        "the host of a URL is its scheme, name and port",
        arguments: [
            ("https://Example.org/a", "https://example.org"), ("http://u:p@h:81?q", "http://h:81"),
            ("sftp://[::1]:22/x", "sftp://[::1]:22"), ("nonsense", "nonsense"), ("http://", "http://"),
        ])
    func host(url: String, host: String) {
        #expect(HostSum.host(of: url) == host)
    }
}

@Suite struct TopQueryTests {
    @Test("at rest only as many tasks are asked for as fit, and the queue in its order")
    func calls() {
        var query = TopQuery(rows: 20)
        let running = query.call(for: .running, found: 0)
        #expect(running?.limit == 20 && running?.filter?.states == [.active])
        #expect(query.call(for: .queued, found: 5)?.limit == 15)
        #expect(query.call(for: .queued, found: 5)?.order == .queue)
        #expect(query.call(for: .queued, found: 20) == nil)
        #expect(query.call(for: .ended, found: 0) == nil)
        query.search = "x"
        #expect(query.call(for: .queued, found: 0)?.order == nil)
        query.sort = .rate
        #expect(query.call(for: .running, found: 0)?.limit == TopQuery.maximumRows)
        query.states = .failed
        #expect(query.call(for: .running, found: 0) == nil)
        #expect(query.call(for: .ended, found: 0)?.newest == 20)
    }
}

@Suite struct TextPromptTests {
    private func text(_ keys: [Key], _ start: String = "") -> String {
        var prompt = TextPrompt(.search, text: start)
        for key in keys { _ = prompt.handle(key) }
        return prompt.text
    }

    @Test("a line is edited at its cursor")
    func edits() {
        #expect(text([.left, .left, .character("x"), .backspace, .delete], "abc") == "ac")
        #expect(text([.control("w")], "one two ") == "one ")
        #expect(text([.control("a"), .control("k")], "abc") == "")
        #expect(text([.left, .control("u")], "abc") == "c")
        #expect(text([.home, .backspace, .end, .delete], "abc") == "abc")
    }

    @Test("a combining mark joins its letter, and one Backspace removes both")
    func marks() {
        #expect(text([.character("e"), .character("\u{301}"), .character("x"), .backspace, .backspace]) == "")
    }

    @Test("the length is bounded")
    func bounded() {
        let paste = Key.paste(String(repeating: "x", count: 60_000))
        #expect(text([paste, paste]).count == 16_384)
    }
}
