import ControlProtocol
import TaskModel
import TerminalScreen

/// The state of the screen. It changes by keys and by messages of the feed, and does no input or output.
struct TopModel {
    /// The part of the screen that takes the keys.
    enum Mode: Equatable {
        case list
        case details
        case help
        case prompt(TextPrompt)
        /// A question that only `y` affirms.
        case question(String, TopAction)
    }

    /// The action of the program after a key.
    enum Effect: Equatable {
        case quit
        /// Ends as an interrupted program does.
        case interrupt
        case suspend
        case repaint
        case perform(TopAction)
    }

    enum Connection: Equatable {
        case starting
        case live
        /// The daemon does not answer since this time; the text says why.
        case away(since: Milliseconds, String)
    }

    var query: TopQuery
    var size: ScreenSize
    private(set) var mode = Mode.list
    private(set) var connection = Connection.starting
    private(set) var status: DaemonStatus?
    private(set) var history = RateHistory()
    private(set) var rows: [TopRow] = []
    private(set) var hasMore = false
    private(set) var detail: TaskDetail?
    /// Whether the daemon does not know the task whose details are shown.
    private(set) var isDetailGone = false
    private(set) var message: TopMessage?
    /// The index of the selected row; 0 if there is none.
    private(set) var selection = 0
    /// The index of the first row on the screen, and the first line of the details on it.
    private(set) var offset = 0
    private(set) var detailOffset = 0
    /// The mode to which a prompt or the help returns.
    private var modeBefore = Mode.list
    /// The selected row while it is not among those that were read: more are read to find it, and none is selected.
    private var missing: TopRow.Key?
    /// Whether the selection is the last row, also of rows that are read later.
    private var followsEnd = false
    private var tasks: [TaskStatus] = []
    private var collapsed: Set<String> = []

    init(query: TopQuery, size: ScreenSize) {
        self.query = query
        self.size = size
        resize(to: size)
    }

    /// Returns the time that the rows show: while the daemon is away, the time since which nothing is known.
    func shownTime(_ now: Milliseconds) -> Milliseconds {
        if case .away(let since, _) = connection { since } else { now }
    }

    var selected: TopRow? { missing == nil && rows.indices.contains(selection) ? rows[selection] : nil }
    private var page: Int { max(1, TopLayout(size: size).listRows) }

    /// Whether the details are on the screen, perhaps behind a prompt.
    var isShowingDetails: Bool { query.detail != nil }

    // MARK: - The feed

    mutating func receive(_ message: TopFeed.Message) {
        switch message {
        case .round(let round): receive(round)
        case .away(let since, let text):
            // The first time counts as long as the daemon stays away.
            if case .away(let first, _) = connection {
                connection = .away(since: first, text)
            } else {
                connection = .away(since: since, text)
                self.message = nil
            }
        case .result(let result, let action): receive(result, to: action)
        }
    }

    /// Shows an answer. The prompt that sent the change closes, or stays with a refusal to be corrected.
    private mutating func receive(_ result: TopMessage, to action: TopAction?) {
        message = result
        guard case .prompt(var prompt) = mode, let sent = prompt.sent, action == nil || action == sent else { return }
        prompt.sent = nil
        mode = result.isRefusal ? .prompt(prompt) : modeBefore
    }

    private mutating func receive(_ round: TopFeed.Round) {
        if case .away = connection { message = TopMessage("the daemon is back") }
        connection = .live
        status = round.status
        history.add(round.status.downloadRate.addingClamped(round.status.uploadRate), at: round.moment)
        if round.query.detail == query.detail, query.detail != nil {
            isDetailGone = round.detail == nil
            detail = round.detail ?? detail
        }
        // An answer to an earlier question does not fit the screen.
        guard round.query.selectsSame(as: query) else { return }
        tasks = round.tasks
        hasMore = round.hasMore
        arrange()
    }

    /// Makes the rows anew; the selection stays on its task.
    private mutating func arrange() {
        let key = missing ?? selected?.key
        rows = TopRow.rows(tasks, sort: query.sort, byHost: query.groupsByHost, collapsed: collapsed)
        if followsEnd {
            selection = rows.count - 1
        } else if let key, let index = rows.firstIndex(where: { $0.key == key }) {
            missing = nil
            selection = index
        } else {
            // The next key must not act on the task that took its row.
            missing = hasMore && missing == nil ? key : nil
        }
        scroll()
        if missing != nil { query.rows = TopQuery.maximumRows }
    }

    mutating func resize(to size: ScreenSize) {
        self.size = size
        scroll()
    }

    /// Keeps the selection within the rows and on the screen.
    private mutating func scroll() {
        selection = max(0, min(selection, rows.count - 1))
        offset = max(0, min(offset, rows.count - page))
        if selection < offset { offset = selection }
        if selection >= offset + page { offset = selection - page + 1 }
        if followsEnd { return }
        // Before the selection moves, one row more is enough for the first Page Down.
        let needed = min(TopQuery.maximumRows, selection == 0 ? page + 1 : offset + 2 * page)
        // The number grows and shrinks by screens, so that it does not change with each key.
        if needed > query.rows || needed + 2 * page < query.rows { query.rows = needed }
        query.rows = max(query.rows, min(TopQuery.maximumRows, page + 1))
    }

    // MARK: - Keys

    mutating func handle(_ key: Key) -> Effect? {
        switch key {
        case .control("c"): return .interrupt
        case .control("z"): return .suspend
        case .control("l"): return .repaint
        default: break
        }
        switch mode {
        case .prompt(let prompt): return edit(prompt, key)
        case .question(_, let action):
            mode = modeBefore
            guard key == .character("y") || key == .character("Y") else {
                message = TopMessage("nothing was changed")
                return nil
            }
            return .perform(action)
        case .help:
            mode = modeBefore
            return nil
        case .details:
            if handleDetails(key) { return nil }
        case .list:
            if handleList(key) { return nil }
            if key == .escape {
                clearFilters()
                return nil
            }
            if key == .character("q") { return .quit }
        }
        return handleTask(key)
    }

    /// Handles a key that moves in the list or changes what is in it.
    private mutating func handleList(_ key: Key) -> Bool {
        switch key {
        case .up, .character("k"): move(by: -1)
        case .down, .character("j"): move(by: 1)
        case .pageUp: move(by: -page)
        case .pageDown, .character(" "): move(by: page)
        case .home, .character("g"): move(by: -rows.count)
        case .end, .character("G"):
            move(by: rows.count)
            followsEnd = true
            query.rows = TopQuery.maximumRows
        case .enter, .right: open()
        case .character("s"): change { $0.sort = Self.next($0.sort) }
        case .character("f"): change { $0.states = Self.next($0.states) }
        case .character("F"): change { $0.states = Self.next($0.states, by: -1) }
        case .character("e"): change { $0.states = $0.states == .failed ? .open : .failed }
        case .character("H"): change { $0.groupsByHost.toggle() }
        case .character("/"): ask(TextPrompt(.search, text: query.search ?? ""))
        case .character("b"): ask(TextPrompt(.batch, text: query.batch ?? ""))
        default: return false
        }
        return true
    }

    private mutating func handleDetails(_ key: Key) -> Bool {
        switch key {
        case .up, .character("k"): detailOffset -= 1
        case .down, .character("j"): detailOffset += 1
        case .pageUp: detailOffset -= page
        case .pageDown, .character(" "): detailOffset += page
        case .home, .character("g"): detailOffset = 0
        case .escape, .character("q"), .left, .enter:
            mode = .list
            query.detail = nil
            detail = nil
        default: return false
        }
        let lines = detail.map { TopDetails(detail: $0, width: size.columns, unicode: true).lines(now: 0).count } ?? 0
        detailOffset = max(0, min(detailOffset, lines - page))
        return true
    }

    /// Handles a key that changes a task, or opens a prompt.
    private mutating func handleTask(_ key: Key) -> Effect? {
        switch key {
        case .character("h"), .character("?"), .function(1):
            modeBefore = mode
            mode = .help
        case .character("a"): ask(TextPrompt(.add))
        case .character("L"): ask(TextPrompt(.rate(of: .downloads)))
        case .character("p"): return act(.pause)
        case .character("r"): return act(.resume)
        case .character("t"): return act(.retry)
        case .character("c"), .delete:
            if let task = target() { ask("cancel task \(task.id), \(Describe.name(task))?", .cancel, task) }
        case .character("D"):
            if let task = target() {
                let file = task.state == .completed ? "its file stays" : "its part is deleted"
                let words = task.kind == .upload ? "" : " (\(file))"
                ask("remove task \(task.id)\(words), \(Describe.name(task))?", .remove, task)
            }
        case .character("l"):
            if let task = target() { ask(TextPrompt(.rate(of: .task(task.id)))) }
        case .character("+"), .character("="): return prioritise { min($0 + 1, TaskPriority.allCases.count - 1) }
        case .character("-"): return prioritise { max($0 - 1, 0) }
        case .character("P"): return prioritise { ($0 + 1) % TaskPriority.allCases.count }
        case .character, .control, .function: message = TopMessage("this key has no effect here; ? for help")
        default: break
        }
        return nil
    }

    private mutating func move(by count: Int) {
        message = nil
        followsEnd = false
        missing = nil
        selection = selection.addingClamped(count)
        scroll()
    }

    private mutating func open() {
        switch selected {
        case .task(let task):
            mode = .details
            query.detail = task.id
            detail = TaskDetail(task)
            isDetailGone = false
            detailOffset = 0
        case .host(let sum):
            if collapsed.remove(sum.host) == nil { collapsed.insert(sum.host) }
            arrange()
        case nil: break
        }
    }

    private static func next<Value: CaseIterable & Equatable>(_ value: Value, by step: Int = 1) -> Value {
        let all = Array(Value.allCases)
        guard let index = all.firstIndex(of: value) else { return value }
        return all[(index + step + all.count) % all.count]
    }

    /// Changes what is in the list, which then begins at its top.
    private mutating func change(_ body: (inout TopQuery) -> Void) {
        let old = query
        body(&query)
        if old.sort != query.sort || old.groupsByHost != query.groupsByHost { arrange() }
        message = nil
        followsEnd = false
        missing = nil
        selection = 0
        offset = 0
        scroll()
    }

    private mutating func clearFilters() {
        guard query.search != nil || query.batch != nil || query.states != .open else { return }
        change {
            $0.search = nil
            $0.batch = nil
            $0.states = .open
        }
    }

    // MARK: - Commands

    /// Returns the task to which a command applies; otherwise says that there is none.
    private mutating func target() -> TaskStatus? {
        if mode == .details, let detail { return detail.status }
        if let task = selected?.task { return task }
        message = TopMessage(selected == nil ? "there is no task" : "select a task of the host", isRefusal: true)
        return nil
    }

    private mutating func act(_ action: SelectionAction) -> Effect? {
        target().map { .perform(.change(action, $0.id)) }
    }

    private mutating func ask(_ question: String, _ action: SelectionAction, _ task: TaskStatus) {
        modeBefore = mode
        mode = .question(question + " y or n", .change(action, task.id))
    }

    private mutating func prioritise(_ next: (Int) -> Int) -> Effect? {
        guard let task = target() else { return nil }
        let all = TaskPriority.allCases
        let index = next(all.firstIndex(of: task.priority) ?? 0)
        guard all.indices.contains(index), all[index] != task.priority else {
            message = TopMessage("task \(task.id) already has the priority \(task.priority.rawValue)")
            return nil
        }
        // The next key builds on this one, before the daemon has answered.
        set(all[index], of: task.id)
        return .perform(.priority(task.id, all[index]))
    }

    private mutating func set(_ priority: TaskPriority, of id: TaskID) {
        if detail?.status.id == id { detail?.status.priority = priority }
        for index in tasks.indices where tasks[index].id == id { tasks[index].priority = priority }
        arrange()
    }

    // MARK: - Prompts

    private mutating func ask(_ prompt: TextPrompt) {
        modeBefore = mode
        message = nil
        mode = .prompt(prompt)
    }

    private mutating func edit(_ prompt: TextPrompt, _ key: Key) -> Effect? {
        var prompt = prompt
        switch key {
        case .escape:
            mode = modeBefore
            message = nil
        case _ where prompt.sent != nil: break
        case .enter: return accept(prompt)
        default:
            if prompt.handle(key) { message = nil }
            mode = .prompt(prompt)
        }
        return nil
    }

    private mutating func accept(_ prompt: TextPrompt) -> Effect? {
        let words = prompt.text.split(separator: " ").map(String.init)
        let text = words.joined(separator: " ")
        switch prompt.purpose {
        case .search:
            guard text.utf8.count <= TaskFilter.maximumSearch else {
                message = TopMessage("the text is longer than \(TaskFilter.maximumSearch) bytes", isRefusal: true)
                return nil
            }
            mode = modeBefore
            change { $0.search = text.isEmpty ? nil : text }
        case .batch:
            mode = modeBefore
            change { $0.batch = text.isEmpty ? nil : text }
        case .add:
            guard words.isEmpty else { return send(.add(words), prompt) }
            mode = modeBefore
        case .rate(let target):
            guard let rate = DaemonRateArgument(argument: text)?.rate else {
                message = TopMessage(
                    "\"\(text)\" is not a limit; give bytes per second as in 500K or 2M, none, or config",
                    isRefusal: true)
                return nil
            }
            switch (target, rate) {
            case (.downloads, _): return send(.downloadRate(rate), prompt)
            case (.task(let id), .limit(let bytes)): return send(.rate(id, bytes), prompt)
            case (.task(let id), .unlimited), (.task(let id), .configured): return send(.rate(id, nil), prompt)
            }
        }
        return nil
    }

    /// Sends a change; its prompt stays until the answer.
    private mutating func send(_ action: TopAction, _ prompt: TextPrompt) -> Effect {
        var prompt = prompt
        prompt.sent = action
        mode = .prompt(prompt)
        message = nil
        return .perform(action)
    }
}
