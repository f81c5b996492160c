import ControlClient
import Glibc
import TaskModel

/// Bars on standard error, each drawing over the one before.
final class ProgressView {
    /// Seconds between two drawings.
    static let interval = 0.2

    private let output = Output(STDERR_FILENO)
    private let style: Terminal.Style
    /// Lines of the last drawing, and the columns that the terminal had then.
    private var drawn = 0
    private var columns: Int?
    private(set) var nextDrawing = Deadline.after(seconds: 0)

    init(style: Terminal.Style) {
        self.style = style
        Terminal.hideCursor()
    }

    deinit { Terminal.showCursor() }

    /// Lines that fit below one another, with one to spare for the prompt.
    var capacity: Int { max(1, Terminal.size(STDERR_FILENO).rows - 2) }

    var layout: BarLayout {
        // The last column stays free: a terminal that has it filled may wrap.
        BarLayout(width: max(20, Terminal.size(STDERR_FILENO).columns - 1), style: style)
    }

    func draw(_ lines: [String]) {
        let size = Terminal.size(STDERR_FILENO)
        let isResized = columns.map { $0 != size.columns } ?? false
        output.text(Self.start(over: drawn, rows: size.rows, isResized: isResized))
        for line in lines { output.text(line + "\u{1B}[K\n") }
        if lines.count < drawn { output.text("\u{1B}[J") }
        output.flush()
        drawn = lines.count
        columns = size.columns
        nextDrawing = .after(seconds: Self.interval)
    }

    /// What takes the cursor to where the next drawing begins.
    ///
    /// Terminals differ in what they do with lines that no longer fit: some wrap them anew, and nobody can tell where the
    /// last drawing is now. So a resized terminal is cleared; most terminals keep what stood there for scrolling back.
    ///
    /// - Parameters:
    ///   - drawn: lines of the last drawing.
    ///   - rows: of the terminal.
    static func start(over drawn: Int, rows: Int, isResized: Bool) -> String {
        if isResized { return "\u{1B}[H\u{1B}[2J" }
        return drawn > 0 ? "\u{1B}[\(min(drawn, max(1, rows - 1)))A\r" : ""
    }
}
