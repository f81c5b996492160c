import TaskModel

/// What is wrong with a file that a person wrote, and where.
package struct FileError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file's name as the caller gave it; printed, never opened.
    package var file: String
    /// From 1.
    package var line: Int
    /// From 1, in characters.
    package var column: Int
    package var code: ErrorCode
    /// One line: what is wrong and what would be right.
    package var message: String

    package init(file: String, line: Int, column: Int, code: ErrorCode = .invalid, message: String) {
        self.file = file
        self.line = line
        self.column = column
        self.code = code
        self.message = message
    }

    init(file: String, at position: Position, code: ErrorCode = .invalid, _ message: String) {
        self.init(file: file, line: position.line, column: position.column, code: code, message: message)
    }

    /// `FILE:LINE:COLUMN: message`
    package var description: String { "\(file):\(line):\(column): \(message)" }
}

/// A place in a file; both numbers count from 1.
struct Position: Sendable, Hashable, Comparable {
    var line = 1
    var column = 1

    static func < (left: Position, right: Position) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}
