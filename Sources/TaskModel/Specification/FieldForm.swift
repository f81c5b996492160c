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

/// The way in which people write a field's value on the command line and in files, with the path of the value.
///
/// The readers of the command line, of queue files and of aria2 files know these ways, not the single fields.
package enum FieldSyntax: Sendable {
    /// The URL of the task, which every entry has.
    case url(FieldPath<String>)
    /// A text. `expected` describes it in error messages.
    case text(FieldPath<String?>, expected: String)
    /// A method of an upload.
    case method(FieldPath<String?>)
    /// A path of a local file, which a queue file gives relative to itself.
    case file(FieldPath<String?>)
    /// A list of at least one text.
    case texts(FieldPath<[String]>, expected: String)
    /// A list of at least one line, any of which may be `@FILE` for the lines of a file.
    case lines(FieldPath<[String]>, FieldLines)
    /// The name of a file whose contents are the value.
    case contents(FieldPath<String?>, FieldContents)
    case flag(FieldPath<Bool>)
    case size(FieldPath<Int64?>)
    case rate(FieldPath<Int64?>)
    case count(FieldPath<Int?>, ClosedRange<Int>)
    case connections(FieldPath<ConnectionCount?>)
    case priority(FieldPath<TaskPriority>)
    /// A flag that is short for the priority `now`.
    case now(FieldPath<TaskPriority>)
    case conflict(FieldPath<ConflictPolicy?>)
    /// A length of time, in milliseconds.
    case span(FieldPath<Milliseconds?>)
    case nameSource(FieldPath<NameSource?>)
    /// A point in time. Where it is relative to the time of reading, its text is kept too.
    case time(FieldPath<Milliseconds?>, text: FieldPath<String?>)
    case task(FieldPath<TaskID?>)
    /// The absence of a syntax: the value comes by JSON or from the daemon itself.
    case none
}

/// The lines that a field consists of.
package enum FieldLines: Sendable {
    case headers, form

    package var expected: String {
        switch self {
        case .headers: "\"Name: value\""
        case .form: "\"NAME=VALUE\""
        }
    }
}

/// The text that a field takes from a file.
package enum FieldContents: Sendable {
    /// The first line.
    case password
    case cookies, certificates, netrc
}

/// The type of a field's value in JSON.
package enum FieldJSON: Sendable, Equatable {
    case text
    case texts
    case flag
    /// A whole number.
    case integer
    case numbers
    /// A text of this list.
    case words([String])
    /// A whole number or `auto`.
    case connections
    /// The object of ``PieceHashes``.
    case pieceHashes

    static func words<Word: CaseIterable & RawRepresentable<String>>(of _: Word.Type) -> FieldJSON {
        .words(Word.allCases.map(\.rawValue))
    }
}

/// The operations on the stored value of a field, whatever its type.
struct FieldOperations: Sendable {
    /// The location of the value; `nil` for a path that is not one of stored properties.
    let location: FieldLocation?
    /// Whether the value differs from the default.
    var isSet: @Sendable (_ values: TaskMemory) -> Bool
    /// Whether the values of two tasks differ.
    var differs: @Sendable (_ values: TaskMemory, _ others: TaskMemory) -> Bool
    /// Copies the value from one task to another.
    var copy: @Sendable (_ source: TaskMemory, _ target: inout UnpackedTask) -> Void
    /// Restores the default.
    var reset: @Sendable (_ values: inout UnpackedTask) -> Void
    /// Decodes the value; `null` leaves the default.
    var decode: @Sendable (KeyedDecodingContainer<AnyKey>, _ key: AnyKey, _ values: inout UnpackedTask) throws -> Void
    /// Encodes the value.
    var encode: @Sendable (_ values: TaskMemory, inout KeyedEncodingContainer<AnyKey>, AnyKey) throws -> Void
    /// Replaces the secret parts of each URL in the value; see ``TaskSpecification/redact(_:)``.
    var redact: @Sendable (_ values: inout UnpackedTask) -> Void = { _ in }
    /// Whether ``redact`` changes the value.
    var hasSecrets: @Sendable (_ values: TaskMemory) -> Bool = { _ in false }
    /// Returns the text; `nil` for a value of another form.
    var text: @Sendable (_ values: TaskMemory) -> String? = { _ in nil }
    /// Returns the size of the value's text in bytes, or 0 for a value of bounded size.
    var textSize: @Sendable (_ values: TaskMemory) -> Int = { _ in 0 }
    /// The description of valid JSON values.
    let expected: String

    init<Value: Codable & Equatable & Sendable>(_ path: FieldPath<Value>, default initial: Value, expected: String) {
        let place = FieldPlace(path)
        self.expected = expected
        location = FieldLocation(path)
        isSet = { place.get($0) != initial }
        differs = { place.get($0) != place.get($1) }
        copy = { place.set(place.get($0), in: &$1) }
        reset = { place.set(initial, in: &$0) }
        decode = { container, key, values in
            if let value = try container.decodeIfPresent(Value.self, forKey: key) { place.set(value, in: &values) }
        }
        encode = { values, container, key in try container.encode(place.get(values), forKey: key) }
    }

    init<Value: Codable & Equatable & Sendable>(_ path: FieldPath<Value?>, expected: String) {
        let place = FieldPlace(path)
        self.expected = expected
        location = FieldLocation(path)
        isSet = { place.get($0) != nil }
        differs = { place.get($0) != place.get($1) }
        copy = { place.set(place.get($0), in: &$1) }
        reset = { place.set(nil, in: &$0) }
        decode = { container, key, values in
            place.set(try container.decodeIfPresent(Value.self, forKey: key), in: &values)
        }
        encode = { values, container, key in try container.encodeIfPresent(place.get(values), forKey: key) }
    }
}

// Containers decode and encode a type that they know faster than a generic one.
extension FieldOperations {
    init(text path: FieldPath<String?>) {
        let place = FieldPlace(path)
        self.init(path, expected: "a string")
        decode = { container, key, values in
            place.set(try container.decodeIfPresent(String.self, forKey: key), in: &values)
        }
        encode = { values, container, key in try container.encodeIfPresent(place.get(values), forKey: key) }
        redact = { values in values[keyPath: path] = values[keyPath: path].map(TaskSpecification.redact) }
        hasSecrets = { place.get($0).map { TaskSpecification.redact($0) != $0 } ?? false }
        text = { place.get($0) }
        textSize = { place.get($0)?.utf8.count ?? 0 }
    }

    init(text path: FieldPath<String>) {
        let place = FieldPlace(path)
        self.init(path, default: "", expected: "a string")
        decode = { container, key, values in
            if let text = try container.decodeIfPresent(String.self, forKey: key) { place.set(text, in: &values) }
        }
        encode = { values, container, key in try container.encode(place.get(values), forKey: key) }
        text = { place.get($0) }
        textSize = { place.get($0).utf8.count }
    }

    init(texts path: FieldPath<[String]>, expected: String = "an array of strings") {
        let place = FieldPlace(path)
        self.init(path, default: [], expected: expected)
        redact = { values in values[keyPath: path] = values[keyPath: path].map(TaskSpecification.redact) }
        hasSecrets = { place.get($0).contains { TaskSpecification.redact($0) != $0 } }
        textSize = { place.get($0).reduce(0) { $0 + $1.utf8.count + 2 } }
    }

    init(flag path: FieldPath<Bool>) {
        let place = FieldPlace(path)
        self.init(path, default: false, expected: "true or false")
        decode = { container, key, values in
            if let flag = try container.decodeIfPresent(Bool.self, forKey: key) { place.set(flag, in: &values) }
        }
        encode = { values, container, key in try container.encode(place.get(values), forKey: key) }
    }
}
