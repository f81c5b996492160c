package import TaskModel

/// A fault in a file written by a user, with its position.
package struct FileError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file's name as given by the caller; it is only printed, never opened.
    package var file: String
    /// The line number, from 1.
    package var line: Int
    /// The column in characters, from 1.
    package var column: Int
    package var code: ErrorCode
    /// A message of one line that states the fault and what would be correct.
    package var message: String
    /// The faults after this one that are listed with it.
    package internal(set) var others: [FileError] = []
    /// The number of further faults, which are not listed.
    package internal(set) var unlisted = 0

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

    /// The text `FILE:LINE:COLUMN: message`.
    package var description: String { "\(file):\(line):\(column): \(message)" }

    /// The texts of the fault and of those listed with it, and the number of the rest.
    package var lines: [String] {
        [description] + others.map(\.description) + (unlisted > 0 ? ["and \(unlisted) more"] : [])
    }

    var position: Position {
        get { Position(line: line, column: column) }
        set { (line, column) = (newValue.line, newValue.column) }
    }
}

/// A position in a file; line and column count from 1.
struct Position: Sendable, Hashable, Comparable {
    var line = 1
    var column = 1

    static func < (left: Position, right: Position) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }
}
