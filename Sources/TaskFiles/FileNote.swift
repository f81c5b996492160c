/// What a file says that is passed over, since nothing is lost without it, and where.
package struct FileNote: Sendable, Equatable, CustomStringConvertible {
    /// The file's name as the caller gave it; printed, never opened.
    package var file: String
    /// From 1.
    package var line: Int
    /// From 1, in characters.
    package var column: Int
    /// One line.
    package var message: String

    package init(file: String, line: Int, column: Int, message: String) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    /// `FILE:LINE:COLUMN: warning: message`
    package var description: String { "\(file):\(line):\(column): warning: \(message)" }
}
