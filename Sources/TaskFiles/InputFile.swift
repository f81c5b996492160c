package import TaskModel

/// A file of tasks whose format is detected from its content.
package enum InputFile {
    package enum Kind: Sendable, Equatable {
        case urlList, queueFile, metalink, aria2Input
    }

    /// Detects the format from the first line that is neither blank nor a comment. A list of URLs counts as aria2 input
    /// if an indented option follows a URL, or if a line contains several URLs.
    package static func detect(_ bytes: [UInt8]) -> Kind {
        let bytes = FileText.utf8(bytes)
        var lines =
            bytes.starts(with: FileText.byteOrderMark) ? bytes.dropFirst(FileText.byteOrderMark.count) : bytes[...]
        var kind: Kind?
        while !lines.isEmpty {
            let line = lines.prefix { $0 != UInt8(ascii: "\n") }
            lines = lines[line.endIndex...].dropFirst()
            let text = FileText.trimmed(line)
            guard let first = text.first, first != UInt8(ascii: "#") else { continue }
            if kind == nil {
                if first == UInt8(ascii: "<") { return .metalink }
                if isYAML(text) { return .queueFile }
                kind = .urlList
            } else if line.first == 0x20 || line.first == 0x09, isOption(text) {
                return .aria2Input
            }
            if isSeveralURLs(text) { return .aria2Input }
        }
        return kind ?? .urlList
    }

    /// Parses a URL list, a queue file, a Metalink or an aria2 input file.
    ///
    /// - Parameters: as for ``QueueFile/init(parsing:file:baseDirectory:now:utcOffset:readFile:)``.
    /// - Throws: ``FileError`` for the faults in the file; of a Metalink, for the first one.
    package static func parse(
        _ bytes: [UInt8], file: String, baseDirectory: String, now: Milliseconds,
        utcOffset: @escaping @Sendable (Milliseconds) -> Int, readFile: @escaping ReadFile
    ) throws(FileError) -> QueueFile {
        switch detect(bytes) {
        case .urlList:
            return QueueFile(entries: try URLList(parsing: bytes, file: file).entries)
        case .queueFile:
            return try QueueFile(
                parsing: FileText.decode(bytes, file: file), file: file, baseDirectory: baseDirectory, now: now,
                utcOffset: utcOffset, readFile: readFile)
        case .metalink: return try queueFile(of: Metalink(parsing: bytes, file: file), file: file)
        case .aria2Input:
            let input = try Aria2Input(parsing: bytes, file: file)
            var queue = QueueFile(entries: input.entries)
            queue.notes = input.notes
            return queue
        }
    }

    private static func queueFile(of metalink: Metalink, file: String) throws(FileError) -> QueueFile {
        var queue = QueueFile()
        queue.entries.reserveCapacity(metalink.files.count)
        for part in metalink.files {
            let task = part.specification
            do {
                try task.check()
            } catch {
                throw FileError(
                    file: file, line: part.line, column: part.column, code: error.code,
                    message: "\"\(error.field)\": \(error.message)")
            }
            queue.entries.append(QueueEntry(task, line: part.line, column: part.column))
        }
        queue.nestsDirectories = true
        return queue
    }

    /// Returns whether the line can start a YAML document: with a marker, a directive, a list, a flow collection, or a
    /// key.
    private static func isYAML(_ line: ArraySlice<UInt8>) -> Bool {
        let beginnings = ["---", "%YAML", "{", "[", "- "].map { Array($0.utf8) }
        if beginnings.contains(where: { line.starts(with: $0) }) || line.elementsEqual("-".utf8) { return true }
        let key = line.prefix { $0.isLetterOrDigit || Array("-_\"' ".utf8).contains($0) }
        let rest = line[key.endIndex...]
        guard !key.isEmpty, rest.first == UInt8(ascii: ":") else { return false }
        return rest.count == 1 || rest[rest.startIndex + 1] == 0x20 || rest[rest.startIndex + 1] == 0x09
    }

    /// Returns whether the line has the form `name=value`, which no URL has.
    private static func isOption(_ line: ArraySlice<UInt8>) -> Bool {
        let name = line.prefix { $0.isLetterOrDigit || $0 == UInt8(ascii: "-") }
        return !name.isEmpty && line[name.endIndex...].first == UInt8(ascii: "=")
    }

    /// Returns whether the line contains URLs separated by tabs, which are sources of one file.
    private static func isSeveralURLs(_ line: ArraySlice<UInt8>) -> Bool {
        guard let tab = line.firstIndex(of: 0x09) else { return false }
        return line[..<tab].firstRange(of: "://".utf8) != nil && line[tab...].firstRange(of: "://".utf8) != nil
    }
}
