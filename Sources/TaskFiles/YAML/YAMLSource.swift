import TaskModel
import Yams

/// A YAML text being read. It composes the document and keeps its faults.
///
/// Readers continue after reporting a fault. They follow the schema's order, not that of the file, so the order of the
/// faults is known only at the end.
final class YAMLSource {
    let file: String
    private let text: String
    /// The faults, with positions as counted by Yams.
    private var faults = FileFaults()
    /// The number of reports so far.
    private(set) var reportCount = 0
    private var visitsLeft: Int

    init(_ text: String, file: String) {
        self.file = file
        self.text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        // Each value takes at least one byte, unless aliases repeat it.
        visitsLeft = 4 * text.utf8.count + 1_000
    }

    /// Records a fault.
    ///
    /// - Parameter position: a position as counted by Yams, with columns in Unicode scalars.
    func report(_ message: String, at position: Position, code: ErrorCode = .invalid) {
        if visitsLeft < 0 { return }
        reportCount += 1
        faults.add(FileError(file: file, at: position, code: code, message))
    }

    /// Throws the faults that were reported, if any.
    func throwFaults() throws(FileError) {
        guard var error = faults.error else { return }
        error.position = inCharacters(error.position)
        for index in error.others.indices {
            error.others[index].position = inCharacters(error.others[index].position)
        }
        throw error
    }

    /// Returns whether one more value may be read. Aliases allow a few bytes to expand to more values than can be read
    /// in reasonable time. Once the limit is exceeded, nothing more is read, and further faults in the file are not
    /// detected.
    func mayVisit(at position: Position) -> Bool {
        if visitsLeft == 0 {
            faults = FileFaults()
            report("the aliases above repeat too many values; use fewer", at: position)
        }
        visitsLeft -= 1
        return visitsLeft >= 0
    }

    // MARK: - Composing

    /// Composes the document.
    ///
    /// - Returns: the document's root, or `nil` if the text is empty.
    /// - Throws: ``FileError`` if the text is not one YAML document, or if a key is not a plain word.
    func compose() throws(FileError) -> YAMLValue? {
        if let position = FileText.positionOfControlCharacter(in: text) {
            throw FileError(file: file, at: position, "contains a control character; dld reads text files only")
        }
        try checkAliases()
        return try compose(text).map { YAMLValue($0, name: "", source: self) }
    }

    private func compose(_ text: String) throws(FileError) -> Node? {
        do {
            return try Self.node(of: text)
        } catch {
            throw describe(error, in: text)
        }
    }

    private static func node(of text: String) throws -> Node? {
        // Without rules the resolver runs no regular expressions, and every value is read as a string.
        try Yams.compose(yaml: text, .basic, .default, .utf8)
    }

    /// Rejects keys made of aliases. Yams hashes each key completely to find duplicates, which does not terminate in
    /// practice for a key made of aliases of aliases. The text is therefore composed first with its aliases made inert,
    /// and keys must be plain words.
    private func checkAliases() throws(FileError) {
        var inert = String.UnicodeScalarView()
        var found = false
        var previous: Unicode.Scalar?
        for scalar in text.unicodeScalars {
            if previous == "*", scalar.isASCII,
                scalar.properties.isAlphabetic || scalar == "_" || scalar == "-"
                    || ("0"..."9").contains(scalar)
            {
                found = true
                inert.removeLast()
                inert.append(Self.placeholder)
            }
            inert.append(scalar)
            previous = scalar
        }
        guard found, let root = try compose(String(inert)) else { return }
        var open = [root]
        while let node = open.popLast() {
            switch node {
            case .sequence(let sequence): open += sequence
            case .mapping(let mapping):
                for (key, value) in mapping {
                    if key.scalar?.string.unicodeScalars.first ?? Self.placeholder == Self.placeholder {
                        report("a key must be a word, not an alias or a collection", at: Position(key.mark))
                    }
                    open.append(value)
                }
            case .scalar, .alias: break
            }
        }
        try throwFaults()
    }

    /// A private-use character that files have no use for. It takes one column in Yams, like the character that it
    /// replaces.
    private static let placeholder: Unicode.Scalar = "\u{E000}"

    // MARK: - Faults of the text itself

    private func describe(_ error: any Error, in text: String) -> FileError {
        switch error {
        case YamlError.scanner(_, let problem, let mark, _), YamlError.parser(_, let problem, let mark, _),
            YamlError.composer(_, let problem, let mark, _):
            let position = Position(mark)
            if scalar(at: position) == "\t" {
                return FileError(
                    file: file, at: inCharacters(position), "YAML does not allow a tab here; indent with spaces")
            }
            // The problem is an anchor or an alias without a name.
            if problem.hasPrefix("did not find expected alphabetic") {
                return FileError(
                    file: file, at: inCharacters(position), "a value that begins with * or & must be in quotes in YAML")
            }
            return FileError(file: file, at: inCharacters(position), "is not YAML: \(problem)")
        case YamlError.duplicatedKeysInMapping(let keys, let context):
            let first = Position(context.mark)
            let second = positionOfSecondKey(first: first, in: text) ?? first
            return FileError(
                file: file, at: inCharacters(second),
                "\"\(keys.first ?? "")\" is given twice; it is already at line \(first.line)")
        case YamlError.reader(let problem, let offset, _, _):
            let before = text.prefix(offset ?? 0)
            return FileError(file: file, at: FileText.position(after: before.utf8), "is not YAML: \(problem)")
        default:
            return FileError(file: file, at: Position(), "is not YAML")
        }
    }

    /// Returns the position of the second of two equal keys. Yams reports the position of the first. If the first is
    /// altered, composing finds either the next pair of equal keys, or a mapping that contains both the altered key and
    /// its original.
    private func positionOfSecondKey(first: Position, in text: String) -> Position? {
        var scalars = Array(text.unicodeScalars)
        guard var offset = Self.offset(of: first, in: scalars) else { return nil }
        if scalars[offset] == "\"" || scalars[offset] == "'" { offset += 1 }
        guard offset < scalars.count else { return nil }
        let original = scalars[offset]
        scalars[offset] = Self.placeholder
        var altered = String.UnicodeScalarView()
        altered.append(contentsOf: scalars)
        do {
            guard let root = try Self.node(of: String(altered)) else { return nil }
            var open = [root]
            while let node = open.popLast() {
                if case .sequence(let sequence) = node { open += sequence }
                guard case .mapping(let mapping) = node else { continue }
                open += mapping.map(\.value)
                guard let key = mapping.first(where: { Position($0.key.mark) == first })?.key.scalar?.string else {
                    continue
                }
                let name = key.replacingPlaceholder(Self.placeholder, by: original)
                return mapping.first { $0.key.scalar?.string == name }.map { Position($0.key.mark) }
            }
            return nil
        } catch YamlError.duplicatedKeysInMapping(_, let context) {
            return Position(context.mark)
        } catch {
            return nil
        }
    }

    // MARK: - Positions

    private func scalar(at position: Position) -> Unicode.Scalar? {
        let scalars = Array(text.unicodeScalars)
        return Self.offset(of: position, in: scalars).map { scalars[$0] }
    }

    /// Returns the offset of `position` in Unicode scalars, counting all line breaks of YAML.
    private static func offset(of position: Position, in scalars: [Unicode.Scalar]) -> Int? {
        var line = 1
        var index = 0
        while line < position.line, index < scalars.count {
            switch scalars[index] {
            case "\r" where index + 1 < scalars.count && scalars[index + 1] == "\n": break
            case "\n", "\r", "\u{85}", "\u{2028}", "\u{2029}": line += 1
            default: break
            }
            index += 1
        }
        let offset = index + position.column - 1
        return line == position.line && offset < scalars.count ? offset : nil
    }

    func inCharacters(_ position: Position) -> Position {
        let scalars = Array(text.unicodeScalars)
        guard let start = Self.offset(of: Position(line: position.line, column: 1), in: scalars) else {
            return position
        }
        var before = String.UnicodeScalarView()
        before.append(contentsOf: scalars[start..<min(start + position.column - 1, scalars.count)])
        return Position(line: position.line, column: String(before).count + 1)
    }
}

extension Position {
    init(_ mark: Mark?) {
        self.init(line: mark?.line ?? 1, column: mark?.column ?? 1)
    }
}

extension String {
    fileprivate func replacingPlaceholder(_ placeholder: Unicode.Scalar, by original: Unicode.Scalar) -> String {
        var scalars = String.UnicodeScalarView()
        scalars.append(contentsOf: unicodeScalars.map { $0 == placeholder ? original : $0 })
        return String(scalars)
    }
}
