import ControlProtocol
import TaskModel
import TerminalScreen
import Testing

@testable import dlctl

/// Returns the status of a daemon with these counts.
func sampleStatus(_ tasks: [String: Int] = ["active": 1], down: Int64 = 0) -> DaemonStatus {
    DaemonStatus(
        version: "0.1.0", pid: 1, uptime: 65_000, socket: "/s", stateDirectory: "/d", downloadDirectory: "/d",
        libcurl: "8", tasks: tasks, downloadRate: down, uploadRate: 0, lastEvent: 0)
}

extension TopModel {
    /// A model that has received these tasks.
    init(_ tasks: [TaskStatus], columns: Int = 80, rows: Int = 24, hasMore: Bool = false) {
        self.init(query: TopQuery(), size: ScreenSize(columns: columns, rows: rows))
        receive(tasks, hasMore: hasMore)
    }

    mutating func receive(_ tasks: [TaskStatus], hasMore: Bool = false, detail: TaskDetail? = nil) {
        receive(
            .round(
                TopFeed.Round(
                    query: query, status: sampleStatus(), tasks: tasks, hasMore: hasMore, detail: detail, moment: 1_000)
            ))
    }

    /// Types keys and returns the last effect.
    @discardableResult
    mutating func type(_ text: String) -> Effect? {
        var effect: Effect?
        for character in text { effect = handle(character == "\r" ? .enter : .character(character)) }
        return effect
    }
}

@Suite struct TopModelTests {
    private let tasks = (1...40).map { sampleTask(Int64($0), .queued) }

    @Test("the selection moves and stays on the screen, and only the rows of the screen and the next are asked for")
    func moves() {
        var model = TopModel(tasks)
        let page = TopLayout(size: model.size).listRows
        model.receive((1...Int64(page + 1)).map { sampleTask($0, .queued) })
        #expect(model.query.rows <= max(24, page + 1), "a screen that nobody scrolls asks for few rows")
        model.receive((1...40).map { sampleTask($0, .queued) })
        #expect(model.handle(.down) == nil && model.selection == 1 && model.offset == 0)
        _ = model.handle(.pageDown)
        #expect(model.selection == 1 + page && model.offset == 2)
        _ = model.handle(.up)
        _ = model.handle(.home)
        #expect(model.selection == 0 && model.offset == 0)
        _ = model.handle(.up)
        #expect(model.selection == 0)
        #expect(model.query.rows <= 2 * page + 2 && model.query.rows > page)
    }

    @Test("while the daemon is away, the rows show the time since then")
    func shownTime() {
        var model = TopModel(tasks)
        #expect(model.shownTime(9_000) == 9_000)
        model.receive(.away(since: 2_000, "gone"))
        #expect(model.shownTime(9_000) == 2_000)
        model.receive(tasks)
        #expect(model.shownTime(9_000) == 9_000)
    }

    @Test("a selected task that is no longer among the rows is looked for, and no other takes its place meanwhile")
    func looksForSelection() {
        var model = TopModel((1...30).map { sampleTask($0, .queued) }, hasMore: true)
        #expect(model.selected?.task?.id == TaskID(1))
        model.receive((2...31).map { sampleTask($0, .queued) }, hasMore: true)
        #expect(model.selected == nil && model.query.rows == TopQuery.maximumRows)
        model.receive((2...40).map { sampleTask($0, .queued) } + [sampleTask(1, .paused)])
        #expect(model.selected?.task?.id == TaskID(1))
        model.receive((2...40).map { sampleTask($0, .queued) })
        #expect(model.selected?.task != nil)
    }

    @Test("End asks for all rows that may be shown and stays at the last one as they arrive")
    func end() {
        var model = TopModel(tasks, hasMore: true)
        _ = model.handle(.end)
        #expect(model.selection == 39 && model.query.rows == TopQuery.maximumRows)
        model.receive((1...100).map { sampleTask(Int64($0), .queued) })
        #expect(model.selection == 99)
        _ = model.handle(.up)
        model.receive((1...120).map { sampleTask(Int64($0), .queued) })
        #expect(model.selection == 98)
    }

    @Test("the selection follows its task to another row, and stays in place when the task is gone")
    func follows() {
        var model = TopModel(tasks)
        _ = model.handle(.down)
        model.receive(Array(tasks[5...] + tasks[..<5]))
        #expect(model.selected?.task?.id == TaskID(2))
        let index = model.selection
        model.receive(tasks.filter { $0.id != TaskID(2) })
        #expect(model.selection == index)
        model.receive([])
        #expect(model.selection == 0 && model.selected == nil)
    }

    @Test("commands apply to the selected task; cancel asks first")
    func commands() {
        var model = TopModel(tasks)
        #expect(model.type("p") == .perform(.change(.pause, TaskID(1))))
        #expect(model.type("r") == .perform(.change(.resume, TaskID(1))))
        #expect(model.type("t") == .perform(.change(.retry, TaskID(1))))
        #expect(model.type("c") == nil && model.type("n") == nil && model.mode == .list)
        #expect(model.type("cy") == .perform(.change(.cancel, TaskID(1))))
        #expect(model.type("D") == nil)
        guard case .question(let text, _) = model.mode else { return #expect(Bool(false), "D asks for no question") }
        #expect(text.hasPrefix("remove task 1 (its part is deleted), ") && text.hasSuffix("? y or n"), "\(text)")
        #expect(model.type("n") == nil && model.message == TopMessage("nothing was changed"))
        #expect(model.type("Dy") == .perform(.change(.remove, TaskID(1))))
        #expect(model.type("+") == .perform(.priority(TaskID(1), .high)))
        #expect(model.type("+") == .perform(.priority(TaskID(1), .now)))
        #expect(model.type("+") == nil)
        #expect(model.type("P") == .perform(.priority(TaskID(1), .low)))
        #expect(model.type("-") == nil)
        for (keys, action) in [
            ("l500K", .rate(TaskID(1), 512_000)), ("lnone", .rate(TaskID(1), nil)), ("lconfig", .rate(TaskID(1), nil)),
            ("L2M", .downloadRate(.limit(2 << 20))), ("Lnone", .downloadRate(.unlimited)),
            ("Lconfig", .downloadRate(.configured)),
            ("ahttps://a.example/1 https://a.example/2", .add(["https://a.example/1", "https://a.example/2"])),
        ] as [(String, TopAction)] {
            #expect(model.type(keys + "\r") == .perform(action))
            model.receive(.result(TopMessage("done"), to: action))
            #expect(model.mode == .list && model.message == TopMessage("done"))
        }
    }

    @Test("what the daemon refuses stays in the prompt to be corrected; the answer to another change does not close it")
    func refusedInput() {
        var model = TopModel(tasks)
        #expect(model.type("p") == .perform(.change(.pause, TaskID(1))))
        #expect(model.type("aftp:bad\r") == .perform(.add(["ftp:bad"])))
        #expect(model.type("xq\r") == nil, "keys wait for the answer")
        model.receive(.result(TopMessage("task 1 paused"), to: .change(.pause, TaskID(1))))
        model.receive(.result(TopMessage("has no //", isRefusal: true), to: .add(["ftp:bad"])))
        guard case .prompt(let prompt) = model.mode else { return #expect(Bool(false), "the prompt is gone") }
        #expect(prompt.text == "ftp:bad" && model.message?.text == "has no //")
        let lines = TopView(model: model, unicode: true, now: 0).frame().lines.map(\.text)
        #expect(lines.suffix(2) == ["add URL: ftp:bad", "has no //"])
        #expect(model.type("2\r") == .perform(.add(["ftp:bad2"])) && model.message == nil)
        _ = model.handle(.escape)
        #expect(model.mode == .list)
        model.receive(.result(TopMessage("added task 2"), to: .add(["ftp:bad2"])))
        #expect(model.mode == .list && model.message?.text == "added task 2")
    }

    @Test("without a task a command says so")
    func nothing() {
        var model = TopModel([])
        for key in ["p", "c", "D", "l", "+"] {
            #expect(model.type(key) == nil && model.mode == .list)
            #expect(model.message == TopMessage("there is no task", isRefusal: true))
        }
    }

    @Test("a key without a meaning names the help", arguments: ["x", "1", "D1x"])
    func unknown(keys: String) {
        var model = TopModel(tasks)
        model.type(keys)
        #expect(model.message == TopMessage("this key has no effect here; ? for help"))
        _ = model.handle(.down)
        #expect(model.message == nil)
    }

    @Test("a wrong rate keeps the prompt and says what is expected")
    func wrongRate() {
        var model = TopModel(tasks)
        #expect(model.type("lmuch\r") == nil)
        #expect(model.message?.text.hasPrefix(#""much" is not a limit; give bytes per second as in 500K"#) == true)
        guard case .prompt = model.mode else { return #expect(Bool(false), "the prompt is gone") }
        _ = model.handle(.escape)
        #expect(model.mode == .list)
    }

    @Test("search, batch, states and order change the query; Esc clears the filters and never quits")
    func filters() {
        var model = TopModel(tasks)
        model.type("/ iso \r")
        #expect(model.query.search == "iso")
        model.type("bnightly\r")
        model.type("f")
        model.type("s")
        #expect(model.query.batch == "nightly" && model.query.states == .active && model.query.sort == .rate)
        #expect(model.handle(.escape) == nil && model.query.batch == nil && model.query.search == nil)
        #expect(model.query.states == .open)
        model.type("e")
        #expect(model.query.states == .failed)
        model.type("e")
        #expect(model.query.states == .open)
        #expect(model.handle(.escape) == nil && model.mode == .list)
        model.type("/" + String(repeating: "x", count: 1_025) + "\r")
        #expect(model.message?.text == "the text is longer than 1024 bytes" && model.query.search == nil)
        _ = model.handle(.escape)
        #expect(model.type("q") == .quit)
    }

    @Test("an answer to an earlier query is not shown")
    func late() {
        var model = TopModel(tasks)
        let old = model.query
        model.type("f")
        let round = TopFeed.Round(
            query: old, status: sampleStatus(), tasks: [], hasMore: false, detail: nil, moment: 2_000)
        model.receive(.round(round))
        #expect(model.rows.count == 40)
    }

    @Test("pasted text is no command, and in a prompt its lines are words")
    func paste() {
        var model = TopModel(tasks)
        #expect(model.handle(.paste("cy\rq")) == nil && model.mode == .list)
        model.type("a")
        _ = model.handle(.paste("https://a/1\r\nhttps://a/2\u{1B}[2J\n"))
        #expect(model.handle(.enter) == .perform(.add(["https://a/1", "https://a/2[2J"])))
    }

    @Test("a daemon that goes away is away since the first time, until it answers")
    func away() {
        var model = TopModel(tasks)
        model.receive(.away(since: 5_000, "waiting"))
        model.receive(.away(since: 9_000, "waiting"))
        #expect(model.connection == .away(since: 5_000, "waiting"))
        model.receive(tasks)
        #expect(model.connection == .live && model.message == TopMessage("the daemon is back"))
    }

    @Test("Enter opens the details, from which commands work, and Esc goes back")
    func details() {
        var model = TopModel(tasks)
        model.type("\r")
        #expect(model.mode == .details && model.query.detail == TaskID(1))
        #expect(model.type("p") == .perform(.change(.pause, TaskID(1))))
        model.receive(tasks, detail: nil)
        #expect(model.isDetailGone)
        model.type("h")
        _ = model.handle(.down)
        #expect(model.mode == .details)
        #expect(model.handle(.escape) == nil && model.mode == .list && model.query.detail == nil)
    }

    @Test("hosts are folded by Enter, and commands do not apply to them")
    func hosts() {
        var model = TopModel(tasks)
        model.type("H")
        #expect(model.rows.count == 41)
        #expect(model.type("p") == nil && model.message?.isRefusal == true)
        model.type("\r")
        #expect(model.rows.count == 1)
        model.type("\r")
        #expect(model.rows.count == 41)
    }

    @Test("Ctrl-C, Ctrl-Z and Ctrl-L work in every mode", arguments: ["", "h", "a", "c", "\r"])
    func always(keys: String) {
        var model = TopModel(tasks)
        model.type(keys)
        #expect(model.handle(.control("c")) == .interrupt)
        #expect(model.handle(.control("z")) == .suspend)
        #expect(model.handle(.control("l")) == .repaint)
    }

    @Test("no sequence of keys and sizes breaks the model or its picture")
    func noise() {
        var random = SystemRandomNumberGenerator()
        let keys: [Key] =
            Array("jkgGsfFHhpctrl+-P/baL yn\u{301}長").map { .character($0) }
            + [.up, .down, .pageUp, .pageDown, .home, .end, .enter, .backspace, .delete, .left, .right, .control("w")]
        for _ in 0..<30 {
            var model = TopModel(tasks)
            for _ in 0..<150 {
                _ = keys.randomElement(using: &random).map { model.handle($0) }
                let size = ScreenSize(
                    columns: Int.random(in: 1...200, using: &random), rows: Int.random(in: 1...60, using: &random))
                model.resize(to: size)
                let frame = TopView(model: model, unicode: true, now: 5_000).frame()
                #expect(frame.lines.count <= size.rows)
                #expect(frame.lines.allSatisfy { $0.width <= size.columns })
            }
        }
    }
}
