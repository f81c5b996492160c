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
        let files = NamedFiles(readFile)
        let directory = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? ""
        for (key, section) in root.entries(
            ConfigurationKeys.Top.self, "a mapping of sections, such as downloads and limits")
        {
            switch key {
            case .downloads: readDownloads(section)
            case .uploads: readUploads(section)
            case .limits: readLimits(section)
            case .retry: readRetry(section)
            case .timeouts: readTimeouts(section)
            case .disk: readDisk(section)
            case .tls: readTLS(section)
            case .network: readNetwork(section)
            case .hosts: readHosts(section, baseDirectory: directory, files)
            case .schedule: readSchedule(section)
            case .queues: readQueues(section)
            case .watch: readWatches(section, baseDirectory: directory.isEmpty ? "/" : directory, files)
            case .history: read(section, age: \.history.age, count: \.history.count)
            case .events: read(section, age: \.events.age, count: \.events.count)
            case .notify: readWebhooks(section, baseDirectory: directory, files)
            case .control: readControl(section)
            case .metrics: readMetrics(section)
            case .log: readLog(section)
            }
        }
        try source.throwFaults()
    }

    private mutating func readDownloads(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Downloads.self) {
            switch key {
            case .directory: downloads.directory = path(of: value, for: .downloadDirectory)
            case .roots: downloads.roots = paths(of: value, for: .downloadRoot)
            case .layout: downloads.layout = value.word()
            case .onConflict: downloads.onConflict = value.word() ?? .rename
            }
        }
    }

    private mutating func readUploads(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Uploads.self) {
            switch key {
            case .roots: uploads.roots = paths(of: value, for: .uploadRoot) ?? []
            }
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

    private mutating func readLimits(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Limits.self) {
            switch key {
            case .activeTasks: set(\.limits.activeTasks, value.integer(in: Bound.activeTasks))
            case .connectionsPerTask: set(\.limits.connectionsPerTask, value.connectionCount())
            case .connectionsPerHost: set(\.limits.connectionsPerHost, value.integer(in: Bound.connectionsPerHost))
            case .downloadRate: limits.downloadRate = value.rate()
            case .uploadRate: limits.uploadRate = value.rate()
            case .tasksPerOwner: set(\.limits.tasksPerOwner, value.integer(in: Bound.tasksPerOwner))
            case .tasksPerBatch: limits.tasksPerBatch = value.integer(in: Bound.tasksPerOwner)
            case .activeTasksPerOwner: limits.activeTasksPerOwner = value.integer(in: Bound.activeTasks)
            case .bytesPerOwner: limits.bytesPerOwner = value.size(from: 1)
            case .recordsPerOwner: set(\.limits.recordsPerOwner, value.size(from: 1))
            }
        }
    }

    private mutating func readRetry(_ section: YAMLValue) {
        guard let values = section.mapping(ConfigurationKeys.Retry.self) else { return }
        for (key, value) in values.entries(ConfigurationKeys.Retry.self) {
            switch key {
            case .attempts: set(\.retry.attempts, value.integer(in: Bound.attempts))
            case .baseDelay: set(\.retry.baseDelay, value.delay())
            case .maxDelay: set(\.retry.maxDelay, value.delay())
            }
        }
        if retry.baseDelay > retry.maxDelay {
            values[ConfigurationKeys.Retry.maxDelay]?.report("must not be shorter than \"base-delay\"")
            values[ConfigurationKeys.Retry.baseDelay]?.report("must not be longer than \"max-delay\"")
        }
    }

    private mutating func readTimeouts(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Timeouts.self) {
            switch key {
            case .connect: set(\.timeouts.connect, value.delay())
            case .stall: set(\.timeouts.stall, value.delay())
            }
        }
    }

    private mutating func readDisk(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Disk.self) {
            switch key {
            case .minFree: set(\.disk.minFree, value.size())
            case .maxSize: disk.maxSize = value.size(from: 1)
            }
        }
    }

    private mutating func readTLS(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.TLS.self) {
            switch key {
            case .caFile: tls.caFile = path(of: value, for: .certificates)
            }
        }
    }

    private mutating func readMetrics(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Metrics.self) {
            switch key {
            case .textfile: readTextfile(value)
            }
        }
    }

    private mutating func readTextfile(_ value: YAMLValue) {
        guard let path = value.absolutePath() else { return }
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), !path.hasSuffix("/") else {
            return value.report("names a directory; name a file in it, such as \(path)dld.prom")
        }
        metrics.textfile = path
        // The file is replaced, so its directory has to be writable.
        let (directory, place) = (slash == path.startIndex ? "/" : String(path[..<slash]), value.place)
        places.append(Place(path: directory, use: .metrics, file: place.file, position: place.position))
    }

    private mutating func readNetwork(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Network.self) {
            switch key {
            case .proxy: network.proxy = value.proxy()
            case .exempt: set(\.network.exempt, value.word())
            case .noProxy:
                let values = value.shape == .list ? value.list("a list of servers") ?? [] : [value]
                guard values.count <= Bound.proxyExemptions else {
                    value.report("contains more than \(Bound.proxyExemptions) servers")
                    continue
                }
                network.proxyExemptions = values.compactMap {
                    $0.parse(ProxyExemption.expectation, ProxyExemption.init(parsing:))
                }
            case .deny:
                guard let values = value.list("a list of \(NetworkRange.expectation)") else { continue }
                guard values.count <= Bound.networks else {
                    value.report("contains more than \(Bound.networks) networks")
                    continue
                }
                network.deny = values.compactMap { $0.network() }
            }
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
        typealias Key = ConfigurationKeys.Window
        guard let values = value.mapping(Key.self, "a window with days, from, to and limits")
        else { return nil }
        var window = ScheduleWindow()
        for (key, value) in values.entries(Key.self) {
            switch key {
            case .days: window.days = value.weekdays() ?? window.days
            case .from: window.from = value.timeOfDay() ?? window.from
            case .to: window.to = value.timeOfDay() ?? window.to
            case .downloadRate: window.downloadRate = value.rate()
            case .uploadRate: window.uploadRate = value.rate()
            case .pause: window.pauses = value.flag() ?? false
            }
        }
        if window.from == ScheduleWindow.minutesOfDay {
            values[Key.from]?.report("must be 23:59 or earlier")
        }
        if values[Key.from] != nil, values[Key.to] != nil, window.from == window.to {
            values[Key.to]?.report("must differ from \"from\"; omit both for the whole day")
        }
        if values.isWhole, ![Key.downloadRate, .uploadRate, .pause].contains(where: { values[$0] != nil }) {
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
            guard let parts = value.mapping(ConfigurationKeys.Queue.self) else { continue }
            var pattern = QueuePattern(path: "")
            for (key, value) in parts.entries(ConfigurationKeys.Queue.self) {
                switch key {
                case .files: pattern.path = value.absolutePath() ?? ""
                case .prune: pattern.prune = value.flag() ?? false
                }
            }
            if parts[ConfigurationKeys.Queue.files] == nil { value.reportEntry("has no `files`") }
            if !pattern.path.isEmpty { queues.append(pattern) }
        }
    }

    /// Reads what is kept of the history or of the events.
    private mutating func read(
        _ section: YAMLValue, age: WritableKeyPath<Configuration, Milliseconds>,
        count: WritableKeyPath<Configuration, Int>
    ) {
        for (key, value) in section.entries(ConfigurationKeys.Kept.self) {
            switch key {
            case .age: set(age, value.age())
            case .count: set(count, value.integer(in: Bound.kept))
            }
        }
    }

    private mutating func readWatches(_ section: YAMLValue, baseDirectory: String, _ files: NamedFiles) {
        let values = section.list("a list of directories, such as [{directory: /srv/drop}]") ?? []
        guard values.count <= Bound.watches else {
            section.report("contains more than \(Bound.watches) directories")
            return
        }
        for value in values {
            guard let parts = value.mapping(ConfigurationKeys.Watch.self, "a mapping with a directory") else {
                continue
            }
            guard let place = parts[ConfigurationKeys.Watch.directory] else {
                value.reportEntry("has no \"directory\"")
                continue
            }
            guard let path = path(of: place, for: .watch) else { continue }
            let directory = "/" + path.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
            guard !watch.contains(where: { $0.directory == directory }) else {
                place.report("is already watched")
                continue
            }
            let defaults = parts[ConfigurationKeys.Watch.defaults]?.mapping(QueueKeys.defaults)
            watch.append(
                Watch(
                    directory: directory,
                    defaults: defaults.map { EntryDefaults($0, baseDirectory: baseDirectory, files: files) }
                        ?? EntryDefaults()))
        }
    }

    private mutating func readControl(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Control.self) {
            switch key {
            case .socket:
                control.socket = value.absolutePath()
                if let path = control.socket, path.utf8.count > Bound.socketPath {
                    value.report("is longer than \(Bound.socketPath) bytes, the maximum for a socket's path")
                }
            case .mode: control.mode = value.mode()
            case .group:
                control.group = value.group()
                positions.record("control.group", value)
            case .adminGroup:
                control.adminGroup = value.group()
                positions.record("control.admin-group", value)
            }
        }
    }

    private mutating func readLog(_ section: YAMLValue) {
        for (key, value) in section.entries(ConfigurationKeys.Log.self) {
            switch key {
            case .level: log.level = value.word() ?? .info
            }
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
