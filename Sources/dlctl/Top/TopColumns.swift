import TaskModel
import TerminalScreen

/// The columns of the list for one width of the terminal.
struct TopColumns {
    var width: Int
    var unicode: Bool
    var idWidth = 4
    private var hostWidth = 0
    private var batchWidth = 0

    private static let percentWidth = 4
    private static let sizeWidth = 9
    private static let rateWidth = 10
    private static let leftWidth = 8

    private var barWidth: Int { width >= 160 ? 24 : width >= 100 ? 16 : width >= 72 ? 10 : 0 }
    private var showsSize: Bool { width >= 50 }
    private var showsLeft: Bool { width >= 60 }
    private var showsRate: Bool { width >= 36 }

    /// - Parameter isGrouped: whether the tasks stand below the names of their hosts.
    init(width: Int, unicode: Bool, tasks: [TaskStatus], isGrouped: Bool) {
        self.width = width
        self.unicode = unicode
        func widest(_ text: (TaskStatus) -> String) -> Int { tasks.reduce(0) { max($0, DisplayWidth.of(text($1))) } }
        idWidth = max(4, widest(\.id.description))
        let host = width >= 120 && !isGrouped ? widest(Self.host) : 0
        let batch = width >= 140 ? widest(Self.batch) : 0
        // Beyond their shares these columns take what the names leave.
        let left = nameWidth - max(4, widest(name)) - 4
        batchWidth = batch > 0 ? max("BATCH".count, min(batch, max(16, left - host))) : 0
        hostWidth = host > 0 ? max("HOST".count, min(host, max(width / 6, left - batchWidth))) : 0
    }

    private func name(_ task: TaskStatus) -> String {
        (task.kind == .upload ? (unicode ? "↑ " : "^ ") : "") + Describe.name(task)
    }

    private static func host(_ task: TaskStatus) -> String { Escape.visible(HostSum.host(of: task.url)) }

    private static func batch(_ task: TaskStatus) -> String { task.batch.map(Escape.visible) ?? "" }

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
        return isSelected ? line.reversed : line
    }

    private func host(_ sum: HostSum) -> String {
        let mark = sum.isCollapsed ? (unicode ? "▸" : "+") : (unicode ? "▾" : "-")
        let host = Escape.visible(sum.host)
        let (tasks, rate) = (Describe.count(sum.tasks, "task"), Describe.rate(sum.rate))
        let connections = sum.connections > 0 ? ", " + Describe.count(sum.connections, "connection") : ""
        let room = width - 4
        // A narrow terminal leaves parts of the sums out, and shortens the name of the host last.
        let counts = "\(tasks), \(sum.active) active"
        let sums = ["\(counts)\(connections), ", "\(counts), ", "\(tasks), "].map { "  \($0)\(rate)" }
        let shown = sums.first { DisplayWidth.of(host + $0) <= room } ?? "  \(rate)"
        return "\(mark) \(DisplayWidth.fitMiddle(host, max(1, room - DisplayWidth.of(shown))))\(shown)"
    }

    private func append(_ task: TaskStatus, to line: inout StyledLine, now: Milliseconds) {
        line.append(DisplayWidth.pad(task.id.description, idWidth, right: true) + "  ")
        let name = name(task)
        var start = middleWidth + 2
        if BarLayout.moves(task, now: now) {
            appendProgress(task, to: &line)
            line.append("  ")
        } else {
            start = appendState(task, to: &line, before: DisplayWidth.of(name), now: now)
        }
        line.append(DisplayWidth.fitMiddle(name, middleWidth + 2 + nameWidth - start))
        for (text, columns, start) in [
            (Self.host(task), hostWidth, width - hostWidth - (batchWidth > 0 ? batchWidth + 2 : 0)),
            (Self.batch(task), batchWidth, width - batchWidth),
        ] where columns > 0 {
            line.append(DisplayWidth.fit(text, columns), .dim, at: start)
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

    /// Appends the state of a task that transfers nothing, and its size if it is known and the state is not cut for it.
    ///
    /// - Parameter name: the width of the name.
    /// - Returns: the width up to the name.
    private func appendState(
        _ task: TaskStatus, to line: inout StyledLine, before name: Int, now: Milliseconds
    ) -> Int {
        let words = Escape.visible(Describe.state(task, now: now))
        let bytes = showsSize ? task.bytesTotal ?? (task.bytesDone > 0 ? task.bytesDone : nil) : nil
        var size = bytes.map { self.size(ByteSize.describe($0)) } ?? ""
        func split() -> Int {
            DisplayWidth.split(
                DisplayWidth.of(words) + DisplayWidth.of(size), name, usual: middleWidth + 2,
                width: middleWidth + 2 + nameWidth)
        }
        if split() - 2 < DisplayWidth.of(words) + DisplayWidth.of(size) { size = "" }
        let start = split()
        let room = start - 2 - DisplayWidth.of(size)
        // The reason begins the words, and the time of the next attempt ends them.
        line.append(DisplayWidth.pad(DisplayWidth.fitMiddle(words, room), room), Self.style(of: task))
        line.append(size + "  ")
        return start
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
