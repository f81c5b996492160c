import ArgumentParser
import TaskFiles
import TaskModel

/// The option of one field, before or after the argument parser has decoded it.
enum FieldArgument {
    case text(Option<String?>)
    case texts(Option<[String]>)
    case flag(Flag<Bool>)
    case size(Option<SizeArgument?>)
    case rate(Option<RateArgument?>)
    case span(Option<SpanArgument?>)
    case connections(Option<ConnectionCount?>)
    case priority(Option<TaskPriority>)
    case conflict(Option<ConflictPolicy?>)
    case nameSource(Option<NameSource?>)
    case task(Option<TaskID?>)
    case method(Option<UploadMethod?>)
    case newRate(Option<ChangeArgument<RateArgument>?>)
    case newConnections(Option<ChangeArgument<ConnectionCount>?>)
    case newPriority(Option<TaskPriority?>)
    case newSize(Option<ChangeArgument<SizeArgument>?>)
    case newSpan(Option<ChangeArgument<SpanArgument>?>)
    case newConflict(Option<ChangeArgument<ConflictPolicy>?>)
    case newNameSource(Option<ChangeArgument<NameSource>?>)
    case newTask(Option<ChangeArgument<TaskID>?>)
    case newFlag(Flag<Bool?>)

    /// Declares the option of a new task.
    init(of field: TaskField) {
        let (name, help) = Self.declaration(field, field.option)
        self.init(field.syntax, name, help, Self.completion(of: field))
    }

    private init(
        _ syntax: FieldSyntax, _ name: NameSpecification, _ help: ArgumentHelp, _ completion: CompletionKind?
    ) {
        self =
            switch syntax {
            case .texts, .lines: .texts(Option(wrappedValue: [], name: name, parsing: .singleValue, help: help))
            case .flag, .now: .flag(Flag(wrappedValue: false, name: name, help: help))
            case .size: .size(Option(name: name, help: help))
            case .rate: .rate(Option(name: name, help: help))
            case .span: .span(Option(name: name, help: help))
            case .connections: .connections(Option(name: name, help: help))
            case .priority: .priority(Option(wrappedValue: .normal, name: name, help: help))
            case .conflict: .conflict(Option(name: name, help: help))
            case .nameSource: .nameSource(Option(name: name, help: help))
            case .task: .task(Option(name: name, help: help, completion: completion))
            case .method: .method(Option(name: name, help: help))
            case .url, .text, .file, .contents, .time, .none:
                .text(Option(name: name, help: help, completion: completion))
            }
    }

    /// Declares the option of a change.
    init(changing field: TaskField) {
        let (name, help) = Self.declaration(field, field.change)
        switch field.syntax {
        case .rate: self = .newRate(Option(name: name, help: help))
        case .connections: self = .newConnections(Option(name: name, help: help))
        case .priority: self = .newPriority(Option(name: name, help: help))
        case .size: self = .newSize(Option(name: name, help: help))
        case .span: self = .newSpan(Option(name: name, help: help))
        case .conflict: self = .newConflict(Option(name: name, help: help))
        case .nameSource: self = .newNameSource(Option(name: name, help: help))
        case .task: self = .newTask(Option(name: name, help: help, completion: .taskIDs))
        case .flag: self = .newFlag(Flag(name: name, inversion: .prefixedNo, help: help))
        default: self.init(field.syntax, name, help, Self.completion(of: field))
        }
    }

    /// Returns how a shell completes the option; `nil` where the values of its type are all there are.
    private static func completion(of field: TaskField) -> CompletionKind? {
        switch field.syntax {
        case .file, .contents: .file()
        case .task: .taskIDs
        case .url: .hosts
        default: field.name == "directory" ? .directory : field.name == "batch" ? .batches : nil
        }
    }

    private static func declaration(
        _ field: TaskField, _ option: TaskField.Option?
    ) -> (name: NameSpecification, help: ArgumentHelp) {
        var name: NameSpecification = .customLong(field.word)
        if let short = option?.short { name = [.customLong(field.word), .customShort(short)] }
        return (name, ArgumentHelp(option?.help ?? "", valueName: option?.value))
    }

    /// Returns the option with the value of the command line.
    func decoded(from container: KeyedDecodingContainer<AnyKey>, _ key: AnyKey) throws -> FieldArgument {
        switch self {
        case .text: .text(try container.decode(Option<String?>.self, forKey: key))
        case .texts: .texts(try container.decode(Option<[String]>.self, forKey: key))
        case .flag: .flag(try container.decode(Flag<Bool>.self, forKey: key))
        case .size: .size(try container.decode(Option<SizeArgument?>.self, forKey: key))
        case .span: .span(try container.decode(Option<SpanArgument?>.self, forKey: key))
        case .rate: .rate(try container.decode(Option<RateArgument?>.self, forKey: key))
        case .connections: .connections(try container.decode(Option<ConnectionCount?>.self, forKey: key))
        case .priority: .priority(try container.decode(Option<TaskPriority>.self, forKey: key))
        case .conflict: .conflict(try container.decode(Option<ConflictPolicy?>.self, forKey: key))
        case .nameSource: .nameSource(try container.decode(Option<NameSource?>.self, forKey: key))
        case .task: .task(try container.decode(Option<TaskID?>.self, forKey: key))
        case .method: .method(try container.decode(Option<UploadMethod?>.self, forKey: key))
        case .newRate: .newRate(try container.decode(Option<ChangeArgument<RateArgument>?>.self, forKey: key))
        case .newConnections:
            .newConnections(try container.decode(Option<ChangeArgument<ConnectionCount>?>.self, forKey: key))
        case .newPriority: .newPriority(try container.decode(Option<TaskPriority?>.self, forKey: key))
        case .newSize: .newSize(try container.decode(Option<ChangeArgument<SizeArgument>?>.self, forKey: key))
        case .newSpan: .newSpan(try container.decode(Option<ChangeArgument<SpanArgument>?>.self, forKey: key))
        case .newConflict:
            .newConflict(try container.decode(Option<ChangeArgument<ConflictPolicy>?>.self, forKey: key))
        case .newNameSource:
            .newNameSource(try container.decode(Option<ChangeArgument<NameSource>?>.self, forKey: key))
        case .newTask: .newTask(try container.decode(Option<ChangeArgument<TaskID>?>.self, forKey: key))
        case .newFlag: .newFlag(try container.decode(Flag<Bool?>.self, forKey: key))
        }
    }

    /// The property wrapper that the argument parser reads.
    var wrapper: Any {
        switch self {
        case .text(let option): option
        case .texts(let option): option
        case .flag(let flag): flag
        case .size(let option): option
        case .rate(let option): option
        case .span(let option): option
        case .connections(let option): option
        case .priority(let option): option
        case .conflict(let option): option
        case .nameSource(let option): option
        case .task(let option): option
        case .method(let option): option
        case .newRate(let option): option
        case .newConnections(let option): option
        case .newPriority(let option): option
        case .newSize(let option): option
        case .newSpan(let option): option
        case .newConflict(let option): option
        case .newNameSource(let option): option
        case .newTask(let option): option
        case .newFlag(let flag): flag
        }
    }

    // MARK: - Values

    /// Whether the command line has a value other than the default.
    var isGiven: Bool {
        switch self {
        case .text(let option): option.wrappedValue != nil
        case .texts(let option): !option.wrappedValue.isEmpty
        case .flag(let flag): flag.wrappedValue
        case .size(let option): option.wrappedValue != nil
        case .rate(let option): option.wrappedValue != nil
        case .span(let option): option.wrappedValue != nil
        case .connections(let option): option.wrappedValue != nil
        case .priority(let option): option.wrappedValue != .normal
        case .conflict(let option): option.wrappedValue != nil
        case .nameSource(let option): option.wrappedValue != nil
        case .task(let option): option.wrappedValue != nil
        case .method(let option): option.wrappedValue != nil
        case .newRate(let option): option.wrappedValue != nil
        case .newConnections(let option): option.wrappedValue != nil
        case .newPriority(let option): option.wrappedValue != nil
        case .newSize(let option): option.wrappedValue != nil
        case .newSpan(let option): option.wrappedValue != nil
        case .newConflict(let option): option.wrappedValue != nil
        case .newNameSource(let option): option.wrappedValue != nil
        case .newTask(let option): option.wrappedValue != nil
        case .newFlag(let flag): flag.wrappedValue != nil
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
        case .newRate(let option):
            switch option.wrappedValue?.change {
            case .takeBack?: true
            case .set(let rate)?: rate.bytesPerSecond == nil
            case nil: false
            }
        case .newConnections(let option): option.wrappedValue?.change == .takeBack
        case .newSize(let option): option.wrappedValue?.change == .takeBack
        case .newSpan(let option): option.wrappedValue?.change == .takeBack
        case .newConflict(let option): option.wrappedValue?.change == .takeBack
        case .newNameSource(let option): option.wrappedValue?.change == .takeBack
        case .newTask(let option): option.wrappedValue?.change == .takeBack
        case .newFlag(let flag): flag.wrappedValue == false
        default: false
        }
    }

    /// Stores the value in the field, after reading the file that the option may name.
    func store(_ field: TaskField, in values: inout UnpackedTask, _ input: inout InputText) throws(Failure) {
        let name = "--" + field.word
        switch (field.syntax, self) {
        case (.url(let path), .text(let option)): values[keyPath: path] = option.wrappedValue ?? ""
        case (.text(let path, _), .text(let option)), (.file(let path), .text(let option)):
            values[keyPath: path] = option.wrappedValue
            if field.name == "directory" { values[keyPath: path] = option.wrappedValue.map(FilePath.directory) }
        case (.contents(let path, let contents), .text(let option)):
            guard let file = option.wrappedValue else { return }
            let text =
                contents == .password
                ? try input.readSecret(file, for: name, limit: contents.limit)
                : try input.readText(file, for: name, limit: contents.limit)
            values[keyPath: path] = contents.value(text)
        case (.time(let path, let textPath), .text(let option)):
            guard let text = option.wrappedValue else { return }
            values[keyPath: path] = try Clock.startAt(text)
            values[keyPath: textPath] = PointInTime.countsFromNow(text) ? text : nil
        case (.texts(let path, _), .texts(let option)): values[keyPath: path] = option.wrappedValue
        case (.lines(let path, let lines), .texts(let option)):
            values[keyPath: path] = try input.lines(option.wrappedValue, of: name, limit: lines.limit)
        case (.flag(let path), .flag(let flag)): values[keyPath: path] = flag.wrappedValue
        case (.now(let path), .flag):
            let other = values[keyPath: path]
            guard other == .normal || other == .now else {
                throw .usage(
                    "\(name) sets the priority; give \(name) or --priority \(other.rawValue), not both", field: name)
            }
            values[keyPath: path] = .now
        case (.size(let path), .size(let option)): values[keyPath: path] = option.wrappedValue?.bytes
        case (.rate(let path), .rate(let option)): values[keyPath: path] = option.wrappedValue?.bytesPerSecond
        case (.span(let path), .span(let option)): values[keyPath: path] = option.wrappedValue?.milliseconds
        case (.connections(let path), .connections(let option)): values[keyPath: path] = option.wrappedValue
        case (.priority(let path), .priority(let option)): values[keyPath: path] = option.wrappedValue
        case (.conflict(let path), .conflict(let option)): values[keyPath: path] = option.wrappedValue
        case (.nameSource(let path), .nameSource(let option)): values[keyPath: path] = option.wrappedValue
        case (.task(let path), .task(let option)): values[keyPath: path] = option.wrappedValue
        case (.method(let path), .method(let option)): values[keyPath: path] = option.wrappedValue?.rawValue
        case (.rate(let path), .newRate(let option)):
            values[keyPath: path] = option.wrappedValue?.change.value?.bytesPerSecond
        case (.connections(let path), .newConnections(let option)):
            values[keyPath: path] = option.wrappedValue?.change.value
        case (.priority(let path), .newPriority(let option)):
            values[keyPath: path] = option.wrappedValue ?? .normal
        case (.size(let path), .newSize(let option)): values[keyPath: path] = option.wrappedValue?.change.value?.bytes
        case (.span(let path), .newSpan(let option)):
            values[keyPath: path] = option.wrappedValue?.change.value?.milliseconds
        case (.conflict(let path), .newConflict(let option)):
            values[keyPath: path] = option.wrappedValue?.change.value
        case (.nameSource(let path), .newNameSource(let option)):
            values[keyPath: path] = option.wrappedValue?.change.value
        case (.task(let path), .newTask(let option)): values[keyPath: path] = option.wrappedValue?.change.value
        case (.flag(let path), .newFlag(let flag)): values[keyPath: path] = flag.wrappedValue ?? false
        default: break
        }
    }
}
