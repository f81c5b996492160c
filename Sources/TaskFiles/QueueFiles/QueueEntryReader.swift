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
        for value in defaults?.values ?? [] where keys.known.contains(value.name) {
            take(value, into: &template)
        }
    }

    /// Parses an entry.
    ///
    /// - Returns: the entry, or `nil` after reporting a fault.
    func read(_ value: YAMLValue) -> QueueEntry? {
        var task = template
        var options: YAMLMapping?
        if value.shape == .scalar, kind == .download || value.isNull {
            guard !value.isNull else {
                value.reportEntry("is empty; give a URL or take the dash out")
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
                mirrors.report("and `mirror` are two names for one thing; give one of them")
                return nil
            }
            for option in mapping.values { take(option, into: &task) }
            // Digests in the Metalink also replace a default list of digests.
            if task.metalink, mapping["metalink"] != nil, mapping["checksum-url"] == nil { task.checksumURL = nil }
            let required = kind == .download ? ["url"] : ["file", "url"]
            for name in required where mapping[name] == nil {
                value.reportEntry("lacks its `\(name)`")
                return nil
            }
            options = mapping
        }
        if !task.speaksHTTP { dropDefaultsOfHTTP(from: &task, butFor: options) }
        if let file = task.file, !task.isForm, UploadPlace(task.url) == .directory {
            task.url = UploadPlace.url(of: file, beneath: task.url)
        }
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
        func isDefault(_ name: String) -> Bool { options?[name] == nil }
        if isDefault("header") { task.headers = [] }
        if isDefault("cookies") { task.cookies = nil }
        if isDefault("user-agent") { task.userAgent = nil }
        if isDefault("referer") { task.referer = nil }
        if isDefault("method") { task.method = nil }
        if isDefault("content-type") { task.contentType = nil }
        if isDefault("form") { task.form = [] }
        if isDefault("file-field") { task.fileField = nil }
    }

    private func take(_ value: YAMLValue, into task: inout TaskSpecification) {
        switch value.name {
        case "url": task.url = value.text("a URL") ?? ""
        case "metalink": task.metalink = value.flag() ?? false
        case "mirror", "mirrors": task.mirrors = texts(value, "a URL or a list of URLs").map(\.text)
        case "output": task.output = value.text("a file name")
        case "directory": task.directory = value.text("a directory")
        case "file": task.file = value.text("a path").flatMap { path($0, of: value, to: "upload") }
        case "method": task.method = value.text("PUT or POST")
        case "content-type": task.contentType = value.text("a media type")
        case "form": task.form = fields(value).map(\.line)
        case "file-field": task.fileField = value.text("a name")
        case "checksum": task.checksum = value.text("ALGORITHM:HEX")
        case "checksum-url": task.checksumURL = value.text("a URL")
        case "connections": task.connections = value.connectionCount()
        case "header": task.headers = headers(value).map(\.line)
        case "user": task.user = value.text("a name")
        case "password-file":
            task.password = content(value, limit: SecretText.Limit.password).map(SecretText.password)
        case "cookies": task.cookies = content(value, limit: SecretText.Limit.cookies)
        case "user-agent": task.userAgent = value.text()
        case "referer": task.referer = value.text("a URL")
        case "proxy": task.proxy = value.text("a URL such as http://proxy.example.org:3128")
        case "cacert": task.caCertificates = content(value, limit: SecretText.Limit.certificates)
        case "limit": task.limit = value.rate()
        case "priority": task.priority = value.word() ?? .normal
        case "now": if value.flag() ?? false { task.priority = .now }
        case "max-size": task.maxSize = value.size()
        case "start-at":
            task.startAt = startAt(value)
            if task.startAt != nil, let text = value.text(), PointInTime.countsFromNow(text) { task.startAtText = text }
        case "after-task": task.afterTask = value.taskID()
        case "on-conflict": task.onConflict = value.word()
        case "no-mtime": task.noMtime = value.flag() ?? false
        case "shared": task.shared = value.flag() ?? false
        case "key": task.key = value.text("a name")
        case "paused": task.paused = value.flag() ?? false
        default: break
        }
    }

    /// Returns the lines of one header or of a list of headers, each with the value that contains it. `@FILE` stands
    /// for the lines of a file.
    private func headers(_ value: YAMLValue) -> [(line: String, value: YAMLValue)] {
        texts(value, "'Name: value'").flatMap { text, value -> [(line: String, value: YAMLValue)] in
            guard text.hasPrefix("@") else { return [(text, value)] }
            let file = content(String(text.dropFirst()), of: value, limit: SecretText.Limit.headers)
            return file.map(SecretText.headers)?.map { ($0, value) } ?? []
        }
    }

    /// Returns the fields of a form, each with the value that contains it. The form is a mapping of names to values, or
    /// one `NAME=VALUE` or a list of them, where `@FILE` stands for the lines of a file.
    private func fields(_ value: YAMLValue) -> [(line: String, value: YAMLValue)] {
        if value.shape == .mapping {
            let entries = value.entries(atMost: TaskSpecification.Limit.formFields, "a mapping of names to values")
            return entries.compactMap { entry in entry.text().map { ("\(entry.name)=\($0)", entry) } }
        }
        return texts(value, "'NAME=VALUE'").flatMap { text, value -> [(line: String, value: YAMLValue)] in
            guard text.hasPrefix("@") else { return [(text, value)] }
            let file = content(String(text.dropFirst()), of: value, limit: SecretText.Limit.form)
            return file.map(SecretText.fields)?.map { ($0, value) } ?? []
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
            value.report("names standard input, which belongs to no entry; give the path of a file")
            return nil
        }
        guard let path = self.path(path, of: value, to: "read") else { return nil }
        switch files.text(path, limit: limit) {
        case .success(let text): return text
        case .failure(let error):
            value.reportBare("`\(value.name)`: \(error.reason)")
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
            value.report("begins with ~, which only a shell expands; write the path out")
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
            entry.reportBare("`\(name)`: \(error.message)", code: error.code)
            return
        }
        if let index = error.index {
            let values =
                switch name {
                case "form": fields(value).map(\.value)
                case "header": headers(value).map(\.value)
                default: texts(value, "a URL").map(\.value)
                }
            if values.indices.contains(index) { value = values[index] }
        }
        value.reportBare("`\(name)`: \(error.message)", code: error.code)
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
