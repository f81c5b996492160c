import TaskModel
import Transfer

/// The cookies that a task brings along, as a file of Netscape's format has them.
enum TaskCookies {
    /// Cookies of one run: what servers set goes along within it, and is forgotten with it.
    static func storage(_ text: String) -> CookieStorage {
        let storage = CookieStorage()
        for line in lines(text) {
            if let cookie = Cookie(netscape: line) { storage.set(cookie) }
        }
        return storage
    }

    /// - Throws: ``FieldError`` where a line is neither a cookie nor a comment, or nothing is a cookie.
    static func check(_ text: String) throws(FieldError) {
        var count = 0
        for (index, line) in lines(text).enumerated() {
            if Cookie(netscape: line) != nil {
                count += 1
            } else if line.utf8.first != UInt8(ascii: "#"), line.utf8.contains(where: { $0 > 0x20 }) {
                // Not the line itself: it may hold a secret.
                throw FieldError(
                    field: "cookies",
                    message: "line \(index + 1) is no cookie in Netscape's format: seven fields with tabs between them")
            }
        }
        guard count > 0 else { throw FieldError(field: "cookies", message: "hold no cookie") }
        guard count <= CookieStorage.maximumCount else {
            throw FieldError(field: "cookies", message: "are more than \(CookieStorage.maximumCount)")
        }
    }

    /// By bytes: CR LF is one `Character`.
    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { String(Substring($0)) }
    }
}
