import TaskModel
import Yams

/// A value of a YAML document together with its key.
///
/// Each reading method defines the form that it expects. If the value has another form, the method reports a fault and
/// returns `nil`.
struct YAMLValue {
    let name: String
    private let node: Node
    private let source: YAMLSource
    /// The position of the key, if it is known separately.
    private let key: Position?

    init(_ node: Node, name: String, source: YAMLSource, key: Position? = nil) {
        self.node = node
        self.name = name
        self.source = source
        self.key = key
    }

    var position: Position { Position(node.mark) }

    /// The number of faults that were reported so far.
    var reportCount: Int { source.reportCount }

    /// The file and the position in it, for faults that are found after parsing.
    var place: (file: String, position: Position) { (source.file, source.inCharacters(position)) }

    enum Shape {
        case scalar, list, mapping
    }

    var shape: Shape {
        switch node {
        case .sequence: .list
        case .mapping: .mapping
        case .scalar, .alias: .scalar
        }
    }

    func report(_ message: String, code: ErrorCode = .invalid) {
        reportBare(name.isEmpty ? "the file \(message)" : "\"\(name)\" \(message)", code: code)
    }

    /// Reports a fault of the key itself.
    func reportKey(_ message: String) {
        source.report("\"\(name)\" \(message)", at: key ?? position)
    }

    /// Reports a fault of the key itself without naming it.
    func reportUnnamedKey(_ message: String) { source.report(message, at: key ?? position) }

    /// Reports a fault without naming the key.
    func reportBare(_ message: String, code: ErrorCode = .invalid) {
        source.report(message, at: position, code: code)
    }

    /// Whether the key has no value or an explicit null (YAML 1.2, section 10.2.1.1).
    var isNull: Bool {
        guard case .scalar(let scalar) = node, scalar.style == .plain else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }

    // MARK: - Scalars

    func text(_ expected: String = "text") -> String? {
        guard source.mayVisit(at: position) else { return nil }
        guard case .scalar(let scalar) = node else {
            report("must be \(expected)")
            return nil
        }
        guard !isNull else {
            report("has no value; give \(expected) or remove the key")
            return nil
        }
        return scalar.string
    }

    func flag() -> Bool? {
        parse("true or false") { ["true": true, "false": false][$0] }
    }

    func integer(in range: ClosedRange<Int>) -> Int? {
        parse("a whole number from \(range.lowerBound) to \(range.upperBound)") { text in
            text.utf8.allSatisfy(\.isDigit) ? Int(text).flatMap { range.contains($0) ? $0 : nil } : nil
        }
    }

    /// Returns a decimal number without an exponent.
    func number(in range: ClosedRange<Double>) -> Double? {
        func text(_ number: Double) -> String { number == number.rounded() ? "\(Int(number))" : "\(number)" }
        return parse("a number from \(text(range.lowerBound)) to \(text(range.upperBound)), such as 0.5 or 20") {
            text in
            guard text.utf8.allSatisfy({ $0.isDigit || $0 == UInt8(ascii: ".") }) else { return nil }
            return Double(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    func connectionCount() -> ConnectionCount? {
        parse(ConnectionCount.expectation) { ConnectionCount($0) }
    }

    /// Returns a size in bytes.
    func size(from minimum: Int64 = 0) -> Int64? {
        parse("a size of \(minimum) bytes or more, such as 500K, 2M or 1.5G") { text in
            ByteSize.parse(text).flatMap { $0 >= minimum ? $0 : nil }
        }
    }

    /// Returns a rate in bytes per second.
    func rate() -> Int64? {
        parse("a rate of at least 1 byte per second, such as 500K, 2M or 1.5G") { text in
            ByteSize.parse(text).flatMap { $0 >= 1 ? $0 : nil }
        }
    }

    /// Returns a time span in milliseconds, at least 1.
    func span(atMost maximum: Milliseconds, _ written: String) -> Milliseconds? {
        parse("a time above 0 and up to \(written), such as 500ms, 30s or 10m") { text in
            TimeSpan.parse(text).flatMap { (1...maximum).contains($0) ? $0 : nil }
        }
    }

    func taskID() -> TaskID? {
        parse("a task's id, a whole number from 1") { text in
            text.utf8.allSatisfy(\.isDigit) ? Int64(text).flatMap { $0 > 0 ? TaskID($0) : nil } : nil
        }
    }

    func word<Word: CaseIterable & RawRepresentable<String>>(_: Word.Type = Word.self) -> Word? {
        parse("one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))", Word.init(rawValue:))
    }

    func absolutePath() -> String? {
        guard let path = text("an absolute path") else { return nil }
        guard path.hasPrefix("/") else {
            report("is a relative path; give an absolute path")
            return nil
        }
        do {
            try FileName.checkDirectory(path, field: name)
            return path
        } catch {
            report(error.message, code: error.code)
            return nil
        }
    }

    /// Returns the string converted by `convert`.
    func parse<Value>(_ expected: String, _ convert: (String) -> Value?) -> Value? {
        guard let text = text(expected) else { return nil }
        guard let value = convert(text) else {
            report("must be \(expected)")
            return nil
        }
        return value
    }

    // MARK: - Collections

    /// Returns the values of a list; a key without a value is an empty list.
    func list(_ expected: String) -> [YAMLValue]? {
        if isNull { return [] }
        guard source.mayVisit(at: position) else { return nil }
        guard case .sequence(let sequence) = node else {
            report("must be \(expected)")
            return nil
        }
        return sequence.map { YAMLValue($0, name: name, source: source) }
    }

    /// Returns the values of a mapping with user-defined keys, in the file's order; a key without a value is an empty
    /// mapping.
    func entries(atMost limit: Int, _ expected: String) -> [YAMLValue] {
        if isNull { return [] }
        guard source.mayVisit(at: position) else { return [] }
        guard case .mapping(let pairs) = node else {
            report("must be \(expected)")
            return []
        }
        guard pairs.count <= limit else {
            report("contains more than \(limit) keys")
            return []
        }
        return pairs.compactMap { key, value in
            guard case .scalar(let scalar) = key else {
                source.report("a key must be a word, not an alias or a collection", at: Position(key.mark))
                return nil
            }
            return YAMLValue(value, name: scalar.string, source: source, key: Position(key.mark))
        }
    }

    /// Returns the keys and values of a mapping in which every key must be known; a key without a value is an empty
    /// mapping.
    func mapping(_ keys: KeyTable, _ expected: String = "a mapping of keys to values") -> YAMLMapping? {
        if isNull { return YAMLMapping(position: position) }
        guard source.mayVisit(at: position) else { return nil }
        guard case .mapping(let pairs) = node else {
            report("must be \(expected)")
            return nil
        }
        var mapping = YAMLMapping(position: position)
        for (key, value) in pairs {
            guard case .scalar(let scalar) = key else {
                source.report("a key must be a word, not an alias or a collection", at: Position(key.mark))
                mapping.isWhole = false
                continue
            }
            if !keys.known.contains(scalar.string) {
                source.report(keys.refusal(of: scalar.string), at: Position(key.mark))
                mapping.isWhole = false
            } else if mapping[scalar.string] != nil {
                source.report("\"\(scalar.string)\" is given twice", at: Position(key.mark))
            } else {
                mapping.values.append(YAMLValue(value, name: scalar.string, source: source))
            }
        }
        return mapping
    }

    /// Returns the keys and values of a mapping whose keys an enumeration lists.
    func mapping<Key: CaseIterable & RawRepresentable<String>>(
        _ keys: Key.Type, _ expected: String = "a mapping of keys to values"
    ) -> YAMLMapping? {
        mapping(KeyTable(keys), expected)
    }

    /// Returns the keys and values of such a mapping; none where the value is no mapping.
    func entries<Key: CaseIterable & RawRepresentable<String>>(
        _ keys: Key.Type, _ expected: String = "a mapping of keys to values"
    ) -> [(key: Key, value: YAMLValue)] {
        mapping(keys, expected)?.entries(keys) ?? []
    }
}

/// A mapping whose keys are known and unique.
struct YAMLMapping {
    let position: Position
    /// The values in the file's order.
    var values: [YAMLValue] = []
    /// Whether no key of the mapping was rejected as unknown or invalid.
    var isWhole = true

    subscript(name: String) -> YAMLValue? { values.first { $0.name == name } }

    subscript(key: some RawRepresentable<String>) -> YAMLValue? { self[key.rawValue] }

    /// Returns the values with their keys in an enumeration that lists them.
    func entries<Key: RawRepresentable<String>>(_: Key.Type) -> [(key: Key, value: YAMLValue)] {
        values.compactMap { value in Key(rawValue: value.name).map { ($0, value) } }
    }
}
