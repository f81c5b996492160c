import TaskModel

/// A layout of one task, or of many tasks together, as one line of text. The result depends on the arguments only.
struct BarLayout {
    /// The maximum width of a line in terminal columns.
    var width: Int
    var style: Terminal.Style
    /// The width of the ids at the start of the lines; 0 for lines without ids.
    var idWidth = 0

    /// The totals of the tasks that are waited for together.
    struct Total: Equatable {
        var tasks = 0
        var completed = 0
        /// The number of tasks that failed, were cancelled or removed, or need user action.
        var unsuccessful = 0
        var bytes: Int64 = 0
        /// The size of all tasks; `nil` if that of any task is unknown.
        var bytesTotal: Int64?
        var rate: Int64 = 0

        /// The number of tasks that are no longer waited for.
        var ended: Int { completed + unsuccessful }

        /// The time left in seconds; `nil` if it is unknown.
        var eta: Int64? {
            guard let bytesTotal, rate > 0 else { return nil }
            return max(0, bytesTotal.subtractingClamped(bytes)) / rate
        }
    }

    // MARK: - One task

    /// Returns the line for a task that has not settled.
    func line(_ task: TaskStatus, now: Milliseconds) -> String {
        let head = id(task.id) + DisplayWidth.pad(DisplayWidth.fitMiddle(Describe.name(task), nameWidth), nameWidth)
        let room = width - DisplayWidth.of(head) - 2
        guard task.state == .active, task.phase != .verifying, task.phase != .publishing else {
            let state = Describe.state(task, now: now) { Self.countdown(to: $0, now: now) }
            let words = DisplayWidth.fit(Escape.visible(state), max(0, room))
            return "\(head)  \(paint(words, task.state == .waiting ? .yellow : .dim))"
        }
        return head + "  " + progress(task, room: room)
    }

    /// Returns a point in time with the time left until then: `14:05, in 3 min 20 s`.
    private static func countdown(to moment: Milliseconds, now: Milliseconds) -> String {
        let left = moment.subtractingClamped(now)
        guard left > 0 else { return Clock.brief(moment, now: now) }
        // Whole seconds, rounded up, so that the countdown does not end in milliseconds.
        let span = Describe.span(milliseconds: left.addingClamped(999) / 1000 * 1000)
        return "\(Clock.brief(moment, now: now)), in \(span)"
    }

    private func id(_ id: TaskID) -> String {
        idWidth > 0 ? DisplayWidth.pad(id.description, idWidth, right: true) + "  " : ""
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

    /// Returns the line for a settled task: a mark, the id, the file and the outcome. The line stays on screen and may
    /// wrap, so nothing is cut off.
    func ending(_ task: TaskStatus) -> String {
        let isCompleted = task.state == .completed
        let name = (isCompleted ? task.path : nil).map(Escape.visible) ?? Describe.name(task)
        let text = name + "  " + (isCompleted ? summary(task) : Escape.visible(Describe.ending(task)))
        return mark(isCompleted) + " " + (isCompleted ? "\(task.id)  " : "") + text
    }

    private func mark(_ isCompleted: Bool) -> String {
        isCompleted ? paint(style.unicode ? "✓" : "*", .green) : paint(style.unicode ? "✗" : "x", .red)
    }

    /// Returns the size, duration and average rate of a completed task.
    private func summary(_ task: TaskStatus) -> String {
        var text = ByteSize.describe(task.bytesDone)
        if task.reason == .unchanged { return text + ", unchanged" + (task.verified ? ", checksum verified" : "") }
        if let started = task.startedAt, let finished = task.finishedAt, finished > started {
            text += " in \(Describe.span(milliseconds: finished - started))"
            let rate = Double(task.bytesFetched) * 1000 / Double(finished - started)
            if rate >= 1, rate < 9e18 { text += ", \(Describe.rate(Int64(rate)))" }
        }
        return text + (task.verified ? ", checksum verified" : "")
    }

    func removed(_ id: TaskID) -> String { "\(mark(false)) task \(id) was removed" }

    /// Returns the line for a task of which only the id is known.
    func bare(_ id: TaskID) -> String { DisplayWidth.fit("\(self.id(id))task \(id)", width) }

    /// Returns the line for the tasks that have no line of their own.
    func others(_ count: Int) -> String {
        paint(DisplayWidth.fit(style.unicode ? "… and \(count) more" : "... and \(count) more", width), .dim)
    }

    /// Returns the line for a remark below the bars.
    func note(_ text: String) -> String { paint(DisplayWidth.fit(text, width), .yellow) }

    // MARK: - Many tasks

    /// Returns the line with the totals. What does not fit is dropped: first the bar, then the number of tasks that did
    /// not complete.
    func total(_ total: Total) -> String {
        let done = "\(total.ended) of \(total.tasks) done"
        let unsuccessful = total.unsuccessful > 0 ? ", \(total.unsuccessful) not completed" : ""
        let amount =
            total.bytesTotal.map { "\(ByteSize.describe(total.bytes)) of \(ByteSize.describe($0))" }
            ?? ByteSize.describe(total.bytes)
        let left = total.eta.map { Describe.clock(seconds: $0) } ?? "-:--"
        let figures = "  \(amount)  \(Describe.rate(total.rate))  \(left) left"
        var words = done + unsuccessful + figures
        if DisplayWidth.of(words) > width { words = done + figures }
        let room = min(40, width - DisplayWidth.of(words) - 2)
        guard room >= 10 else { return DisplayWidth.fit(words, width) }
        let fraction =
            Self.fraction(total.bytes, total.bytesTotal) ?? Double(total.ended) / Double(max(1, total.tasks))
        return bar(fraction: fraction, width: room) + "  " + words
    }

    /// Returns the line with the totals of a watch without an end. What does not fit is dropped: first the numbers of
    /// ended tasks, then the bar.
    func open(_ total: OpenTally.Total) -> String {
        let running = "\(total.active) active, \(total.held) waiting"
        var ended = total.completed > 0 ? ", \(total.completed) done" : ""
        if total.unsuccessful > 0 { ended += ", \(total.unsuccessful) not completed" }
        let amount =
            total.bytesTotal.map { "\(ByteSize.describe(total.bytes)) of \(ByteSize.describe($0))" }
            ?? ByteSize.describe(total.bytes)
        let left = total.eta.map { Describe.clock(seconds: $0) } ?? "-:--"
        let figures = "  \(amount)  \(Describe.rate(total.rate))  \(left) left"
        var words = running + ended + figures
        if DisplayWidth.of(words) > width { words = running + figures }
        let room = min(40, width - DisplayWidth.of(words) - 2)
        guard room >= 10, total.bytesTotal != nil else { return DisplayWidth.fit(words, width) }
        return bar(fraction: Self.fraction(total.bytes, total.bytesTotal), width: room) + "  " + words
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
