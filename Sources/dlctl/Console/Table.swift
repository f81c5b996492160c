/// A table of text. Column widths only grow from page to page, so that a long list can be streamed and stays aligned.
///
/// On a terminal no line is wider than the terminal. Of the columns that may be cut, the last one shrinks first;
/// columns that may be omitted are dropped last. Numbers, which are aligned to the right, are never cut.
struct Table {
    struct Column {
        var title: String
        var alignsRight = false
        /// The width to which the column may be cut; `nil` if it may not be cut. The last column may always be cut,
        /// unless it is aligned to the right.
        var minimum: Int?
        /// Whether cells are cut in the middle, so that the end of a name stays visible.
        var isCutInMiddle = false
        /// The order in which the column may be omitted, the smallest number first; `nil` if it may not be omitted.
        var omission: Int?
    }

    let columns: [Column]
    /// The width of the terminal in columns, or `nil` to cut nothing off.
    let width: Int?
    /// The widest cell of each column so far.
    private var widths: [Int]
    /// The indices of the shown columns, chosen with the first page, because its titles head all pages.
    private var shown: [Int]
    private var showsHeader = true

    private static let gap = 2
    /// The minimum width of the last column, unless it has one of its own.
    private static let lastMinimum = 16

    init(_ columns: [Column], width: Int?) {
        self.columns = columns
        self.width = width
        widths = columns.map { DisplayWidth.of($0.title) }
        shown = Array(columns.indices)
    }

    /// Returns the lines of one page; the first page begins with the titles. Cells must not contain control characters.
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

    // MARK: Column widths

    private mutating func chooseColumns() {
        for (index, _) in columns.enumerated().filter({ $0.element.omission != nil })
            .sorted(by: { ($0.element.omission ?? 0, $0.offset) < ($1.element.omission ?? 0, $1.offset) })
        where lacking(smallest: true) > 0 {
            shown.removeAll { $0 == index }
        }
    }

    /// The titles of the columns that are omitted because the terminal is too narrow.
    var omitted: [String] { columns.indices.filter { !shown.contains($0) }.map { columns[$0].title } }

    /// Returns the width to which a column may be cut; `nil` if it may not be cut.
    private func minimum(_ index: Int) -> Int? {
        columns[index].minimum ?? (index == shown.last && !columns[index].alignsRight ? Self.lastMinimum : nil)
    }

    /// Returns the number of terminal columns missing to show every column.
    ///
    /// - Parameter smallest: whether columns that may be cut count with their minimum width.
    private func lacking(smallest: Bool) -> Int {
        guard let width else { return 0 }
        let needed = shown.reduce(0) { sum, index in
            sum + (smallest ? min(widths[index], minimum(index) ?? .max) : widths[index])
        }
        return needed + Self.gap * max(0, shown.count - 1) - width
    }

    /// Returns the width of each column.
    private func layout() -> [Int] {
        var layout = widths
        var lacking = lacking(smallest: false)
        let flexible = shown.filter { minimum($0) != nil }
        func cut(_ index: Int, to least: Int) {
            guard lacking > 0, layout[index] > least else { return }
            let part = min(lacking, layout[index] - least)
            layout[index] -= part
            lacking -= part
        }
        for index in flexible.suffix(1) + flexible.dropLast() { cut(index, to: minimum(index) ?? 0) }
        // Even the minimum is too wide.
        for index in flexible.suffix(1) { cut(index, to: 0) }
        return layout
    }

    private func line(_ cells: [String], _ layout: [Int]) -> String {
        var text = ""
        for index in shown {
            let cell = index < cells.count ? cells[index] : ""
            let isLast = index == shown.last
            let fitted =
                width == nil
                ? cell
                : columns[index].isCutInMiddle
                    ? DisplayWidth.fitMiddle(cell, layout[index]) : DisplayWidth.fit(cell, layout[index])
            let isPadded = !isLast || columns[index].alignsRight
            text += isPadded ? DisplayWidth.pad(fitted, layout[index], right: columns[index].alignsRight) : fitted
            if !isLast { text += String(repeating: " ", count: Self.gap) }
        }
        while text.last == " " { text.removeLast() }
        // Cut the line if the columns that may not be cut are wider than the terminal.
        return width.map { DisplayWidth.fit(text, $0) } ?? text
    }
}
