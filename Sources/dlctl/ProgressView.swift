import ControlClient
import Glibc
import TaskModel

/// Bars on standard error, each drawing over the one before.
final class ProgressView {
    /// Seconds between two drawings.
    static let interval = 0.2

    private let output = Output(STDERR_FILENO)
    private let style: Terminal.Style
    /// Columns that each line of the last drawing takes.
    private var drawn: [Int] = []
    private let reflows: Bool
    private(set) var nextDrawing = Deadline.after(seconds: 0)

    /// - Parameter reflows: as ``Terminal/reflows(_:)``.
    init(style: Terminal.Style, reflows: Bool) {
        self.style = style
        self.reflows = reflows
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
        let rows = Self.rows(of: drawn, columns: reflows ? size.columns : .max)
        if rows > 0 { output.text("\u{1B}[\(min(rows, max(1, size.rows - 1)))A\r") }
        for line in lines { output.text(line + "\u{1B}[K\n") }
        if lines.count < rows { output.text("\u{1B}[J") }
        output.flush()
        drawn = lines.map(DisplayWidth.ofPainted)
        nextDrawing = .after(seconds: Self.interval)
    }

    /// Rows that lines take on a terminal that has become so wide: it wraps those that no longer fit.
    ///
    /// - Parameter widths: of the lines.
    static func rows(of widths: [Int], columns: Int) -> Int {
        let columns = max(1, columns)
        return widths.reduce(0) { $0 + max(1, $1 / columns + ($1 % columns > 0 ? 1 : 0)) }
    }
}
