/// The form of a field's values: the syntax for people, and the operations on the stored value and its JSON.
struct FieldForm: Sendable {
    let syntax: FieldSyntax
    let operations: FieldOperations
    let json: FieldJSON
    /// Whether the JSON is an object, whose errors name a field within it.
    var isObject = false

    static func url(_ path: FieldPath<String>) -> Self {
        Self(syntax: .url(path), operations: FieldOperations(text: path), json: .text)
    }

    static func text(_ path: FieldPath<String?>, _ expected: String = "text") -> Self {
        Self(syntax: .text(path, expected: expected), operations: FieldOperations(text: path), json: .text)
    }

    static func method(_ path: FieldPath<String?>) -> Self {
        Self(syntax: .method(path), operations: FieldOperations(text: path), json: .text)
    }

    static func file(_ path: FieldPath<String?>) -> Self {
        Self(syntax: .file(path), operations: FieldOperations(text: path), json: .text)
    }

    static func texts(_ path: FieldPath<[String]>, _ expected: String) -> Self {
        Self(syntax: .texts(path, expected: expected), operations: FieldOperations(texts: path), json: .texts)
    }

    static func lines(_ path: FieldPath<[String]>, _ lines: FieldLines) -> Self {
        let form = lines == .form ? ", NAME=VALUE" : ""
        return Self(
            syntax: .lines(path, lines),
            operations: FieldOperations(texts: path, expected: "an array of strings" + form), json: .texts)
    }

    static func contents(_ path: FieldPath<String?>, _ contents: FieldContents) -> Self {
        Self(syntax: .contents(path, contents), operations: FieldOperations(text: path), json: .text)
    }

    static func flag(_ path: FieldPath<Bool>) -> Self {
        Self(syntax: .flag(path), operations: FieldOperations(flag: path), json: .flag)
    }

    static func size(_ path: FieldPath<Int64?>) -> Self {
        Self(
            syntax: .size(path), operations: FieldOperations(path, expected: "a whole number of bytes"), json: .integer)
    }

    static func rate(_ path: FieldPath<Int64?>) -> Self {
        Self(
            syntax: .rate(path), operations: FieldOperations(path, expected: "a whole number of bytes per second"),
            json: .integer)
    }

    static func count(_ path: FieldPath<Int?>, in range: ClosedRange<Int>) -> Self {
        Self(
            syntax: .count(path, range), operations: FieldOperations(path, expected: "a whole number"), json: .integer)
    }

    static func connections(_ path: FieldPath<ConnectionCount?>) -> Self {
        Self(
            syntax: .connections(path),
            operations: FieldOperations(path, expected: ConnectionCount.expectation), json: .connections)
    }

    static func priority(_ path: FieldPath<TaskPriority>) -> Self {
        Self(
            syntax: .priority(path),
            operations: FieldOperations(path, default: .normal, expected: oneOf(TaskPriority.self)),
            json: .words(of: TaskPriority.self))
    }

    /// An alternative to `priority: now`. It is decoded only, never encoded.
    static func now(_ path: FieldPath<TaskPriority>) -> Self {
        var operations = FieldOperations(path, default: .normal, expected: "true or false")
        operations.isSet = { _ in false }
        operations.decode = { container, key, values in
            if try container.decodeIfPresent(Bool.self, forKey: key) ?? false { values[keyPath: path] = .now }
        }
        return Self(syntax: .now(path), operations: operations, json: .flag)
    }

    static func conflict(_ path: FieldPath<ConflictPolicy?>) -> Self {
        Self(
            syntax: .conflict(path), operations: FieldOperations(path, expected: oneOf(ConflictPolicy.self)),
            json: .words(of: ConflictPolicy.self))
    }

    static func span(_ path: FieldPath<Milliseconds?>) -> Self {
        Self(
            syntax: .span(path), operations: FieldOperations(path, expected: "a whole number of milliseconds"),
            json: .integer)
    }

    static func nameSource(_ path: FieldPath<NameSource?>) -> Self {
        Self(
            syntax: .nameSource(path), operations: FieldOperations(path, expected: oneOf(NameSource.self)),
            json: .words(of: NameSource.self))
    }

    static func time(_ path: FieldPath<Milliseconds?>, text: FieldPath<String?>) -> Self {
        Self(
            syntax: .time(path, text: text),
            operations: FieldOperations(path, expected: "a whole number of milliseconds since 1970"), json: .integer)
    }

    static func task(_ path: FieldPath<TaskID?>) -> Self {
        Self(syntax: .task(path), operations: FieldOperations(path, expected: "a task's id"), json: .integer)
    }

    // MARK: - Values that people do not write

    static func kind(_ path: FieldPath<TaskKind>) -> Self {
        Self(
            syntax: .none, operations: FieldOperations(path, default: .download, expected: oneOf(TaskKind.self)),
            json: .words(of: TaskKind.self))
    }

    /// A whole number.
    static func value<Value: FixedWidthInteger & Codable & Sendable>(
        _ path: FieldPath<Value?>, expected: String
    ) -> Self {
        Self(syntax: .none, operations: FieldOperations(path, expected: expected), json: .integer)
    }

    static func list<Element: Codable & Equatable & Sendable>(
        _ path: FieldPath<[Element]>, expected: String
    ) -> Self {
        Self(syntax: .none, operations: FieldOperations(path, default: [], expected: expected), json: .numbers)
    }

    static func text(stored path: FieldPath<String?>) -> Self {
        Self(syntax: .none, operations: FieldOperations(text: path), json: .text)
    }

    static func pieces(_ path: FieldPath<PieceHashes?>) -> Self {
        var operations = FieldOperations(path, expected: "an object")
        // Base64 needs no JSON escapes, for which sizes are doubled.
        let place = FieldPlace(path)
        operations.textSize = { place.get($0).map { ($0.hashes.count / 3 * 4 + 100) / 2 } ?? 0 }
        return Self(syntax: .none, operations: operations, json: .pieceHashes, isObject: true)
    }

    private static func oneOf<Word: CaseIterable & RawRepresentable<String>>(_: Word.Type) -> String {
        "one of " + Word.allCases.map(\.rawValue).joined(separator: ", ")
    }
}
