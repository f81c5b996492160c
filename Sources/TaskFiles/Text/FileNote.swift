/// A note about contents of a file that are ignored because nothing is lost without them, with their position.
package struct FileNote: Sendable, Equatable, CustomStringConvertible {
    /// The file's name as given by the caller; it is only printed, never opened.
    package var file: String
    /// The line number, from 1.
    package var line: Int
    /// The column in characters, from 1.
    package var column: Int
    /// A message of one line.
    package var message: String

    package init(file: String, line: Int, column: Int, message: String) {
        self.file = file
        self.line = line
        self.column = column
        self.message = message
    }

    /// The text `FILE:LINE:COLUMN: warning: message`.
    package var description: String { "\(file):\(line):\(column): warning: \(message)" }
}
