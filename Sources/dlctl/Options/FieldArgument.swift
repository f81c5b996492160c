import ArgumentParser
import TaskFiles
import TaskModel

/// The option of one field, before or after the argument parser has decoded it.
///
/// Each is a text or a flag for the parser, and is converted when it is stored. The parser refuses a text that the field's
/// syntax does not accept.
enum FieldArgument {
    case text(Option<String?>)
    case texts(Option<[String]>)
    case flag(Flag<Bool>)
    /// A flag with an inversion, such as `--insecure` and `--no-insecure`.
    case toggle(Flag<Bool?>)

    /// Declares the option of a new task.
    init(of field: TaskField) {
        var preset: TaskPriority?
        if case .priority = field.syntax { preset = .normal }
        let (name, help) = Self.declaration(field, field.option, preset: preset)
        if case .flag = field.syntax {
            self = .flag(Flag(wrappedValue: false, name: name, help: help))
        } else {
            self.init(field, name, help, none: nil)
        }
    }

    /// Declares the option of a change.
    init(changing field: TaskField) {
        let (name, help) = Self.declaration(field, field.change)
        if case .flag = field.syntax {
            self = .toggle(Flag(name: name, inversion: .prefixedNo, help: help))
        } else {
            // A priority is never absent.
            let hasNone = if case .priority = field.syntax { false } else { true }
            self.init(field, name, help, none: hasNone ? field.change?.takesBack : nil)
        }
    }

    /// - Parameter none: a text that stands for no value.
    private init(_ field: TaskField, _ name: NameSpecification, _ help: ArgumentHelp, none: String?) {
        switch field.syntax {
        case .texts, .lines: self = .texts(Option(wrappedValue: [], name: name, parsing: .singleValue, help: help))
        case .now: self = .flag(Flag(wrappedValue: false, name: name, help: help))
        default:
            let option: Option<String?> = Option(name: name, help: help, completion: Self.completion(of: field)) {
                text in
                guard text == none || field.syntax.accepts(text) else { throw ValidationError("") }
                return text
            }
            self = .text(option)
        }
    }

    /// Returns how a shell completes the option.
    private static func completion(of field: TaskField) -> CompletionKind? {
        if let words = field.syntax.words { return .list(words) }
        return switch field.syntax {
        case .file, .contents: .file()
        case .task: .taskIDs
        case .url: .hosts
        default: field.name == "directory" ? .directory : field.name == "batch" ? .batches : nil
        }
    }

    private static func declaration(
        _ field: TaskField, _ option: TaskField.Option?, preset: TaskPriority? = nil
    ) -> (name: NameSpecification, help: ArgumentHelp) {
        var name: NameSpecification = .customLong(field.word)
        if let short = option?.short { name = [.customLong(field.word), .customShort(short)] }
        var help = option?.help ?? ""
        if let words = field.syntax.words {
            let end = preset.map { "; default: \($0.rawValue)" } ?? ""
            help += " (values: \(words.joined(separator: ", "))\(end))"
        }
        return (name, ArgumentHelp(help, valueName: option?.value))
    }

    /// Returns the option with the value of the command line.
    func decoded(from container: KeyedDecodingContainer<AnyKey>, _ key: AnyKey) throws -> FieldArgument {
        switch self {
        case .text: .text(try container.decode(Option<String?>.self, forKey: key))
        case .texts: .texts(try container.decode(Option<[String]>.self, forKey: key))
        case .flag: .flag(try container.decode(Flag<Bool>.self, forKey: key))
        case .toggle: .toggle(try container.decode(Flag<Bool?>.self, forKey: key))
        }
    }

    /// The property wrapper that the argument parser reads.
    var wrapper: Any {
        switch self {
        case .text(let option): option
        case .texts(let option): option
        case .flag(let flag): flag
        case .toggle(let flag): flag
        }
    }

    // MARK: - Values

    /// Whether the command line has the option.
    var isGiven: Bool {
        switch self {
        case .text(let option): option.wrappedValue != nil
        case .texts(let option): !option.wrappedValue.isEmpty
        case .flag(let flag): flag.wrappedValue
        case .toggle(let flag): flag.wrappedValue != nil
        }
    }

    var text: String? {
        if case .text(let option) = self { option.wrappedValue } else { nil }
    }

    var texts: [String] {
        if case .texts(let option) = self { option.wrappedValue } else { [] }
    }

    /// Returns whether the value resets a field that is changed.
    func takesBack(_ field: TaskField) -> Bool {
        switch self {
        case .text(let option): option.wrappedValue == field.change?.takesBack
        case .texts(let option): option.wrappedValue == ["none"]
        case .flag: false
        case .toggle(let flag): flag.wrappedValue == false
        }
    }

    /// Stores the value in the field, after reading the file that the option may name.
    func store(_ field: TaskField, in values: inout UnpackedTask, _ input: inout InputText) throws(Failure) {
        let name = "--" + field.word
        switch (field.syntax, self) {
        case (.texts(let path, _), .texts(let option)): values[keyPath: path] = option.wrappedValue
        case (.lines(let path, let lines), .texts(let option)):
            values[keyPath: path] = try input.lines(option.wrappedValue, of: name, limit: lines.limit)
        case (.flag(let path), .flag(let flag)): values[keyPath: path] = flag.wrappedValue
        case (.flag(let path), .toggle(let flag)): values[keyPath: path] = flag.wrappedValue ?? false
        case (.now(let path), .flag):
            let other = values[keyPath: path]
            guard other == .normal || other == .now else {
                throw .usage(
                    "\(name) sets the priority; give \(name) or --priority \(other.rawValue), not both", field: name)
            }
            values[keyPath: path] = .now
        case (_, .text(let option)):
            if let text = option.wrappedValue { try store(text, field, in: &values, &input) }
        default: break
        }
    }

    private func store(
        _ text: String, _ field: TaskField, in values: inout UnpackedTask, _ input: inout InputText
    ) throws(Failure) {
        switch field.syntax {
        case .url(let path): values[keyPath: path] = text
        case .text(let path, _), .file(let path):
            values[keyPath: path] = field.name == "directory" ? try FilePath.directory(text) : text
        case .contents(let path, let contents):
            let (name, limit) = ("--" + field.word, contents.limit)
            let isSecret = contents == .password
            values[keyPath: path] = contents.value(
                isSecret
                    ? try input.readSecret(text, for: name, limit: limit)
                    : try input.readText(text, for: name, limit: limit))
        case .time(let path, let textPath):
            values[keyPath: path] = try Clock.startAt(text)
            values[keyPath: textPath] = PointInTime.countsFromNow(text) ? text : nil
        case .size(let path): values[keyPath: path] = ByteSize.parse(text)
        case .rate(let path): values[keyPath: path] = RateArgument(argument: text)?.bytesPerSecond
        case .span(let path): values[keyPath: path] = SpanArgument(argument: text)?.milliseconds
        case .count(let path, _): values[keyPath: path] = Int(text)
        case .connections(let path): values[keyPath: path] = ConnectionCount(text)
        case .priority(let path): values[keyPath: path] = TaskPriority(rawValue: text) ?? .normal
        case .conflict(let path): values[keyPath: path] = ConflictPolicy(rawValue: text)
        case .nameSource(let path): values[keyPath: path] = NameSource(rawValue: text)
        case .task(let path): values[keyPath: path] = TaskIDs.id(text)
        case .method(let path): values[keyPath: path] = text.uppercased()
        case .texts, .lines, .flag, .now, .none: break
        }
    }
}

extension FieldSyntax {
    /// The values of a syntax that has few; otherwise `nil`.
    fileprivate var words: [String]? {
        switch self {
        case .priority: TaskPriority.allCases.map(\.rawValue)
        case .conflict: ConflictPolicy.allCases.map(\.rawValue)
        case .nameSource: NameSource.allCases.map(\.rawValue)
        case .method: ["PUT", "POST"]
        default: nil
        }
    }

    /// Returns whether a text on the command line is a value, as far as that is known before files are read.
    fileprivate func accepts(_ text: String) -> Bool {
        switch self {
        case .size: ByteSize.parse(text) != nil
        case .rate: RateArgument(argument: text) != nil
        case .span: SpanArgument(argument: text) != nil
        case .count(_, let range): Int(text).map(range.contains) ?? false
        case .connections: ConnectionCount(text) != nil
        case .task: TaskIDs.id(text) != nil
        case .method: words?.contains(text.uppercased()) ?? false
        default: words?.contains(text) ?? true
        }
    }
}
