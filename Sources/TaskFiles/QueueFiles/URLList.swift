import TaskModel

/// A list with one URL per line; blank lines and lines that begin with `#` are ignored.
package struct URLList: Sendable, Equatable {
    /// The entries in the file's order; a URL may occur more than once.
    package var entries: [QueueEntry]

    /// Parses a list.
    ///
    /// - Parameters:
    ///   - bytes: the list; a byte order mark, CR LF line ends and white space around a URL are accepted.
    ///   - file: the name to print in messages.
    ///   - limit: the maximum number of URLs.
    /// - Throws: ``FileError`` for the lines that are not valid URLs or exceed the limit.
    package init(
        parsing bytes: [UInt8], file: String, limit: Int = QueueFile.Limit.entries
    ) throws(FileError) {
        entries = []
        var reader = Reader(bytes, file: file, limit: limit)
        var faults = FileFaults()
        while true {
            do throws(FileError) {
                guard let entry = try reader.next() else { break }
                entries.append(entry)
            } catch {
                faults.add(error)
            }
        }
        try faults.throwAny()
    }

    /// Parses a list.
    ///
    /// - Throws: ``FileError`` for the lines that are not valid URLs or exceed the limit.
    package init(parsing text: String, file: String) throws(FileError) {
        try self.init(parsing: Array(text.utf8), file: file)
    }
}

extension URLList {
    /// A reader that parses a list entry by entry.
    package struct Reader {
        private let bytes: [UInt8]
        private let file: String
        private let limit: Int
        private var start: Int
        private var number = 0
        private var count = 0

        /// - Parameters: as for ``URLList/init(parsing:file:limit:)``.
        package init(_ bytes: [UInt8], file: String, limit: Int = QueueFile.Limit.entries) {
            let bytes = FileText.utf8(bytes)
            self.bytes = bytes
            self.file = file
            self.limit = limit
            start = bytes.starts(with: FileText.byteOrderMark) ? FileText.byteOrderMark.count : 0
        }

        /// Returns the next entry.
        ///
        /// - Returns: `nil` at the end.
        /// - Throws: ``FileError`` for a line that is not a valid URL, after which the next call goes on, or exceeds the
        ///   limit, which ends the list.
        package mutating func next() throws(FileError) -> QueueEntry? {
            while start < bytes.count {
                let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
                number += 1
                let line = bytes[start..<end]
                let text = FileText.trimmed(line)
                start = end + 1
                guard let first = text.first, first != UInt8(ascii: "#") else { continue }
                // The trimmed characters are ASCII, so their number of bytes is their number of characters.
                return try entry(text, at: Position(line: number, column: text.startIndex - line.startIndex + 1))
            }
            return nil
        }

        private mutating func entry(_ text: ArraySlice<UInt8>, at position: Position) throws(FileError) -> QueueEntry {
            guard let url = String(validating: text, as: UTF8.self) else {
                throw FileError(file: file, at: position, "is not UTF-8 text; dld reads text files only")
            }
            let task = TaskSpecification(url: url)
            do throws(FieldError) {
                try task.check()
            } catch {
                throw FileError(file: file, at: position, code: error.code, "\"\(error.field)\": \(error.message)")
            }
            guard count < limit else {
                start = bytes.count
                throw FileError(file: file, at: position, "exceeds the limit of \(limit) URLs per file")
            }
            count += 1
            return QueueEntry(task, line: position.line, column: position.column)
        }
    }
}
