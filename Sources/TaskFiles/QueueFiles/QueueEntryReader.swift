import TaskModel

/// A reader that parses the entries of one list of a queue file.
struct QueueEntryReader {
    let kind: TaskKind
    let defaults: YAMLMapping?
    private let baseDirectory: String
    private let moment: Moment
    private let files: NamedFiles
    private let keys: KeyTable
    /// The initial value of every entry: the defaults that apply to its kind.
    private var template: TaskSpecification

    init(
        kind: TaskKind, batch: String?, defaults: YAMLMapping?, baseDirectory: String, moment: Moment,
        files: NamedFiles
    ) {
        self.kind = kind
        self.defaults = defaults
        self.baseDirectory = baseDirectory
        self.moment = moment
        self.files = files
        keys = kind == .download ? QueueKeys.download : QueueKeys.upload
        template = TaskSpecification(kind: kind, url: "")
        template.batch = batch
        var values = UnpackedTask(template)
        for value in defaults?.values ?? [] where keys.known.contains(value.name) { take(value, into: &values) }
        template = values.packed
    }

    /// Parses an entry.
    ///
    /// - Returns: the entry, or `nil` after reporting a fault.
    func read(_ value: YAMLValue) -> QueueEntry? {
        let reportCount = value.reportCount
        var task = template
        var options: YAMLMapping?
        if value.shape == .scalar, kind == .download || value.isNull {
            guard !value.isNull else {
                value.reportEntry("is empty; give a URL or remove the dash")
                return nil
            }
            guard let url = value.text() else { return nil }
            task.url = url
        } else {
            guard value.shape == .mapping, let mapping = value.mapping(keys) else {
                value.reportEntry(
                    kind == .download
                        ? "must be a URL or a mapping with a url" : "must be a mapping with a file and a url")
                return nil
            }
            // A default password does not apply to a user name given in the entry.
            if mapping["user"] != nil { task.password = nil }
            // A digest in the entry replaces a default list of digests.
            if mapping["checksum"] != nil { task.checksumURL = nil }
            if let mirrors = mapping["mirrors"], mapping["mirror"] != nil {
                mirrors.report("and \"mirror\" are the same option; give one of them")
                return nil
            }
            var values = UnpackedTask(task)
            for option in mapping.values { take(option, into: &values) }
            task = values.packed
            // Digests in the Metalink also replace a default list of digests.
            if task.metalink, mapping["metalink"] != nil, mapping["checksum-url"] == nil { task.checksumURL = nil }
            // What is wrong with the options would only be told once more, in other words.
            guard value.reportCount == reportCount else { return nil }
            let required = kind == .download ? ["url"] : ["file", "url"]
            for name in required where mapping[name] == nil {
                value.reportEntry("has no \"\(name)\"")
                return nil
            }
            options = mapping
        }
        if !task.speaksHTTP { dropDefaultsOfHTTP(from: &task, butFor: options) }
        task.appendUploadName()
        do {
            try task.check()
        } catch {
            report(error, in: options, of: value)
            return nil
        }
        return QueueEntry(task, line: value.position.line, column: value.position.column)
    }

    /// Validates the defaults for entries of this kind.
    ///
    /// - Returns: the defaults, or `nil` after reporting that no task can have them.
    func checkedDefaults(at position: YAMLMapping) -> TaskSpecification? {
        var task = template
        task.url = "http://localhost/"
        if kind == .upload { task.file = "/" }
        do {
            try task.check()
            return template
        } catch {
            if let value = position.values.first { report(error, in: position, of: value) }
            return nil
        }
    }

    // MARK: - Options

    /// Removes the defaults for HTTP from an entry that does not use HTTP, and keeps the entry's own options.
    private func dropDefaultsOfHTTP(from task: inout TaskSpecification, butFor options: YAMLMapping?) {
        var values = UnpackedTask(task)
        for field in TaskField.all where field.schemes != .all && options?[field.word] == nil {
            field.reset(in: &values)
        }
        task = values.packed
    }

    private func take(_ value: YAMLValue, into values: inout UnpackedTask) {
        guard let field = QueueKeys.field(value.name) else { return }
        switch field.syntax {
        case .url(let path): values[keyPath: path] = value.text("a URL") ?? ""
        case .text(let path, let expected): values[keyPath: path] = value.text(expected)
        case .method(let path): values[keyPath: path] = value.text("PUT or POST")
        case .file(let path):
            values[keyPath: path] = value.text("a path").flatMap { self.path($0, of: value, to: "upload") }
        case .texts(let path, let expected): values[keyPath: path] = texts(value, expected).map(\.text)
        case .lines(let path, let lines): values[keyPath: path] = self.lines(lines, of: value).map(\.line)
        case .contents(let path, let contents):
            values[keyPath: path] = content(value, limit: contents.limit).map(contents.value)
        case .flag(let path): values[keyPath: path] = value.flag() ?? false
        case .size(let path): values[keyPath: path] = value.size()
        case .rate(let path): values[keyPath: path] = value.rate()
        case .count(let path, let range): values[keyPath: path] = value.integer(in: range)
        case .connections(let path): values[keyPath: path] = value.connectionCount()
        case .priority(let path): values[keyPath: path] = value.word() ?? .normal
        case .now(let path): if value.flag() ?? false { values[keyPath: path] = .now }
        case .conflict(let path): values[keyPath: path] = value.word()
        case .span(let path): values[keyPath: path] = value.span(atMost: TaskSpecification.Limit.timeout, "7d")
        case .nameSource(let path): values[keyPath: path] = value.word()
        case .time(let path, let textPath):
            values[keyPath: path] = startAt(value)
            if values[keyPath: path] != nil, let text = value.text(), PointInTime.countsFromNow(text) {
                values[keyPath: textPath] = text
            }
        case .task(let path): values[keyPath: path] = value.taskID()
        case .none: break
        }
    }

    /// Returns the lines of a value, each with the value that contains it.
    private func lines(_ lines: FieldLines, of value: YAMLValue) -> [(line: String, value: YAMLValue)] {
        // A form may be a mapping of names to values.
        if lines == .form, value.shape == .mapping {
            let entries = value.entries(atMost: TaskSpecification.Limit.formFields, "a mapping of names to values")
            return entries.compactMap { entry in entry.text().map { ("\(entry.name)=\($0)", entry) } }
        }
        return texts(value, lines.expected).flatMap { text, value -> [(line: String, value: YAMLValue)] in
            // `@FILE` stands for the lines of a file.
            guard text.hasPrefix("@") else { return [(text, value)] }
            let file = content(String(text.dropFirst()), of: value, limit: lines.limit)
            return file.map(SecretText.lines)?.map { ($0, value) } ?? []
        }
    }

    /// Returns a string, or the strings of a list, each with the value that contains it.
    private func texts(_ value: YAMLValue, _ expected: String) -> [(text: String, value: YAMLValue)] {
        let values = value.shape == .list ? value.list(expected) ?? [] : [value]
        return values.compactMap { value in value.text(expected).map { ($0, value) } }
    }

    /// Returns the contents of the file whose path is `value`.
    private func content(_ value: YAMLValue, limit: Int) -> String? {
        value.text("a path").flatMap { content($0, of: value, limit: limit) }
    }

    private func content(_ path: String, of value: YAMLValue, limit: Int) -> String? {
        guard path != "-" else {
            value.report("names standard input, which entries cannot use; give the path of a file")
            return nil
        }
        guard let path = self.path(path, of: value, to: "read") else { return nil }
        switch files.text(path, limit: limit) {
        case .success(let text): return text
        case .failure(let error):
            value.reportBare("\"\(value.name)\": \(error.reason)")
            return nil
        }
    }

    /// Resolves `path` against the queue file's directory.
    private func path(_ path: String, of value: YAMLValue, to purpose: String) -> String? {
        guard !path.isEmpty else {
            value.report("is empty; give the path of the file to \(purpose)")
            return nil
        }
        guard !path.hasPrefix("~") else {
            value.report("begins with ~, which only a shell expands; write the full path")
            return nil
        }
        if path.hasPrefix("/") { return path }
        return baseDirectory + (baseDirectory.hasSuffix("/") ? "" : "/") + path
    }

    private func startAt(_ value: YAMLValue) -> Milliseconds? {
        value.parse("a time such as 2030-01-31T22:00:00Z, 22:00 or +2h") { text in
            PointInTime.parse(text, now: moment.now, utcOffset: moment.utcOffset)
        }
    }

    // MARK: - Faults

    /// Reports a field's fault at the field's position: in the entry, or else in the defaults, or else at the entry.
    private func report(_ error: FieldError, in options: YAMLMapping?, of entry: YAMLValue) {
        var name = QueueKeys.key(ofField: error.field)
        if name.hasPrefix("mirrors") { name = options?["mirror"] == nil ? "mirrors" : "mirror" }
        guard var value = options?[name] ?? defaults?[name] else {
            entry.reportBare("\"\(name)\": \(error.message)", code: error.code)
            return
        }
        if let index = error.index {
            let values =
                if case .lines(_, let lines)? = QueueKeys.field(name)?.syntax {
                    self.lines(lines, of: value).map(\.value)
                } else {
                    texts(value, "a URL").map(\.value)
                }
            if values.indices.contains(index) { value = values[index] }
        }
        value.reportBare("\"\(name)\": \(error.message)", code: error.code)
    }
}

extension YAMLValue {
    /// Reports a fault of an entry as a whole, which has no key of its own.
    func reportEntry(_ message: String) {
        reportBare("this entry \(message)")
    }
}

extension FieldError {
    /// The index in a field such as `headers[2]`.
    fileprivate var index: Int? {
        guard let open = field.firstIndex(of: "["), field.hasSuffix("]") else { return nil }
        return Int(field[field.index(after: open)...].dropLast())
    }
}
