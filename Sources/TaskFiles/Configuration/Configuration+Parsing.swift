import TaskModel

extension Configuration {
    /// Parses the YAML of a configuration file; an empty file yields all defaults.
    ///
    /// - Parameters:
    ///   - file: the path of the file. It is printed in messages, and its directory is the base of relative paths of
    ///     files that the configuration names.
    ///   - readFile: reads the separate files for passwords, headers and certificates.
    /// - Throws: ``FileError`` for the faults in the file: a key that is unknown, duplicate or not supported, or a
    ///   value of the wrong type or out of bounds.
    package init(
        parsing text: String, file: String,
        readFile: @escaping ReadFile = { (path, _) throws(UnreadableFile) in
            throw UnreadableFile("\(path) is not read here")
        }
    ) throws(FileError) {
        self.init()
        let source = YAMLSource(text, file: file)
        guard let root = try source.compose() else { return }
        if let sections = root.mapping(
            ConfigurationKeys.top, "a mapping of sections, such as downloads and limits")
        {
            let files = NamedFiles(readFile)
            let directory = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? ""
            for section in sections.values {
                switch section.name {
                case "watch": readWatches(section, baseDirectory: directory.isEmpty ? "/" : directory, files)
                case "notify": readWebhooks(section, baseDirectory: directory, files)
                case "hosts": readHosts(section, baseDirectory: directory, files)
                default: read(section)
                }
            }
        }
        try source.throwFaults()
    }

    private mutating func read(_ section: YAMLValue) {
        switch section.name {
        case "downloads": each(section, ConfigurationKeys.downloads) { $0.readDownloads($1) }
        case "uploads":
            each(section, ConfigurationKeys.uploads) { $0.uploads.roots = $0.paths(of: $1, for: .uploadRoot) ?? [] }
        case "limits": each(section, ConfigurationKeys.limits) { $0.readLimits($1) }
        case "retry": readRetry(section)
        case "timeouts": each(section, ConfigurationKeys.timeouts) { $0.readTimeouts($1) }
        case "disk": each(section, ConfigurationKeys.disk) { $0.readDisk($1) }
        case "tls": each(section, ConfigurationKeys.tls) { $0.tls.caFile = $0.path(of: $1, for: .certificates) }
        case "network": each(section, ConfigurationKeys.network) { $0.readNetwork($1) }
        case "schedule": readSchedule(section)
        case "queues": readQueues(section)
        case "history": each(section, ConfigurationKeys.kept) { $0.readHistory($1) }
        case "events": each(section, ConfigurationKeys.kept) { $0.readEvents($1) }
        case "control": each(section, ConfigurationKeys.control) { $0.readControl($1) }
        case "metrics": each(section, ConfigurationKeys.metrics) { $0.readMetrics($1) }
        default: each(section, ConfigurationKeys.log) { $0.log.level = $1.word() ?? .info }
        }
    }

    private mutating func each(
        _ section: YAMLValue, _ keys: KeyTable, _ take: (inout Configuration, YAMLValue) -> Void
    ) {
        for value in section.mapping(keys)?.values ?? [] { take(&self, value) }
    }

    private mutating func readDownloads(_ value: YAMLValue) {
        switch value.name {
        case "directory": downloads.directory = path(of: value, for: .downloadDirectory)
        case "roots": downloads.roots = paths(of: value, for: .downloadRoot)
        case "layout": downloads.layout = value.word()
        default: downloads.onConflict = value.word() ?? .rename
        }
    }

    mutating func path(of value: YAMLValue, for use: Place.Use) -> String? {
        guard let path = value.absolutePath() else { return nil }
        let place = value.place
        places.append(Place(path: path, use: use, file: place.file, position: place.position))
        return path
    }

    private mutating func paths(of value: YAMLValue, for use: Place.Use) -> [String]? {
        value.list("a list of absolute paths, such as [/srv/files]")?.compactMap { path(of: $0, for: use) }
    }

    private mutating func readLimits(_ value: YAMLValue) {
        switch value.name {
        case "active-tasks": set(\.limits.activeTasks, value.integer(in: Bound.activeTasks))
        case "connections-per-task": set(\.limits.connectionsPerTask, value.connectionCount())
        case "connections-per-host": set(\.limits.connectionsPerHost, value.integer(in: Bound.connectionsPerHost))
        case "download-rate": limits.downloadRate = value.rate()
        case "upload-rate": limits.uploadRate = value.rate()
        case "tasks-per-batch": limits.tasksPerBatch = value.integer(in: Bound.tasksPerOwner)
        case "active-tasks-per-owner": limits.activeTasksPerOwner = value.integer(in: Bound.activeTasks)
        case "bytes-per-owner": limits.bytesPerOwner = value.size(from: 1)
        case "records-per-owner": set(\.limits.recordsPerOwner, value.size(from: 1))
        default: set(\.limits.tasksPerOwner, value.integer(in: Bound.tasksPerOwner))
        }
    }

    private mutating func readRetry(_ section: YAMLValue) {
        guard let values = section.mapping(ConfigurationKeys.retry) else { return }
        set(\.retry.attempts, values["attempts"]?.integer(in: Bound.attempts))
        set(\.retry.baseDelay, values["base-delay"]?.delay())
        set(\.retry.maxDelay, values["max-delay"]?.delay())
        if retry.baseDelay > retry.maxDelay {
            values["max-delay"]?.report("must not be shorter than \"base-delay\"")
            values["base-delay"]?.report("must not be longer than \"max-delay\"")
        }
    }

    private mutating func readTimeouts(_ value: YAMLValue) {
        switch value.name {
        case "connect": set(\.timeouts.connect, value.delay())
        default: set(\.timeouts.stall, value.delay())
        }
    }

    private mutating func readDisk(_ value: YAMLValue) {
        switch value.name {
        case "min-free": set(\.disk.minFree, value.size())
        default: disk.maxSize = value.size(from: 1)
        }
    }

    private mutating func readMetrics(_ value: YAMLValue) {
        guard let path = value.absolutePath() else { return }
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), !path.hasSuffix("/") else {
            return value.report("names a directory; name a file in it, such as \(path)dld.prom")
        }
        metrics.textfile = path
        // The file is replaced, so its directory has to be writable.
        let (directory, place) = (slash == path.startIndex ? "/" : String(path[..<slash]), value.place)
        places.append(Place(path: directory, use: .metrics, file: place.file, position: place.position))
    }

    private mutating func readNetwork(_ value: YAMLValue) {
        switch value.name {
        case "proxy": network.proxy = value.proxy()
        case "exempt": set(\.network.exempt, value.word())
        case "no-proxy":
            let values = value.shape == .list ? value.list("a list of servers") ?? [] : [value]
            guard values.count <= Bound.proxyExemptions else {
                return value.report("contains more than \(Bound.proxyExemptions) servers")
            }
            network.proxyExemptions = values.compactMap {
                $0.parse(ProxyExemption.expectation, ProxyExemption.init(parsing:))
            }
        default:
            guard let values = value.list("a list of \(NetworkRange.expectation)") else { return }
            guard values.count <= Bound.networks else {
                return value.report("contains more than \(Bound.networks) networks")
            }
            network.deny = values.compactMap { $0.network() }
        }
    }

    private mutating func readSchedule(_ section: YAMLValue) {
        let expected = "a list of windows, such as [{days: mon-fri, from: \"09:00\", to: \"18:00\", download-rate: 1M}]"
        guard let values = section.list(expected) else { return }
        guard values.count <= Bound.windows else {
            return section.report("contains more than \(Bound.windows) windows")
        }
        schedule = Schedule(values.compactMap { Self.window($0) })
    }

    private static func window(_ value: YAMLValue) -> ScheduleWindow? {
        guard let values = value.mapping(ConfigurationKeys.window, "a window with days, from, to and limits")
        else { return nil }
        var window = ScheduleWindow()
        for value in values.values {
            switch value.name {
            case "days": window.days = value.weekdays() ?? window.days
            case "from": window.from = value.timeOfDay() ?? window.from
            case "to": window.to = value.timeOfDay() ?? window.to
            case "download-rate": window.downloadRate = value.rate()
            case "upload-rate": window.uploadRate = value.rate()
            default: window.pauses = value.flag() ?? false
            }
        }
        if window.from == ScheduleWindow.minutesOfDay {
            values["from"]?.report("must be 23:59 or earlier")
        }
        if values["from"] != nil, values["to"] != nil, window.from == window.to {
            values["to"]?.report("must differ from \"from\"; omit both for the whole day")
        }
        if values.isWhole, !["download-rate", "upload-rate", "pause"].contains(where: { values[$0] != nil }) {
            value.reportBare("this window sets none of download-rate, upload-rate and pause; set at least one")
        }
        return window
    }

    private mutating func readQueues(_ section: YAMLValue) {
        guard let values = section.list("a list of patterns such as [/etc/dld/queue.d/*.yaml]") else { return }
        guard values.count <= Bound.queues else {
            return section.report("contains more than \(Bound.queues) patterns")
        }
        for value in values {
            guard value.shape == .mapping else {
                if let path = value.absolutePath() { queues.append(QueuePattern(path: path)) }
                continue
            }
            guard let parts = value.mapping(ConfigurationKeys.queue) else { continue }
            guard let files = parts["files"] else {
                value.reportEntry("has no `files`")
                continue
            }
            guard let path = files.absolutePath() else { continue }
            queues.append(QueuePattern(path: path, prune: parts["prune"]?.flag() ?? false))
        }
    }

    private mutating func readHistory(_ value: YAMLValue) {
        switch value.name {
        case "age": set(\.history.age, value.age())
        default: set(\.history.count, value.integer(in: Bound.kept))
        }
    }

    private mutating func readEvents(_ value: YAMLValue) {
        switch value.name {
        case "age": set(\.events.age, value.age())
        default: set(\.events.count, value.integer(in: Bound.kept))
        }
    }

    private mutating func readWatches(_ section: YAMLValue, baseDirectory: String, _ files: NamedFiles) {
        let values = section.list("a list of directories, such as [{directory: /srv/drop}]") ?? []
        guard values.count <= Bound.watches else {
            section.report("contains more than \(Bound.watches) directories")
            return
        }
        for value in values {
            guard let parts = value.mapping(ConfigurationKeys.watch, "a mapping with a directory") else { continue }
            guard let place = parts["directory"] else {
                value.reportEntry("has no \"directory\"")
                continue
            }
            guard let path = path(of: place, for: .watch) else { continue }
            let directory = "/" + path.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
            guard !watch.contains(where: { $0.directory == directory }) else {
                place.report("is already watched")
                continue
            }
            let defaults = parts["defaults"]?.mapping(QueueKeys.defaults)
            watch.append(
                Watch(
                    directory: directory,
                    defaults: defaults.map { EntryDefaults($0, baseDirectory: baseDirectory, files: files) }
                        ?? EntryDefaults()))
        }
    }

    private mutating func readControl(_ value: YAMLValue) {
        switch value.name {
        case "socket":
            control.socket = value.absolutePath()
            if let path = control.socket, path.utf8.count > Bound.socketPath {
                value.report("is longer than \(Bound.socketPath) bytes, the maximum for a socket's path")
            }
        case "mode": control.mode = value.mode()
        case "group":
            control.group = value.group()
            positions.record("control.group", value)
        default:
            control.adminGroup = value.group()
            positions.record("control.admin-group", value)
        }
    }

    /// Stores a value. A `nil` value was reported as a fault, and the default is kept.
    private mutating func set<Value>(_ field: WritableKeyPath<Configuration, Value>, _ value: Value?) {
        if let value { self[keyPath: field] = value }
    }
}

extension YAMLValue {
    fileprivate func delay() -> Milliseconds? { span(atMost: Configuration.Bound.span, "7d") }

    fileprivate func age() -> Milliseconds? { span(atMost: Configuration.Bound.age, "36500d") }

    /// Parses a string or a list of strings.
    fileprivate func weekdays() -> Set<Int>? {
        let expected = "days such as mon-fri, or a list of them such as [sat, sun]"
        let values = shape == .list ? list(expected) ?? [] : [self]
        let days = values.compactMap { $0.parse(expected, Weekdays.parse) }
        return days.isEmpty ? nil : days.reduce(into: Set()) { $0.formUnion($1) }
    }

    fileprivate func timeOfDay() -> Int? {
        parse("a time of day such as \"09:00\", up to \"24:00\"", TimeOfDay.parse)
    }

    /// Parses permission bits in octal. The leading zero is required, so that the value cannot be mistaken for a
    /// decimal number.
    fileprivate func mode() -> UInt32? {
        parse("permission bits in octal with a leading 0, such as 0660") { text in
            guard text.hasPrefix("0"), (4...5).contains(text.utf8.count),
                let mode = text.utf8.allSatisfy(\.isDigit) ? UInt32(text, radix: 8) : nil, mode <= 0o777
            else { return nil }
            return mode
        }
    }

    fileprivate func group() -> String? {
        parse("a group's name or number") { text in
            let isName = text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") }
            return isName && (1...Configuration.Bound.groupName).contains(text.utf8.count) ? text : nil
        }
    }

    fileprivate func network() -> NetworkRange? {
        guard let text = text("a network such as 10.0.0.0/8") else { return nil }
        do throws(NetworkRange.Refusal) {
            return try NetworkRange(parsing: text)
        } catch {
            reportBare("\"\(name)\": \(error.message)")
            return nil
        }
    }

    /// Parses the URL of a proxy.
    ///
    /// - Parameter mayBeNone: whether the word `none` stands for no proxy, as the empty text.
    func proxy(mayBeNone: Bool = false) -> String? {
        let expected = "a URL such as http://proxy.example.org:3128" + (mayBeNone ? ", or none" : "")
        guard let proxy = text(expected) else { return nil }
        if mayBeNone, proxy == "none" { return "" }
        // The daemon's proxy is validated by the same rule as a task's proxy.
        var task = TaskSpecification(url: "http://localhost/")
        task.proxy = proxy
        do {
            try task.check()
            return proxy
        } catch {
            report(error.message)
            return nil
        }
    }
}
