import TaskModel

/// An aria2 input file (aria2c(1), "Input File"). An entry is a line of URLs separated by tabs, all of them sources of
/// one file. The following lines that begin with white space contain one option each, `name=value`.
///
/// The format has no escapes. Lines that begin with `#` are comments. See ``Aria2Option`` for the treatment of each
/// option.
package struct Aria2Input: Sendable, Equatable {
    /// The entries in the file's order; no two have the same key.
    package var entries: [QueueEntry] = []
    /// Notes about ignored options, at the first occurrence of each.
    package var notes: [FileNote] = []

    package enum Limit {
        package static let entries = 1_000_000
    }

    /// Parses an input file.
    ///
    /// - Parameters:
    ///   - bytes: the file; a byte order mark and CR LF line ends are accepted.
    ///   - file: the name to print in messages.
    ///   - limit: the maximum number of entries.
    /// - Throws: ``FileError`` for the faults in the file: an invalid URL or option line, an option that is
    ///   rejected or given twice, an invalid value, or more than `limit` entries.
    package init(parsing bytes: [UInt8], file: String, limit: Int = Limit.entries) throws(FileError) {
        var reader = Aria2Reader(file: file, limit: limit)
        let bytes = FileText.utf8(bytes)
        var start = bytes.starts(with: FileText.byteOrderMark) ? FileText.byteOrderMark.count : 0
        while start < bytes.count, !reader.isFull {
            let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            reader.read(line: bytes[start..<end])
            start = end + 1
        }
        reader.finish()
        try reader.faults.throwAny()
        entries = reader.entries
        notes = reader.notes
    }
}

/// A reader that parses an input file line by line.
private struct Aria2Reader {
    let file: String
    let limit: Int
    var entries: [QueueEntry] = []
    private(set) var faults = FileFaults()
    /// Whether the limit is exceeded.
    private(set) var isFull = false
    private var number = 0
    private var entry: Aria2Entry?
    /// Whether the lines of options belong to an entry whose URLs cannot be read.
    private var passesOver = false
    private var keys: [String: Int] = [:]
    private var passedOver: [(note: FileNote, count: Int)] = []
    private var passedOverIndex: [String: Int] = [:]

    init(file: String, limit: Int) {
        self.file = file
        self.limit = limit
    }

    /// The notes, one per option and reason, however many lines contain the option.
    var notes: [FileNote] {
        passedOver.map { item in
            var note = item.note
            if item.count > 1 { note.message += " (and \(item.count - 1) more)" }
            return note
        }
    }

    mutating func read(line: ArraySlice<UInt8>) {
        number += 1
        let isOption = line.first == 0x20 || line.first == 0x09
        do throws(FileError) {
            try read(line, isOption: isOption)
        } catch {
            if !isOption { passesOver = true }
            faults.add(error)
        }
    }

    private mutating func read(_ line: ArraySlice<UInt8>, isOption: Bool) throws(FileError) {
        let text = FileText.trimmed(line)
        guard let first = text.first, first != UInt8(ascii: "#") else { return }
        if isOption, passesOver { return }
        if !isOption {
            finish()
            passesOver = false
        }
        // The trimmed characters are ASCII, so their number of bytes is their number of characters.
        let position = Position(line: number, column: text.startIndex - line.startIndex + 1)
        guard let text = String(validating: text, as: UTF8.self) else {
            throw fault(position, "is not UTF-8 text; dld reads text files only")
        }
        if isOption {
            try readOption(text, at: position)
        } else {
            guard entries.count < limit else {
                isFull = true
                throw fault(position, "exceeds the limit of \(limit) entries per file")
            }
            entry = Aria2Entry(file: file, sources: sources(text, at: position))
        }
    }

    private func sources(_ text: String, at position: Position) -> [Aria2Entry.Text] {
        var column = position.column
        var sources: [Aria2Entry.Text] = []
        for part in text.utf8.split(separator: 0x09, omittingEmptySubsequences: false) {
            let part = String(decoding: part, as: UTF8.self)
            if !part.isEmpty {
                sources.append(.init(text: part, position: Position(line: position.line, column: column)))
            }
            column += part.count + 1
        }
        return sources
    }

    private mutating func readOption(_ text: String, at position: Position) throws(FileError) {
        let bytes = text.utf8
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")), equals != bytes.startIndex,
            bytes[..<equals].allSatisfy({ $0.isLetterOrDigit || $0 == UInt8(ascii: "-") || $0 == 0x20 || $0 == 0x09 })
        else {
            throw fault(
                position,
                "is not an option; after white space write \"name=value\", or move a URL to the beginning of the line")
        }
        func trimmed(_ part: Substring.UTF8View) -> String {
            String(decoding: FileText.trimmed(Array(part)[...]), as: UTF8.self)
        }
        let (name, value) = (trimmed(bytes[..<equals]), trimmed(bytes[bytes.index(after: equals)...]))
        guard entry != nil else { throw fault(position, "\"\(name)\" must follow a URL") }
        switch Aria2Option.meaning(of: name) {
        case nil: throw fault(position, Aria2Option.refusal(ofUnknown: name))
        case .refused(let harmless, let reason):
            guard harmless.contains(value) else { throw fault(position, "\"\(name)\" \(reason)") }
            try apply(name, value, at: position)
        case .passedOver:
            warn(at: position, "\"\(name)\" only tunes aria2; it is ignored")
        case .carriedOut:
            try apply(name, value, at: position)
        }
    }

    private mutating func apply(_ name: String, _ value: String, at position: Position) throws(FileError) {
        guard entry?.store(name, .init(text: value, position: position)) == true else {
            throw fault(position, "\"\(name)\" is given twice")
        }
    }

    private mutating func warn(at position: Position, _ message: String) {
        if let index = passedOverIndex[message] {
            passedOver[index].count += 1
        } else {
            passedOverIndex[message] = passedOver.count
            let note = FileNote(file: file, line: position.line, column: position.column, message: message)
            passedOver.append((note, 1))
        }
    }

    /// Converts the current entry into a task.
    mutating func finish() {
        guard let entry else { return }
        self.entry = nil
        do throws(FileError) {
            try add(entry)
        } catch {
            faults.add(error)
        }
    }

    private mutating func add(_ entry: Aria2Entry) throws(FileError) {
        var entry = entry
        let task = try entry.specification()
        for (position, message) in entry.notes { warn(at: position, message) }
        if let key = task.key {
            if let line = keys[key] {
                throw fault(entry.position, "has the same \"gid\" as the entry at line \(line)")
            }
            keys[key] = entry.position.line
        }
        entries.append(QueueEntry(task, line: entry.position.line, column: entry.position.column))
    }

    private func fault(_ position: Position, _ message: String) -> FileError {
        FileError(file: file, at: position, message)
    }
}
