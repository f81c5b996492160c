import ControlClient
import Glibc
import TaskModel

/// Bars on standard error, each drawing over the one before.
final class ProgressView {
    /// Seconds between two drawings.
    static let interval = 0.2

    private let output = Output(STDERR_FILENO)
    private let style: Terminal.Style
    private var drawn = 0
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
        if drawn > 0 { output.text("\u{1B}[\(drawn)A\r") }
        for line in lines { output.text(line + "\u{1B}[K\n") }
        if lines.count < drawn { output.text("\u{1B}[J") }
        output.flush()
        drawn = lines.count
        nextDrawing = .after(seconds: Self.interval)
    }
}
