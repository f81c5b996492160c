/// Rows in columns. Widths only grow from page to page, so that a long list streams and still stands straight.
///
/// On a terminal no line is wider than it is: the last column gives way first, then those that may be cut, then those
/// that may be left out.
struct Table {
    struct Column {
        var title: String
        var alignsRight = false
        /// It may be cut to so many columns of the terminal; `nil`: it may not.
        var minimum: Int?
        /// It may be left out, that with the smallest number first; `nil`: it may not.
        var omission: Int?
    }

    let columns: [Column]
    /// Columns of the terminal, or `nil` where nothing is to be cut off.
    let width: Int?
    /// What the cells so far would take.
    private var widths: [Int]
    /// Columns that are shown; they are chosen with the first page, whose titles stand above all others.
    private var shown: [Int]
    private var showsHeader = true

    private static let gap = 2
    /// What the last column keeps while others can give way.
    private static let lastMinimum = 16

    init(_ columns: [Column], width: Int?) {
        self.columns = columns
        self.width = width
        widths = columns.map { DisplayWidth.of($0.title) }
        shown = Array(columns.indices)
    }

    /// The lines of one page; the first page begins with the titles. Cells must be free of control characters.
    mutating func page(_ rows: [[String]]) -> [String] {
        for row in rows {
            for (index, cell) in row.enumerated() where index < widths.count {
                widths[index] = max(widths[index], DisplayWidth.of(cell))
            }
        }
        if showsHeader { chooseColumns() }
        let layout = layout()
        var lines = rows.map { line($0, layout) }
        if showsHeader {
            lines.insert(line(columns.map(\.title), layout), at: 0)
            showsHeader = false
        }
        return lines
    }

    // MARK: Room

    private mutating func chooseColumns() {
        for (index, _) in columns.enumerated().filter({ $0.element.omission != nil })
            .sorted(by: { ($0.element.omission ?? 0, $0.offset) < ($1.element.omission ?? 0, $1.offset) })
        where lacking(smallest: true) > 0 {
            shown.removeAll { $0 == index }
        }
    }

    /// What lacks for the last column to have its minimum beside the others.
    ///
    /// - Parameter smallest: those that may be cut are.
    private func lacking(smallest: Bool) -> Int {
        guard let width, let last = shown.last else { return 0 }
        let others = shown.dropLast().reduce(0) { sum, index in
            sum + Self.gap + (smallest ? min(widths[index], columns[index].minimum ?? .max) : widths[index])
        }
        return others + min(widths[last], Self.lastMinimum) - width
    }

    /// The widths of the columns that are shown; of the last one, what is left for it.
    private func layout() -> [Int] {
        var layout = widths
        guard let width, let last = shown.last else { return layout }
        var lacking = lacking(smallest: false)
        for index in shown.dropLast() where lacking > 0 {
            guard let minimum = columns[index].minimum, minimum < layout[index] else { continue }
            let cut = min(lacking, layout[index] - minimum)
            layout[index] -= cut
            lacking -= cut
        }
        let used = shown.dropLast().reduce(0) { $0 + layout[$1] + Self.gap }
        layout[last] = max(0, width - used)
        return layout
    }

    private func line(_ cells: [String], _ layout: [Int]) -> String {
        var text = ""
        for index in shown {
            let cell = index < cells.count ? cells[index] : ""
            let isLast = index == shown.last
            let fitted = width == nil ? cell : DisplayWidth.fit(cell, layout[index])
            text += isLast ? fitted : DisplayWidth.pad(fitted, layout[index], right: columns[index].alignsRight)
            if !isLast { text += String(repeating: " ", count: Self.gap) }
        }
        while text.last == " " { text.removeLast() }
        // Where not even the columns that stay whole have room.
        return width.map { DisplayWidth.fit(text, $0) } ?? text
    }
}
