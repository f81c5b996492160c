import TaskModel
import TerminalScreen

/// A graph of rates as lines of text. The result depends on the arguments only.
struct RateGraph {
    /// The width of the graph with its labels, in columns.
    var width: Int
    var height: Int
    var unicode: Bool

    private static let labelWidth = 11
    /// The shortest time that a graph covers, in seconds.
    private static let period: Int64 = 180

    private var columns: Int { max(1, width - Self.labelWidth - 1) }

    /// The length in seconds of the period of one column.
    private var secondsPerColumn: Int64 { max(1, (Self.period + Int64(columns) - 1) / Int64(columns)) }

    func lines(_ history: RateHistory, now: Milliseconds) -> [StyledLine] {
        guard height > 0 else { return [] }
        let rates = history.means(columns, of: secondsPerColumn, at: now)
        let top = Self.scale(above: rates.reduce(0) { max($0, $1 ?? 0) })
        let minutes = Int64(columns) * secondsPerColumn / 60
        return (0..<height).map { row in
            let label =
                switch row {
                case 0: Describe.rate(top)
                case height - 1: height > 2 ? "0" : ""
                case height - 2: "\(minutes) min"
                default: ""
                }
            var line = StyledLine(DisplayWidth.pad(label, Self.labelWidth - 1, right: true) + " ", .dim)
            line.append(unicode ? "│" : "|", .dim)
            line.append(cells(rates, top: top, fromBottom: height - 1 - row), .colour(.cyan))
            return line
        }
    }

    private func cells(_ rates: [Int64?], top: Int64, fromBottom row: Int) -> String {
        let signs: [Character] = unicode ? Array(" ▁▂▃▄▅▆▇█") : Array(" .:|")
        let steps = signs.count - 1
        let text = rates.map { rate -> Character in
            guard let rate, rate > 0 else { return " " }
            let share = min(1, Double(rate) / Double(max(1, top)))
            // Anything above 0 is visible.
            let level = max(1, Int((share * Double(height * steps)).rounded()))
            return signs[min(steps, max(0, level - row * steps))]
        }
        return String(text)
    }

    /// Returns the smallest of the numbers 1, 2, 5, 10, … that is not below a rate; the unit is a power of 1024.
    static func scale(above rate: Int64) -> Int64 {
        var unit: Int64 = 1024
        while unit < 1 << 50, rate > unit.multipliedClamped(by: 500) { unit *= 1024 }
        for step: Int64 in [1, 2, 5, 10, 20, 50, 100, 200, 500] where rate <= unit * step { return unit * step }
        return rate
    }
}
