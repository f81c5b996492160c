import TaskFiles
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
    /// - Returns: the numbers of the lines that are neither a cookie nor a comment, which are passed over.
    /// - Throws: ``FieldError`` where there is no cookie, or where there are too many.
    static func check(_ text: String) throws(FieldError) -> [Int] {
        var count = 0
        var bad: [Int] = []
        for (index, line) in lines(text).enumerated() {
            if Cookie(netscape: line) != nil {
                count += 1
            } else if line.utf8.first != UInt8(ascii: "#"), line.utf8.contains(where: { $0 > 0x20 }) {
                bad.append(index + 1)
            }
        }
        guard count > 0 else {
            // The message leaves out the lines themselves, which may contain secrets.
            let reason =
                switch bad.count {
                case 0: ""
                case 1: ": line \(bad[0]) is not \(form)"
                default: ": lines \(listed(bad)) are not \(form)"
                }
            throw FieldError(field: "cookies", message: "contain no cookie" + reason)
        }
        guard count <= CookieStorage.maximumCount else {
            throw FieldError(field: "cookies", message: "must be at most \(CookieStorage.maximumCount) cookies")
        }
        return bad
    }

    private static let form = "in Netscape format, seven fields separated by tabs"

    private static func listed(_ numbers: [Int]) -> String {
        let listed = numbers.prefix(FileFaults.limit)
        let rest = numbers.count - listed.count
        return listed.map { "\($0)" }.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
    }

    /// Returns the warnings about lines that are passed over. They leave out the lines, which may contain secrets.
    static func notes(ofBadLines numbers: [Int]) -> [String] {
        let listed = numbers.prefix(FileFaults.limit)
        let rest = numbers.count - listed.count
        return listed.map { "cookies:\($0):1: is passed over: it is not \(form)" }
            + (rest > 0 ? ["cookies: \(rest) more lines are passed over"] : [])
    }

    /// Splits the text into lines by bytes, since CR LF is a single `Character`. A byte order mark is no part of the
    /// first one.
    private static func lines(_ text: String) -> [String] {
        let mark: Unicode.Scalar = "\u{FEFF}"
        let text = text.unicodeScalars.first == mark ? Substring(text.unicodeScalars.dropFirst()) : text[...]
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        return lines.map { String(Substring($0)) }
    }
}
