import TerminalScreen

/// The heights of the parts of the screen.
struct TopLayout: Equatable {
    /// The rows of rates and counts at the top.
    var headerRows: Int
    var graphRows: Int
    /// The row with the titles of the columns.
    var titleRows: Int
    var listRows: Int
    /// The rows of messages and keys at the bottom.
    var footerRows: Int

    init(size: ScreenSize) {
        let rows = max(1, size.rows)
        headerRows = rows >= 8 ? 2 : rows >= 3 ? 1 : 0
        graphRows = rows >= 36 ? 6 : rows >= 20 ? 4 : rows >= 14 ? 2 : 0
        titleRows = rows >= 6 ? 1 : 0
        footerRows = rows >= 8 ? 2 : rows >= 2 ? 1 : 0
        listRows = max(0, rows - headerRows - graphRows - titleRows - footerRows)
    }
}
