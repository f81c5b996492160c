import ControlProtocol
import TaskModel
import TerminalScreen

/// The picture of a model. The result depends on the arguments only.
struct TopView {
    var model: TopModel
    var unicode: Bool
    var now: Milliseconds
    /// Formats a point in time as hours, minutes and seconds.
    var clock: (Milliseconds) -> String = { String(Clock.local($0).suffix(8)) }

    private var width: Int { model.size.columns }

    func frame() -> Frame {
        let layout = TopLayout(size: model.size)
        var lines = Array([title(), counts()].prefix(layout.headerRows))
        switch model.mode {
        case .help: lines += padded(help, layout.graphRows + layout.titleRows + layout.listRows)
        case .details: lines += details(layout)
        case .prompt, .question, .list:
            if model.isShowingDetails {
                lines += details(layout)
            } else {
                lines += RateGraph(width: width, height: layout.graphRows, unicode: unicode)
                    .lines(model.history, now: now)
                lines += list(layout)
            }
        }
        var (foot, column) = footer(isOnlyRow: layout.footerRows == 1)
        // A long message takes the row of the keys, and below a prompt the last row of the list.
        if foot.count < 2 { foot += keys() }
        if layout.footerRows < 2 { foot = Array(foot.drop { $0.spans.isEmpty }.prefix(layout.footerRows)) }
        lines = (lines.prefix(max(0, model.size.rows - foot.count)) + foot).map { $0.fitted(width) }
        let row = lines.count - max(1, foot.count)
        return Frame(
            lines: lines, cursor: column.map { Frame.Cursor(column: min($0, max(0, width - 1)), row: row) })
    }

    private func padded(_ lines: [StyledLine], _ count: Int) -> [StyledLine] {
        Array((lines + Array(repeating: StyledLine(), count: max(0, count - lines.count))).prefix(max(0, count)))
    }

    // MARK: - Header

    private func title() -> StyledLine {
        guard let status = model.status else { return StyledLine("dld", .bold) }
        var left = StyledLine("dld \(Escape.visible(status.version))", .bold)
        left.append("  up \(Describe.span(milliseconds: status.uptime))")
        let isLive = model.connection == .live
        let style: TextStyle = isLive ? .bold : .dim
        let (down, up) = unicode ? ("↓", "↑") : ("down", "up")
        func rate(_ sign: String, _ rate: Int64, _ limit: Int64?) -> String {
            "\(sign) \(Describe.rate(rate))" + (limit.map { " of \(Describe.rate($0))" } ?? "")
        }
        let right = StyledLine(
            rate(down, status.downloadRate, status.limits?.downloadRate) + "  "
                + rate(up, status.uploadRate, status.limits?.uploadRate), style)
        if left.width + right.width + 2 > width { return right }
        return .ends(left, right, width: width)
    }

    private func counts() -> StyledLine {
        guard let status = model.status else { return StyledLine() }
        // The states in which tasks may still change come first: a narrow terminal cuts the others off.
        let order: [TaskState] = [.active, .queued, .waiting, .paused, .failed, .completed, .cancelled]
        var line = StyledLine()
        for state in order {
            guard let count = status.tasks[state.rawValue], count > 0 || state == .active else { continue }
            if !line.spans.isEmpty { line.append(", ") }
            line.append("\(count) \(state.rawValue)", state == .failed ? .colour(.red) : .plain)
            if state == .failed, model.query.states == .open { line.append(width >= 72 ? " (e shows them)" : " (e)") }
        }
        var right: [String] = []
        if model.query.states != .open { right.append(model.query.states.rawValue) }
        if let batch = model.query.batch { right.append("batch \(Escape.visible(batch))") }
        if let search = model.query.search { right.append("search \(Escape.visible(search))") }
        if model.query.sort != .start { right.append("by \(model.query.sort.rawValue)") }
        let words = StyledLine(right.isEmpty ? "" : "[\(right.joined(separator: ", "))]", .colour(.magenta))
        guard words.width > 0 else { return line.fitted(width) }
        // What the list leaves out is more important than the counts.
        let room = max(0, width - words.width - 2)
        return .ends(line.fitted(room), words.fitted(width), width: width)
    }

    // MARK: - List

    private func list(_ layout: TopLayout) -> [StyledLine] {
        let rows = model.rows
        let end = min(rows.count, model.offset + layout.listRows)
        let shown = min(model.offset, end)..<end
        let columns = TopColumns(
            width: width, unicode: unicode, tasks: rows[shown].compactMap(\.task), isGrouped: model.query.groupsByHost)
        var lines = layout.titleRows > 0 ? [columns.titles()] : []
        for index in shown {
            let isSelected = index == model.selection && model.selected != nil
            lines.append(columns.line(rows[index], isSelected: isSelected, now: now))
        }
        if rows.isEmpty, layout.listRows > 0 { lines.append(StyledLine("  " + emptyText, .dim)) }
        return padded(lines, layout.titleRows + layout.listRows)
    }

    private var emptyText: String {
        if model.status == nil { return "" }
        let isFiltered = model.query.batch != nil || model.query.search != nil || model.query.states != .open
        return isFiltered ? "no task matches; Esc shows all" : "no task runs or waits; a adds one"
    }

    private func details(_ layout: TopLayout) -> [StyledLine] {
        let count = layout.graphRows + layout.titleRows + layout.listRows
        guard let detail = model.detail else { return padded([StyledLine("  the task is gone", .dim)], count) }
        var lines = TopDetails(detail: detail, width: width, unicode: unicode).lines(now: now)
        if model.isDetailGone { lines.insert(StyledLine("the task was removed", .colour(.red)), at: 0) }
        return padded(Array(lines.dropFirst(model.detailOffset)), count)
    }

    // MARK: - Footer

    /// Returns the lines of messages and prompts, and the column of the cursor in a prompt.
    private func footer(isOnlyRow: Bool) -> ([StyledLine], column: Int?) {
        switch model.mode {
        case .prompt(let prompt):
            if isOnlyRow, let message = model.message { return (lines(message), nil) }
            let (line, column) = promptLine(prompt)
            return ([line], column)
        case .question(let text, _): return (wrapped(text, .bold), nil)
        case .list, .details, .help: break
        }
        if case .away(let since, let text) = model.connection {
            let text = "the daemon is away since \(clock(since)); " + Escape.visible(model.message?.text ?? text)
            return (wrapped(text, TextStyle(colour: .red, isBold: true)), nil)
        }
        if let message = model.message { return (lines(message), nil) }
        if model.connection == .starting { return ([StyledLine("asking the daemon", .dim)], nil) }
        guard model.mode == .list, !model.rows.isEmpty else { return ([StyledLine()], nil) }
        var text = "\(model.selection + 1) of \(model.rows.count)" + (model.hasMore ? " and more" : "")
        if model.hasMore, model.rows.count >= TopQuery.maximumRows { text += "; / searches, f filters" }
        return ([StyledLine(text, .dim)], nil)
    }

    private func lines(_ message: TopMessage) -> [StyledLine] {
        wrapped(Escape.visible(message.text), message.isRefusal ? .colour(.red) : .colour(.green))
    }

    /// Returns a text as one line, or as two if it is too long for one.
    private func wrapped(_ text: String, _ style: TextStyle) -> [StyledLine] {
        var first = text.prefix(width)
        while DisplayWidth.of(String(first)) > width { first.removeLast() }
        guard first.endIndex < text.endIndex else { return [StyledLine(text, style)] }
        // A line ends behind a word, unless a long one would leave it nearly empty.
        if let space = first.lastIndex(of: " "), text[first.endIndex] != " ", first[..<space].count > width / 2 {
            first = first[..<space]
        }
        return [String(first), String(text[first.endIndex...].drop { $0 == " " })].map { StyledLine($0, style) }
    }

    private func promptLine(_ prompt: TextPrompt) -> (StyledLine, column: Int?) {
        let title =
            switch prompt.purpose {
            case .search: "search in URL and path: "
            case .batch: "batch: "
            case .add: "add URL: "
            case .rate(.task(let id)): "limit of task \(id): "
            case .rate(.downloads): "limit of all downloads: "
            }
        let before = Escape.visible(String(prompt.characters.prefix(prompt.cursor)))
        let after = Escape.visible(String(prompt.characters.dropFirst(prompt.cursor)))
        // A long text is shown around the cursor.
        let room = max(1, width - DisplayWidth.of(title) - 1)
        var shown = before
        while DisplayWidth.of(shown) > room { shown.removeFirst(max(1, shown.count / 8)) }
        var line = StyledLine(title, .bold)
        line.append(shown)
        let column = line.width
        line.append(after)
        return (line, column)
    }

    private func keys() -> [StyledLine] {
        if case .prompt = model.mode, let message = model.message { return lines(message) }
        let text =
            switch model.mode {
            case .prompt(let prompt) where prompt.sent != nil: "asking the daemon  Esc back"
            case .prompt(let prompt):
                "Enter accept  Esc back" + (prompt.isRate ? "  500K, 2M, none or config" : "")
            case .question: "y yes  any other key no"
            case .help: "any key closes the help"
            case .details: "Esc back  p pause  r resume  c cancel  t retry  + - priority  l limit  h help"
            case .list: "h help  q quit  Enter details  p pause  r resume  c cancel  t retry  a add"
            }
        return [StyledLine(text, .dim)]
    }

    /// The keys. The words fit 40 columns, and the lines 15 rows; a wide terminal has more words.
    private var help: [StyledLine] {
        let keys = [
            ("arrows", "move; also j, k, PgUp, PgDn", ", Home, End"),
            ("Enter", "details; folds a host", ""),
            ("p r c t", "pause, resume, cancel, retry", " the task"),
            ("D", "remove the task", "; the finished file stays"),
            ("+ - P", "raise, lower, step priority", ""),
            ("l L", "limit of task, of downloads", ""),
            ("a", "add URLs", " with spaces between"),
            ("/ b", "search, show one batch", "; an empty line shows all"),
            ("e f F", "failed; next, previous state", " that is shown"),
            ("H s", "tasks by host; next order", ": start, rate, left, size, progress, name"),
            ("Esc q ^L", "back, quit, draw again", "; Ctrl-Z stops for a while"),
        ]
        return keys.map { key, text, more in
            var line = StyledLine("  " + DisplayWidth.pad(key, 8) + "  ", .bold)
            line.append(text + (DisplayWidth.of(text + more) <= width - line.width ? more : ""))
            return line
        }
    }
}
