/// A table of text. Column widths only grow from page to page, so that a long list can be streamed and stays aligned.
///
/// On a terminal no line is wider than the terminal. The last column shrinks first, then columns that may be cut;
/// columns that may be omitted are dropped last.
struct Table {
    struct Column {
        var title: String
        var alignsRight = false
        /// The width to which the column may be cut; `nil` if it may not be cut.
        var minimum: Int?
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
    /// The minimum width of the last column while other columns can shrink.
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

    /// Returns the number of terminal columns missing for the last column to have its minimum width beside the others.
    ///
    /// - Parameter smallest: whether columns that may be cut count with their minimum width.
    private func lacking(smallest: Bool) -> Int {
        guard let width, let last = shown.last else { return 0 }
        let others = shown.dropLast().reduce(0) { sum, index in
            sum + Self.gap + (smallest ? min(widths[index], columns[index].minimum ?? .max) : widths[index])
        }
        return others + min(widths[last], Self.lastMinimum) - width
    }

    /// Returns the width of each column; the last shown column receives the remaining width.
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
        // Cut the line if the columns that may not be cut are wider than the terminal.
        return width.map { DisplayWidth.fit(text, $0) } ?? text
    }
}
