import TaskModel
import Transfer

/// The cookies of a task.
enum TaskCookies {
    /// Returns the cookie storage of one run. It also holds the cookies that servers set during the run, and is
    /// discarded with it.
    ///
    /// - Parameter text: the task's own cookies in Netscape file format; `nil` if it has none.
    static func storage(_ text: String?) -> CookieStorage {
        let storage = CookieStorage()
        for line in text.map(lines) ?? [] {
            if let cookie = Cookie(netscape: line) { storage.set(cookie) }
        }
        return storage
    }

    /// Validates the cookies.
    ///
    /// - Throws: ``FieldError`` where a line is neither a cookie nor a comment, where there is no cookie, or where
    ///   there are too many.
    static func check(_ text: String) throws(FieldError) {
        var count = 0
        for (index, line) in lines(text).enumerated() {
            if Cookie(netscape: line) != nil {
                count += 1
            } else if line.utf8.first != UInt8(ascii: "#"), line.utf8.contains(where: { $0 > 0x20 }) {
                // The message leaves out the line itself, which may contain a secret.
                throw FieldError(
                    field: "cookies",
                    message: "line \(index + 1) is not a cookie in Netscape format: seven fields separated by tabs")
            }
        }
        guard count > 0 else { throw FieldError(field: "cookies", message: "contain no cookie") }
        guard count <= CookieStorage.maximumCount else {
            throw FieldError(field: "cookies", message: "must be at most \(CookieStorage.maximumCount) cookies")
        }
    }

    /// Splits the text into lines by bytes, since CR LF is a single `Character`.
    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { String(Substring($0)) }
    }
}
