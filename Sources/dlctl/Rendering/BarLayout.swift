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
        var others = OtherEndings()
        var bytes: Int64 = 0
        /// The size of all tasks; `nil` if that of any task is unknown.
        var bytesTotal: Int64?
        var rate: Int64 = 0

        /// The number of tasks that are no longer waited for.
        var ended: Int { completed + others.count }

        /// The time left in seconds; `nil` if it is unknown.
        var eta: Int64? {
            guard let bytesTotal, rate > 0 else { return nil }
            return max(0, bytesTotal.subtractingClamped(bytes)) / rate
        }
    }

    // MARK: - One task

    /// Returns the line for a task that has not settled. The name stands last: terminals disagree about the width of some
    /// characters.
    func line(_ task: TaskStatus, now: Milliseconds) -> String {
        let name = Describe.name(task)
        let head = id(task.id)
        let width = width - DisplayWidth.of(head)
        let columns = columns(of: width)
        guard Self.moves(task, now: now) else {
            let words = Escape.visible(Describe.state(task, now: now) { Self.countdown(to: $0, now: now) })
            let start = DisplayWidth.split(
                DisplayWidth.of(words), DisplayWidth.of(name), usual: columns.width + 2, width: width)
            let shown = DisplayWidth.fitMiddle(words, max(0, start - 2))
            let blanks = String(repeating: " ", count: max(0, start - DisplayWidth.of(shown)))
            let isHeld = task.state == .waiting || Describe.stall(task, now: now) != nil
            return head + paint(shown, isHeld ? .yellow : .dim) + blanks
                + DisplayWidth.fitMiddle(name, max(0, width - start))
        }
        return head + progress(task, columns) + "  " + DisplayWidth.fitMiddle(name, max(0, width - columns.width - 2))
    }

    /// Whether bytes of a task pass, so that its line has a bar and figures instead of words.
    static func moves(_ task: TaskStatus, now: Milliseconds) -> Bool {
        task.state == .active && (task.phase == nil || task.phase == .transferring)
            && Describe.stall(task, now: now) == nil
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

    /// The columns before the name: the bar, percent, amount, rate and time left.
    private struct Columns {
        var bar: Int
        /// The widths of the figures; 0 for those that do not fit.
        var figures = [4, 17, 10, 8]

        var width: Int {
            figures.reduce(bar) { $0 + ($1 > 0 ? $1 + ($0 > 0 ? 2 : 0) : 0) }
        }
    }

    /// Returns the columns for a line. Figures that do not fit are dropped: first the amount, then the time left, then
    /// the rate.
    private func columns(of width: Int) -> Columns {
        let room = max(0, width - min(28, max(8, self.width * 3 / 10)) - 2)
        var columns = Columns(bar: 10)
        for index in [1, 3, 2] where columns.width > room { columns.figures[index] = 0 }
        columns.bar = 0
        let rest = room - columns.width - 2
        if rest >= 4 { columns.bar = min(rest, 60, max(20, width / 4)) } else { columns.figures[0] = min(4, room) }
        return columns
    }

    /// Returns the bar and the figures.
    private func progress(_ task: TaskStatus, _ columns: Columns) -> String {
        let amount =
            task.bytesTotal.map { "\(ByteSize.describe(task.bytesDone))/\(ByteSize.describe($0))" }
            ?? ByteSize.describe(task.bytesDone)
        let percent = task.bytesTotal.flatMap { Describe.percent(task.bytesDone, of: $0) }.map { "\($0)%" } ?? ""
        let rate = task.rate.map { Describe.rate($0) } ?? ""
        let left = task.eta.map { Describe.clock(seconds: $0) } ?? ""
        let fraction = Self.fraction(task.bytesDone, task.bytesTotal)
        var parts = columns.bar > 0 ? [bar(fraction: fraction, width: columns.bar)] : []
        for (figure, width) in zip([percent, amount, rate, left], columns.figures) where width > 0 {
            parts.append(DisplayWidth.pad(figure, width, right: true))
        }
        return parts.joined(separator: "  ")
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
        if Describe.wasThere(task) { return text + ", was there: nothing was fetched" }
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

    /// Returns the line with the totals. What does not fit is dropped: first the bar, then the bytes, the time left and
    /// the numbers of ended tasks.
    func total(_ total: Total) -> String {
        let done = "\(total.completed) of \(total.tasks) completed"
        let words = words(done, total.others.words, total.bytes, total.bytesTotal, total.rate, total.eta)
        let fraction =
            Self.fraction(total.bytes, total.bytesTotal) ?? Double(total.ended) / Double(max(1, total.tasks))
        return withBar(words, fraction)
    }

    /// Returns the line with the totals of a watch without an end. What does not fit is dropped as with ``total(_:)``.
    func open(_ total: OpenTally.Total) -> String {
        let running = "\(total.active) active, \(total.held) waiting"
        let ended = (total.completed > 0 ? ", \(total.completed) completed" : "") + total.others.words
        let words = words(running, ended, total.bytes, total.bytesTotal, total.rate, total.eta)
        return withBar(words, Self.fraction(total.bytes, total.bytesTotal))
    }

    private func words(
        _ first: String, _ ended: String, _ bytes: Int64, _ bytesTotal: Int64?, _ rate: Int64, _ eta: Int64?
    ) -> String {
        let size = bytesTotal.map { " of \(ByteSize.describe($0))" } ?? ""
        let amount = "  \(ByteSize.describe(bytes))\(size)"
        let rate = "  \(Describe.rate(rate))"
        let left = "  \(eta.map { Describe.clock(seconds: $0) } ?? "-:--") left"
        return [first + ended + amount + rate + left, first + ended + rate + left, first + ended + rate, first + rate]
            .first { DisplayWidth.of($0) <= width } ?? DisplayWidth.fit(first, width)
    }

    /// Returns a line with a bar before it if there is room, and if the fraction is known.
    private func withBar(_ words: String, _ fraction: Double?) -> String {
        let room = min(40, width - DisplayWidth.of(words) - 2)
        guard room >= 10, let fraction else { return words }
        return bar(fraction: fraction, width: room) + "  " + words
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
