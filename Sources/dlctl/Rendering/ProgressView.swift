import ControlClient
import Glibc
import TaskModel

/// Progress bars on standard error; each drawing overwrites the previous one.
final class ProgressView {
    /// The minimum time between two drawings, in seconds.
    static let interval = 0.2

    private let output = Output(STDERR_FILENO)
    private let style: Terminal.Style
    /// The number of lines of the last drawing; `columns` is the terminal's width at that time.
    private var drawn = 0
    private var columns: Int?
    private(set) var nextDrawing = Deadline.after(seconds: 0)

    init(style: Terminal.Style) {
        self.style = style
        Terminal.hideCursor()
    }

    deinit { Terminal.showCursor() }

    /// The number of tasks that fit on the screen, with lines left for the totals, a remark and the prompt.
    var capacity: Int { max(1, Terminal.size(STDERR_FILENO).rows - 4) }

    /// Whether the next drawing clears the terminal, so that lines that stay must be written again.
    var clearsScreen: Bool { columns.map { $0 != Terminal.size(STDERR_FILENO).columns } ?? false }

    var layout: BarLayout {
        // Keep the last column free: some terminals wrap when it is filled.
        BarLayout(width: max(20, Terminal.size(STDERR_FILENO).columns - 1), style: style)
    }

    /// Draws lines in place of those of the last drawing.
    ///
    /// - Parameter lasting: lines that stay on the screen above them.
    func draw(_ lines: [String], below lasting: [String] = []) {
        let size = Terminal.size(STDERR_FILENO)
        let isResized = columns.map { $0 != size.columns } ?? false
        output.text(Self.start(over: drawn, rows: size.rows, isResized: isResized))
        // A line that wraps would leave parts of older lines beside it.
        if !lasting.isEmpty { output.text("\u{1B}[J") }
        for line in lasting { output.text(line + "\n") }
        // No automatic wrap: a terminal may count more columns for a name.
        output.text("\u{1B}[?7l")
        for line in lines { output.text(line + "\u{1B}[K\n") }
        output.text("\u{1B}[?7h")
        if lines.count < drawn { output.text("\u{1B}[J") }
        output.flush()
        drawn = lines.count
        columns = size.columns
        nextDrawing = .after(seconds: Self.interval)
    }

    /// Returns the escape sequence that moves the cursor to the start of the next drawing.
    ///
    /// Terminals differ in how they treat lines that no longer fit. Some re-wrap them, so the position of the last
    /// drawing is unknown. A resized terminal is therefore cleared; most terminals keep the old content in the
    /// scroll-back.
    ///
    /// - Parameters:
    ///   - drawn: the number of lines of the last drawing.
    ///   - rows: the number of rows of the terminal.
    static func start(over drawn: Int, rows: Int, isResized: Bool) -> String {
        if isResized { return "\u{1B}[H\u{1B}[2J" }
        return drawn > 0 ? "\u{1B}[\(min(drawn, max(1, rows - 1)))A\r" : ""
    }
}
