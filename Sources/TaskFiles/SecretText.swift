import TaskModel

/// What files hold that keep secrets out of the process list.
package enum SecretText {
    /// Bytes of a file.
    package enum Limit {
        package static let headers = 1 << 20
        package static let password = 1 << 16
        /// One more than fits, so that the rule that is broken is the task's own.
        package static let cookies = TaskSpecification.Limit.cookiesLength + 1
        package static let form = 1 << 20
        /// One more than fits, so that the rule that is broken is the task's own.
        package static let certificates = TaskSpecification.Limit.certificatesLength + 1
    }

    /// Header lines, one a line; empty lines and the line ends of other systems fall away.
    package static func headers(_ text: String) -> [String] {
        lines(text).filter { !$0.isEmpty }
    }

    /// Fields of a form, one a line; empty lines and the line ends of other systems fall away.
    package static func fields(_ text: String) -> [String] { headers(text) }

    /// The first line, whole.
    package static func password(_ text: String) -> String { lines(text).first ?? "" }

    /// Splits at LF and drops a CR before it. Works on bytes: CR LF is one `Character`.
    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            let kept = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            return String(decoding: kept, as: UTF8.self)
        }
    }
}
