import TaskModel

/// A layout of one task, or of many tasks together, as one line of text. The result depends on the arguments only.
struct BarLayout {
    /// The maximum width of a line in terminal columns.
    var width: Int
    var style: Terminal.Style

    /// A summary of many tasks that are waited for together.
    struct Total: Equatable {
        var tasks = 0
        var completed = 0
        /// The number of tasks that failed, were cancelled or removed, or need user action.
        var unsuccessful = 0
        var active = 0
        var bytes: Int64 = 0
        var rate: Int64 = 0
    }

    // MARK: - One task

    /// Returns the line for a task that has not settled.
    func line(_ task: TaskStatus, now: Milliseconds) -> String {
        let name = DisplayWidth.pad(DisplayWidth.fit(Describe.name(task), nameWidth), nameWidth)
        guard task.state == .active, task.phase != .verifying, task.phase != .publishing else {
            let words = DisplayWidth.fit(Describe.state(task, now: now), max(0, width - nameWidth - 2))
            return "\(name)  \(paint(words, task.state == .waiting ? .yellow : .dim))"
        }
        return name + "  " + progress(task, room: width - nameWidth - 2)
    }

    private var nameWidth: Int { min(28, max(8, width * 3 / 10)) }

    /// Returns the bar and the figures. Figures that do not fit are dropped: first the amount, then the rate, then the
    /// time left.
    private func progress(_ task: TaskStatus, room: Int) -> String {
        let amount =
            task.bytesTotal.map { "\(ByteSize.describe(task.bytesDone))/\(ByteSize.describe($0))" }
            ?? ByteSize.describe(task.bytesDone)
        let percent = task.bytesTotal.flatMap { Describe.percent(task.bytesDone, of: $0) }.map { "\($0)%" } ?? ""
        let rate = task.rate.map { Describe.rate($0) } ?? ""
        let left = task.eta.map { Describe.clock(seconds: $0) } ?? ""
        var figures: [(text: String, width: Int)] = [(percent, 4), (amount, 19), (rate, 12), (left, 8)]
        func taken() -> Int { figures.reduce(0) { $0 + $1.width + 2 } }
        for index in [1, 2, 1] where room - taken() < 10 && figures.count > 1 { figures.remove(at: index) }
        let barWidth = min(60, room - taken())
        var text = ""
        if barWidth >= 4 {
            text = bar(fraction: Self.fraction(task.bytesDone, task.bytesTotal), width: barWidth)
        } else {
            figures[0].width = max(0, min(4, room))
        }
        for figure in figures {
            text += (text.isEmpty ? "" : "  ") + DisplayWidth.pad(figure.text, figure.width, right: true)
        }
        return text
    }

    private static func fraction(_ done: Int64, _ total: Int64?) -> Double? {
        guard let total else { return nil }
        return total <= 0 ? 1 : min(1, max(0, Double(done) / Double(total)))
    }

    /// Returns a bar of `width` columns.
    ///
    /// - Parameter fraction: the completed share from 0 to 1; `nil` if the total is unknown.
    func bar(fraction: Double?, width: Int) -> String {
        guard style.unicode else {
            let filled = fraction.map { Int($0 * Double(max(0, width - 2))) } ?? 0
            let body = String(repeating: "#", count: filled)
            return "[" + DisplayWidth.pad(body, max(0, width - 2)) + "]"
        }
        let eighths = Int((fraction ?? 0) * Double(width * 8))
        let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
        let body = String(repeating: "█", count: eighths / 8) + parts[eighths % 8]
        let rest = String(repeating: "░", count: max(0, width - (eighths + 7) / 8))
        return paint(body, .cyan) + paint(rest, .dim)
    }

    // MARK: - Settled tasks

    /// Returns the line for a settled task: a mark, the name and the outcome.
    ///
    /// - Parameter whole: whether this is the last drawing. It stays on screen and may wrap, so nothing is cut off.
    func ending(_ task: TaskStatus, whole: Bool) -> String {
        let completed = task.state == .completed
        let mark = completed ? paint(style.unicode ? "✓" : "*", .green) : paint(style.unicode ? "✗" : "x", .red)
        // The last drawing shows the file's path.
        let name = (whole && completed ? task.path : nil).map(Escape.visible) ?? Describe.name(task)
        let text = name + "  " + (completed ? summary(task) : Escape.visible(Describe.ending(task)))
        return mark + " " + (whole ? text : DisplayWidth.fit(text, width - 2))
    }

    /// Returns the size, duration and average rate of a completed task.
    private func summary(_ task: TaskStatus) -> String {
        var text = ByteSize.describe(task.bytesDone)
        if let started = task.startedAt, let finished = task.finishedAt, finished > started {
            text += " in \(Describe.span(milliseconds: finished - started))"
            let rate = Double(task.bytesFetched) * 1000 / Double(finished - started)
            if rate >= 1, rate < 9e18 { text += ", \(Describe.rate(Int64(rate)))" }
        }
        return text + (task.verified ? ", checksum verified" : "")
    }

    func removed(_ id: TaskID) -> String {
        "\(paint(style.unicode ? "✗" : "x", .red)) task \(id) was removed"
    }

    /// Returns the line for a remark below the bars.
    func note(_ text: String) -> String { paint(DisplayWidth.fit(text, width), .yellow) }

    // MARK: - Many tasks

    /// Returns one line that summarises the tasks, for use when they outnumber the lines of the terminal.
    func total(_ total: Total) -> String {
        let ended = total.completed + total.unsuccessful
        var words = "\(ended)/\(total.tasks) ended"
        if total.unsuccessful > 0 { words += ", \(total.unsuccessful) not completed" }
        if total.active > 0 { words += ", \(total.active) active" }
        words += "  \(ByteSize.describe(total.bytes))"
        if total.rate > 0 { words += "  \(Describe.rate(total.rate))" }
        let room = min(40, width - DisplayWidth.of(words) - 2)
        guard room >= 10 else { return DisplayWidth.fit(words, width) }
        return bar(fraction: Double(ended) / Double(max(1, total.tasks)), width: room) + "  " + words
    }

    // MARK: - Colour

    private enum Colour: String {
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case cyan = "36"
    }

    private func paint(_ text: String, _ colour: Colour) -> String {
        style.colour && !text.isEmpty ? "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m" : text
    }
}
