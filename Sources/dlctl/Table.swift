/// Rows in columns. Widths only grow from page to page, so that a long list streams and still stands straight.
struct Table {
    struct Column {
        var title: String
        var alignsRight = false
    }

    let columns: [Column]
    /// Columns of the terminal, or `nil` where nothing is to be cut off. The last column bears the cut.
    let width: Int?
    private var widths: [Int]
    private var showsHeader = true

    init(_ columns: [Column], width: Int?) {
        self.columns = columns
        self.width = width
        widths = columns.map { DisplayWidth.of($0.title) }
    }

    /// The lines of one page; the first page begins with the titles. Cells must be free of control characters.
    mutating func page(_ rows: [[String]]) -> [String] {
        for row in rows {
            for (index, cell) in row.enumerated() where index < widths.count {
                widths[index] = max(widths[index], DisplayWidth.of(cell))
            }
        }
        var lines = rows.map(line)
        if showsHeader {
            lines.insert(line(columns.map(\.title)), at: 0)
            showsHeader = false
        }
        return lines
    }

    private func line(_ cells: [String]) -> String {
        var text = ""
        var used = 0
        for (index, cell) in cells.enumerated() {
            if index == columns.count - 1 {
                text += width.map { DisplayWidth.fit(cell, max(8, $0 - used)) } ?? cell
            } else {
                text += DisplayWidth.pad(cell, widths[index], right: columns[index].alignsRight) + "  "
                used += widths[index] + 2
            }
        }
        while text.last == " " { text.removeLast() }
        return text
    }
}
