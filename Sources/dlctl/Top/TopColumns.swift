import TaskModel
import TerminalScreen

/// The columns of the list for one width of the terminal.
struct TopColumns {
    var width: Int
    var unicode: Bool
    var idWidth: Int
    /// Whether the tasks stand below the names of their hosts.
    var isGrouped: Bool

    private static let percentWidth = 4
    private static let sizeWidth = 9
    private static let rateWidth = 10
    private static let leftWidth = 8
    private static let leastStateWidth = 30

    private var barWidth: Int { width >= 160 ? 24 : width >= 100 ? 16 : width >= 72 ? 10 : 0 }
    private var showsSize: Bool { width >= 50 }
    private var showsLeft: Bool { width >= 60 }
    private var showsRate: Bool { width >= 36 }
    private var hostWidth: Int { width >= 120 && !isGrouped ? width / 6 : 0 }
    private var batchWidth: Int { width >= 140 ? 16 : 0 }

    /// The width of the columns between the id and the name.
    private var middleWidth: Int { progressWidth + (showsSize ? Self.sizeWidth + 1 : 0) }

    /// The width of the columns between the id and the size.
    private var progressWidth: Int {
        var width = Self.percentWidth
        if barWidth > 0 { width += barWidth + 1 }
        if showsRate { width += Self.rateWidth + 1 }
        if showsLeft { width += Self.leftWidth + 1 }
        return width
    }

    private var nameWidth: Int {
        max(
            4,
            width - 2 - idWidth - 2 - middleWidth - 2 - (hostWidth > 0 ? hostWidth + 2 : 0)
                - (batchWidth > 0 ? batchWidth + 2 : 0))
    }

    func titles() -> StyledLine {
        var text = "  " + DisplayWidth.pad("ID", idWidth, right: true) + "  "
        if barWidth > 0 { text += DisplayWidth.pad("PROGRESS", barWidth + 1) }
        text += barWidth > 0 ? "    " : "DONE"
        if showsRate { text += " " + DisplayWidth.pad("RATE", Self.rateWidth, right: true) }
        if showsLeft { text += " " + DisplayWidth.pad("LEFT", Self.leftWidth, right: true) }
        if showsSize { text += " " + DisplayWidth.pad("SIZE", Self.sizeWidth, right: true) }
        text += "  " + DisplayWidth.pad("NAME", nameWidth)
        if hostWidth > 0 { text += "  " + DisplayWidth.pad("HOST", hostWidth) }
        if batchWidth > 0 { text += "  " + DisplayWidth.pad("BATCH", batchWidth) }
        return StyledLine(text, .bold).fitted(width)
    }

    func line(_ row: TopRow, isSelected: Bool, now: Milliseconds) -> StyledLine {
        var line = StyledLine(isSelected ? "> " : "  ")
        switch row {
        case .host(let sum): line.append(host(sum), .bold)
        case .task(let task): append(task, to: &line, now: now)
        }
        line = line.fitted(width)
        return isSelected ? line.padded(width).reversed : line
    }

    private func host(_ sum: HostSum) -> String {
        let mark = sum.isCollapsed ? (unicode ? "▸" : "+") : (unicode ? "▾" : "-")
        var words = "\(mark) \(Escape.visible(sum.host))  \(Describe.count(sum.tasks, "task")), \(sum.active) active"
        if sum.connections > 0 { words += ", " + Describe.count(sum.connections, "connection") }
        return words + ", \(Describe.rate(sum.rate))"
    }

    private func append(_ task: TaskStatus, to line: inout StyledLine, now: Milliseconds) {
        line.append(DisplayWidth.pad(task.id.description, idWidth, right: true) + "  ")
        if task.state == .active, task.phase == nil || task.phase == .transferring {
            appendProgress(task, to: &line)
        } else {
            appendState(task, to: &line, now: now)
        }
        let mark = task.kind == .upload ? (unicode ? "↑ " : "^ ") : ""
        let name = DisplayWidth.fitMiddle(mark + Describe.name(task), nameWidth)
        line.append("  " + DisplayWidth.pad(name, nameWidth))
        if hostWidth > 0 {
            let host = DisplayWidth.fit(Escape.visible(HostSum.host(of: task.url)), hostWidth)
            line.append("  " + DisplayWidth.pad(host, hostWidth), .dim)
        }
        if batchWidth > 0 {
            line.append("  " + DisplayWidth.fit(task.batch.map(Escape.visible) ?? "", batchWidth), .dim)
        }
    }

    private func appendProgress(_ task: TaskStatus, to line: inout StyledLine) {
        if barWidth > 0 {
            let fraction = task.bytesTotal.map { $0 > 0 ? Double(task.bytesDone) / Double($0) : 1 }
            let bar = BarLayout(width: barWidth, style: Terminal.Style(colour: false, unicode: unicode))
                .bar(fraction: fraction.map { min(1, max(0, $0)) }, width: barWidth)
            line.append(bar + " ", .colour(.cyan))
        }
        let percent = task.bytesTotal.flatMap { Describe.percent(task.bytesDone, of: $0) }.map { "\($0)%" } ?? ""
        var text = DisplayWidth.pad(percent, Self.percentWidth, right: true)
        if showsRate {
            text += " " + DisplayWidth.pad(task.rate.map { Describe.rate($0) } ?? "", Self.rateWidth, right: true)
        }
        if showsLeft {
            let left = task.eta.map { Describe.clock(seconds: $0) } ?? ""
            text += " " + DisplayWidth.pad(left, Self.leftWidth, right: true)
        }
        if showsSize { text += size(ByteSize.describe(task.bytesTotal ?? task.bytesDone)) }
        line.append(text)
    }

    /// Appends the state of a task that transfers nothing. It takes the column of the size too, if no size is known, or
    /// if it would be cut to less than ``leastStateWidth``.
    private func appendState(_ task: TaskStatus, to line: inout StyledLine, now: Milliseconds) {
        let words = Escape.visible(Describe.state(task, now: now))
        let bytes = task.bytesTotal ?? (task.bytesDone > 0 ? task.bytesDone : nil)
        guard let bytes, showsSize, progressWidth >= min(DisplayWidth.of(words), Self.leastStateWidth) else {
            line.append(DisplayWidth.pad(DisplayWidth.fit(words, middleWidth), middleWidth), Self.style(of: task))
            return
        }
        // The reason begins the words, and the time of the next attempt ends them.
        let shown = DisplayWidth.fitMiddle(words, progressWidth)
        line.append(DisplayWidth.pad(shown, progressWidth), Self.style(of: task))
        line.append(size(ByteSize.describe(bytes)))
    }

    private func size(_ text: String) -> String { " " + DisplayWidth.pad(text, Self.sizeWidth, right: true) }

    private static func style(of task: TaskStatus) -> TextStyle {
        switch task.state {
        case .waiting: .colour(.yellow)
        case .paused: task.reason?.needsPerson == true ? .colour(.red) : .dim
        case .failed: .colour(.red)
        case .completed: .colour(.green)
        case .active: .colour(.cyan)
        case .queued, .cancelled: .dim
        }
    }
}
