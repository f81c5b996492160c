import ControlProtocol
import TaskModel
import TerminalScreen
import Testing

@testable import dlctl

@Suite struct TopViewTests {
    private func text(_ model: TopModel, unicode: Bool = true) -> [String] {
        let view = TopView(model: model, unicode: unicode, now: 2_000, clock: { "T\($0)" })
        return view.frame().lines.map { line in
            String(line.text.reversed().drop { $0 == " " }.reversed())
        }
    }

    private var active: TaskStatus {
        var task = sampleTask(1, name: "a.iso", done: 25 << 20, of: 100 << 20)
        task.rate = 2 << 20
        task.eta = 37
        task.phase = .transferring
        return task
    }

    @Test("at 80 columns: rates, counts, graph, columns, tasks with their reasons, keys")
    func usual() {
        var waiting = sampleTask(
            2, .waiting, reason: .retry, name: "b.iso", error: TaskFailure(code: .dns, message: "x"))
        waiting.notBefore = 12_000
        var model = TopModel([active, waiting, sampleTask(3, .paused, reason: .user, name: "長い名前.iso")], rows: 14)
        model.receive(
            .round(
                TopFeed.Round(
                    query: model.query, status: sampleStatus(["active": 1, "waiting": 1], down: 2 << 20),
                    tasks: model.rows.compactMap(\.task), hasMore: true, detail: nil, moment: 1_900)))
        #expect(
            text(model) == [
                "dld 0.1.0  up 1 min 5 s                                     ↓ 2.0 MiB/s  ↑ 0 B/s",
                "1 active, 1 waiting",
                " 2.0 MiB/s │                                                                   █",
                "           │                                                                   █",
                "    ID  PROGRESS              RATE     LEFT      SIZE  NAME",
                ">    1  ██▌░░░░░░░  25%  2.0 MiB/s     0:37   100 MiB  a.iso",
                "     2  name does not resolve, 1st try in 10 s         b.iso",
                "     3  paused                                         長い名前.iso",
                "", "", "", "",
                "1 of 3 and more",
                "h help  q quit  Enter details  p pause  r resume  c cancel  t retry  a add",
            ])
    }

    @Test("tasks that wait or are paused have their size, and the reason of a narrow screen comes first")
    func sizesOfOthers() {
        var waiting = sampleTask(
            2, .waiting, reason: .retry, name: "b.iso", done: 1 << 20, of: 3 << 20,
            error: TaskFailure(code: .dns, message: "x"))
        waiting.notBefore = 12_000
        let paused = sampleTask(3, .paused, reason: .user, name: "c.iso", done: 1 << 20, of: 4 << 20)
        let unknown = sampleTask(4, .paused, reason: .user, name: "d.iso", done: 1 << 20)
        let tasks = [waiting, paused, unknown, sampleTask(5, .paused, reason: .user, name: "e.iso")]
        #expect(
            text(TopModel(tasks, rows: 20)).filter { $0.contains("iso") } == [
                ">    2  name does not resolve, 1st try in 10 s   3.0 MiB  b.iso",
                "     3  paused 25%                            4.0 MiB  c.iso",
                "     4  paused                                1.0 MiB  d.iso",
                "     5  paused                                         e.iso",
            ])
        #expect(
            text(TopModel(tasks, columns: 58, rows: 20)).filter { $0.contains("iso") }.prefix(2) == [
                ">    2  name does not resolve, 1st try in 10 s  b.iso", "     3  paused 25%        4.0 MiB  c.iso",
            ])
    }

    @Test("a long name takes the free space of its line, and hosts and batches no more than they need")
    func longNames() {
        let long = String(repeating: "long-", count: 12) + "end."
        let lines = text(TopModel([sampleTask(1, .paused, reason: .user, name: long)], rows: 20))
        #expect(lines.contains(">    1  paused  " + long), "\(lines)")
        var task = sampleTask(2, name: String(repeating: "long-", count: 14) + "end.iso", done: 1, of: 2)
        (task.batch, task.url) = ("b", "https://h/a")
        let wide = text(TopModel([task, sampleTask(3, .queued, name: "👍🏽")], columns: 160, rows: 20))
        #expect(wide.contains { $0.contains("long-end.iso") && $0.hasSuffix("https://hb") }, "\(wide)")
    }

    @Test("text behind a name begins at its column, whatever width the terminal gives the name")
    func placed() {
        let columns = TopColumns(width: 130, unicode: true, tasks: [sampleTask(2, name: "👍🏽.iso")], isGrouped: false)
        let line = columns.line(.task(sampleTask(2, name: "👍🏽.iso")), isSelected: true, now: 0)
        let host = line.spans.last
        #expect(host?.text == "https://example.org" && host?.column == 111 && line.width == 130)
        #expect(line.fitted(120).text.hasSuffix("https://…") && line.fitted(120).width == 120)
    }

    @Test("without UTF-8 the signs are ASCII")
    func ascii() {
        let lines = text(TopModel([active], rows: 14), unicode: false)
        #expect(lines.joined().utf8.allSatisfy { $0 < 0x80 }, "\(lines)")
        #expect(lines.contains { $0.contains("[##      ]  25%") }, "\(lines)")
    }

    @Test("no line is wider than the screen, and there are never more lines", arguments: [1, 20, 40, 79, 80, 120, 200])
    func sizes(width: Int) {
        let tasks = [active] + (2...50).map { sampleTask($0, .waiting, name: String(repeating: "長い", count: 60)) }
        for rows in [1, 2, 3, 5, 8, 13, 24, 60] {
            for keys in ["", "H", "h", "\r", "/" + String(repeating: "長", count: 150), "c"] {
                var model = TopModel(tasks, columns: width, rows: rows)
                model.type(keys)
                let frame = TopView(model: model, unicode: true, now: 0).frame()
                #expect(frame.lines.count <= rows)
                #expect(frame.lines.allSatisfy { $0.width <= width }, "\(rows) \(keys)")
                #expect(frame.cursor.map { $0.column < width && $0.row < rows } ?? true)
            }
        }
    }

    @Test("a hostile name cannot drive the terminal")
    func hostile() {
        let name = "a\u{1B}[2J\u{202E}\nb"
        var model = TopModel([sampleTask(1, .queued, name: name)], columns: 200)
        #expect(text(model).contains { $0.contains(#"a\u{1B}[2J\u{202E}\nb"#) })
        model.type("/\u{202E}x")
        #expect(text(model).contains(#"search in URL and path: \u{202E}x"#))
    }

    @Test("the line of a daemon that is away says since when, and what became of the last command")
    func away() {
        var model = TopModel([active])
        model.receive(.away(since: 7, "waiting for it to start again"))
        #expect(text(model).contains("the daemon is away since T7; waiting for it to start again"))
        model.receive(.result(TopMessage("the command was not sent", isRefusal: true)))
        #expect(text(model).contains("the daemon is away since T7; the command was not sent"))
    }

    @Test("rows by host have sums")
    func hosts() {
        var other = sampleTask(9, .queued)
        other.url = "http://u:p@OTHER.example:81/x?y"
        var model = TopModel([active, other])
        model.type("H")
        let lines = text(model)
        #expect(lines.contains { $0.contains("▾ http://other.example:81  1 task, 0 active, 0 B/s") }, "\(lines)")
        #expect(lines.contains { $0.contains("▾ https://example.org  1 task, 1 active, 2.0 MiB/s") }, "\(lines)")
    }

    @Test("at 40 columns the sums of a host lose words before its rate and the end of its name are cut")
    func narrowHosts() {
        var model = TopModel([active], columns: 40)
        model.type("H")
        #expect(text(model).contains("> ▾ https://example.org  2.0 MiB/s"), "\(text(model))")
        var long = active
        long.url = "https://mirror.of.a.long.name.example.org:8443/a"
        model = TopModel([long], columns: 40)
        model.type("H")
        #expect(text(model).contains { $0.hasSuffix("org:8443  2.0 MiB/s") }, "\(text(model))")
    }

    @Test("the help fits a small screen, and a wide one has more words", arguments: [(40, 15), (60, 20), (80, 24)])
    func help(columns: Int, rows: Int) {
        var model = TopModel([active], columns: columns, rows: rows)
        model.type("?")
        let lines = text(model)
        #expect(lines.count == rows && !lines.contains { $0.contains("…") }, "\(lines)")
        #expect(lines.contains { $0.contains("remove the task" + (columns < 60 ? "" : "; the finished")) }, "\(lines)")
        #expect(lines.contains { $0.contains("quit") } && lines.last == "any key closes the help", "\(lines)")
    }

    @Test("failed tasks are counted with the key that shows them", arguments: [(80, "(e shows them)"), (40, "(e)")])
    func failed(columns: Int, words: String) {
        var model = TopModel([active], columns: columns)
        func receive() {
            model.receive(
                .round(
                    TopFeed.Round(
                        query: model.query, status: sampleStatus(["active": 1, "failed": 2, "completed": 3]),
                        tasks: [], hasMore: false, detail: nil, moment: 1_900)))
        }
        receive()
        #expect(text(model)[1].hasPrefix("1 active, 2 failed \(words), 3 com"), "\(text(model)[1])")
        model.type("e")
        receive()
        #expect(text(model)[1].hasPrefix("1 active, 2 failed, 3 com") && text(model)[1].hasSuffix("[failed]"))
    }

    @Test("a long refusal takes two lines, in a prompt too, and never the line of the prompt")
    func longRefusals() {
        let refusal = TopMessage(String(repeating: "word ", count: 20) + "end", isRefusal: true)
        var model = TopModel([active], columns: 60, rows: 20)
        model.receive(.result(refusal))
        let first = String(repeating: "word ", count: 12).dropLast()
        let rest = String(repeating: "word ", count: 8) + "end"
        #expect(text(model).suffix(2) == [String(first), rest] && text(model).count == 20)
        #expect(model.type("ax\r") == .perform(.add(["x"])))
        model.receive(.result(refusal, to: .add(["x"])))
        #expect(text(model).suffix(3) == ["add URL: x", String(first), rest] && text(model).count == 20)
        let cursor = TopView(model: model, unicode: true, now: 0).frame().cursor
        #expect(cursor.map { [$0.row, $0.column] } == [17, 10])
        model.receive(.result(TopMessage(String(repeating: "長", count: 35)), to: nil))
        #expect(text(model).suffix(2) == [String(repeating: "長", count: 30), String(repeating: "長", count: 5)])
    }

    @Test("details are facts, the map of segments, connections, limits and attempts")
    func details() {
        let live = LiveTransfer(
            connections: [
                LiveConnection(address: "192.0.2.1:443", first: 0, next: 25 << 20, end: 50 << 20, rate: 1 << 20)
            ],
            segments: [LiveSegment(first: 0, end: 25 << 20)],
            rateLimits: [LiveRateLimit(scope: .host, rate: 5 << 20)])
        let attempt = TaskAttempt(
            startedAt: 0, endedAt: 1_500, address: "192.0.2.1:443", bytes: 1 << 20, name: 3, connect: 9, tls: 20,
            firstByte: 41, httpVersion: "2", status: 503, error: TaskFailure(code: .http(503), message: "busy"))
        let detail = TaskDetail(active, history: [attempt], live: live, waitingFor: "waits for a slot")
        let lines = TopDetails(detail: detail, width: 120, unicode: false).lines(now: 0).map(\.text)
        for part in [
            "download 1  a.iso", "waits for a slot", "192.0.2.1:443", "25.0 MiB", "host 5.0 MiB/s", "http-503", "####",
            "....",
        ] { #expect(lines.contains { $0.contains(part) }, "\(part)") }
        let bare = TopDetails(detail: TaskDetail(active), width: 80, unicode: true).lines(now: 0).map(\.text)
        #expect(!bare.contains { $0.contains("attempt") && $0.contains("took") })
    }
}
