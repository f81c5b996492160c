import TaskModel

/// The formats of files that keep secrets out of the process list.
package enum SecretText {
    /// The maximum number of bytes of each kind of file.
    package enum Limit {
        package static let headers = 1 << 20
        package static let password = 1 << 16
        /// The task's limit plus one, so that a longer text fails with the task's own error.
        package static let cookies = TaskSpecification.Limit.cookiesLength + 1
        /// The task's limit plus one, so that a longer text fails with the task's own error.
        package static let netrc = Netrc.maximumLength + 1
        package static let form = 1 << 20
        /// The task's limit plus one, so that a longer text fails with the task's own error.
        package static let certificates = TaskSpecification.Limit.certificatesLength + 1
    }

    /// Returns the lines of a file of header lines or form fields; empty lines are omitted, and a CR before the LF is
    /// removed.
    package static func lines(_ text: String) -> [String] { split(text).filter { !$0.isEmpty } }

    /// Returns the first line, without its line end.
    package static func password(_ text: String) -> String { split(text).first ?? "" }

    /// Splits at LF and removes a CR before it. This works on bytes because CR LF is one `Character`.
    private static func split(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            let kept = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            return String(decoding: kept, as: UTF8.self)
        }
    }
}

extension FieldLines {
    /// The maximum number of bytes of a file of such lines.
    package var limit: Int {
        switch self {
        case .headers: SecretText.Limit.headers
        case .form: SecretText.Limit.form
        }
    }
}

extension FieldContents {
    /// The maximum number of bytes of a file.
    package var limit: Int {
        switch self {
        case .password: SecretText.Limit.password
        case .cookies: SecretText.Limit.cookies
        case .certificates: SecretText.Limit.certificates
        case .netrc: SecretText.Limit.netrc
        }
    }

    /// Returns the value in the text of a file.
    package func value(_ text: String) -> String {
        switch self {
        case .password: SecretText.password(text)
        case .cookies, .certificates, .netrc: text
        }
    }
}
