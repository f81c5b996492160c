import TaskModel

/// The formats of files that keep secrets out of the process list.
package enum SecretText {
    /// The maximum number of bytes of each kind of file.
    package enum Limit {
        package static let headers = 1 << 20
        package static let password = 1 << 16
        /// The task's limit plus one, so that a longer text fails with the task's own error.
        package static let cookies = TaskSpecification.Limit.cookiesLength + 1
        package static let form = 1 << 20
        /// The task's limit plus one, so that a longer text fails with the task's own error.
        package static let certificates = TaskSpecification.Limit.certificatesLength + 1
    }

    /// Returns the header lines; empty lines are omitted, and a CR before the LF is removed.
    package static func headers(_ text: String) -> [String] {
        lines(text).filter { !$0.isEmpty }
    }

    /// Returns the form fields, one per line; empty lines are omitted, and a CR before the LF is removed.
    package static func fields(_ text: String) -> [String] { headers(text) }

    /// Returns the first line, without its line end.
    package static func password(_ text: String) -> String { lines(text).first ?? "" }

    /// Splits at LF and removes a CR before it. This works on bytes because CR LF is one `Character`.
    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            let kept = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            return String(decoding: kept, as: UTF8.self)
        }
    }
}
