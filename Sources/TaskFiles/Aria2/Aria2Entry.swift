import TaskModel

/// An entry of an aria2 input file: its source URLs and those of its options that dld evaluates.
struct Aria2Entry {
    struct Text {
        var text: String
        var position: Position
    }

    let file: String
    /// The URLs of the entry, never empty; the first is the task's URL, the others are its mirrors.
    let sources: [Text]
    private var options: [String: Text] = [:]
    private var headers: [Text] = []
    /// Notes about options that are ignored because of the rest of the entry.
    private(set) var notes: [(position: Position, message: String)] = []
    private var used: Set<String> = []

    init(file: String, sources: [Text]) {
        self.file = file
        self.sources = sources
    }

    var position: Position { sources.first?.position ?? Position() }

    /// Stores an option.
    ///
    /// - Returns: whether the option is accepted; `false` if it was given before. `header` may be repeated.
    mutating func store(_ name: String, _ value: Text) -> Bool {
        if name == "header" {
            headers.append(value)
            return true
        }
        return options.updateValue(value, forKey: name) == nil
    }

    /// Converts the entry into a task specification.
    ///
    /// - Throws: ``FileError`` at the position of the first fault found.
    mutating func specification() throws(FileError) -> TaskSpecification {
        let addresses = try self.addresses()
        var task = TaskSpecification(url: sources.first?.text ?? "")
        task.mirrors = sources.dropFirst().map(\.text)
        try readPlace(into: &task)
        try readIdentity(into: &task, addresses)
        try readPace(into: &task, addresses)
        try readOptions(into: &task, addresses)
        if let remoteTime = try flag("remote-time") { task.noMtime = !remoteTime }
        // dld always resumes a partial download, so both values of `continue` are accepted.
        _ = try flag("continue")
        if let gid = value("gid") {
            guard gid.text.utf8.count == 16, gid.text.utf8.allSatisfy(\.isHexDigit) else {
                throw fault(gid.position, "\"gid\" must be 16 hexadecimal digits")
            }
            task.key = gid.text.lowercased()
        }
        for (name, option) in options.sorted(by: { $0.value.position < $1.value.position })
        where !used.contains(name) && Aria2Option.meaning(of: name) == .carriedOut {
            notes.append((option.position, Self.doesNotApply(name)))
        }
        do {
            try task.check()
        } catch {
            throw placed(error)
        }
        return task
    }

    private static func doesNotApply(_ name: String) -> String {
        "\"\(name)\" does not apply to the URLs of its entry; it is ignored"
    }

    // MARK: - Sources

    private mutating func addresses() throws(FileError) -> [TaskAddress] {
        var addresses: [TaskAddress] = []
        for source in sources {
            if source.text.lowercased().hasPrefix("magnet:") {
                throw fault(source.position, "is a magnet link; dld does not support BitTorrent", .protocolNotAllowed)
            }
            let address: TaskAddress
            do throws(FieldError) {
                address = try TaskAddress(parsing: source.text)
            } catch {
                throw FileError(file: file, at: source.position, code: error.code, "\"url\": \(error.message)")
            }
            let path = FileName.pathFromURL(source.text).lowercased()
            if path.hasSuffix(".torrent"), value("follow-torrent") == nil {
                throw fault(
                    source.position,
                    "is a torrent, which dld does not support; set \"follow-torrent=false\" to fetch the torrent itself"
                )
            }
            if path.hasSuffix(".meta4") || path.hasSuffix(".metalink"), value("follow-metalink") == nil {
                throw fault(
                    source.position,
                    "is a Metalink; use dlctl add --metalink, or set \"follow-metalink=false\" to fetch it as a file"
                )
            }
            addresses.append(address)
        }
        return addresses
    }

    // MARK: - Where it goes

    private mutating func readPlace(into task: inout TaskSpecification) throws(FileError) {
        task.directory = value("dir")?.text
        if let out = value("out") {
            // The path is always relative to `dir` and may contain directories.
            guard !out.text.hasPrefix("/") else {
                throw fault(
                    out.position, "\"out\" must be a path relative to \"dir\", not an absolute path", .pathNotAllowed)
            }
            let slash = out.text.utf8.lastIndex(of: UInt8(ascii: "/"))
            task.output = slash.map { String(out.text[out.text.utf8.index(after: $0)...]) } ?? out.text
            if let slash {
                let inner = String(out.text[..<slash])
                task.directory = task.directory.map { $0 + ($0.hasSuffix("/") ? "" : "/") + inner } ?? inner
            }
        }
        if let checksum = value("checksum") {
            guard let equals = checksum.text.firstIndex(of: "=") else {
                throw fault(checksum.position, "\"checksum\" must be TYPE=DIGEST, such as sha-256=…")
            }
            task.checksum = checksum.text[..<equals] + ":" + checksum.text[checksum.text.index(after: equals)...]
        }
        let (overwrites, renames) = (try flag("allow-overwrite"), try flag("auto-file-renaming"))
        switch (overwrites, renames) {
        case (true?, _): task.onConflict = .overwrite
        case (_, false?): task.onConflict = .fail
        case (nil, nil): break
        default: task.onConflict = .rename
        }
    }

    // MARK: - As whom, and by which way

    private mutating func readIdentity(
        into task: inout TaskSpecification, _ addresses: [TaskAddress]
    ) throws(FileError) {
        if addresses.contains(where: \.isHTTP) {
            task.headers = headers.map(\.text)
            if try flag("http-no-cache") == true { task.headers += ["Cache-Control: no-cache", "Pragma: no-cache"] }
            if let referer = value("referer")?.text {
                task.referer = referer == "*" ? Self.withoutUser(task.url) : referer
            }
        } else {
            for header in headers { notes.append((header.position, Self.doesNotApply("header"))) }
        }
        // dld sends user name and password only to the server of the first URL.
        let family = addresses.first?.isHTTP == false ? "ftp" : "http"
        task.user = value(family + "-user")?.text
        task.password = value(family + "-passwd")?.text
        task.proxy = try proxy(addresses)
    }

    /// Returns the URL without user information and fragment, as the Referer field requires (RFC 9110, section 10.1.3).
    private static func withoutUser(_ url: String) -> String {
        let plain = url.prefix { $0 != "#" }
        guard let start = plain.firstRange(of: "://")?.upperBound else { return String(plain) }
        let authority = plain[start...].prefix { $0 != "/" && $0 != "?" }
        guard let at = authority.lastIndex(of: "@") else { return String(plain) }
        return String(plain[..<start] + plain[plain.index(after: at)...])
    }

    private mutating func proxy(_ addresses: [TaskAddress]) throws(FileError) -> String? {
        var proxies: [String?] = []
        for address in addresses {
            let own = Aria2Option.proxy(ofScheme: address.scheme)
            proxies.append(try proxy(named: options[own] != nil ? own : "all-proxy"))
        }
        guard Set(proxies).count == 1 else {
            throw fault(position, "the URLs of this entry have different proxies, but a task has only one")
        }
        return proxies.first ?? nil
    }

    /// Returns the proxy URL for an option of the form `[http://][USER:PASSWORD@]HOST[:PORT]`. The separate `-user` and
    /// `-passwd` options take precedence.
    private mutating func proxy(named name: String) throws(FileError) -> String? {
        guard let option = value(name) else { return nil }
        guard !option.text.isEmpty else {
            throw fault(
                option.position, "\"\(name)\" is empty, but a task cannot bypass the daemon's proxy; remove the option")
        }
        let separator = option.text.firstRange(of: "://")
        let scheme = separator.map { String(option.text[..<$0.lowerBound]) } ?? "http"
        var rest = separator.map { String(option.text[$0.upperBound...]) } ?? option.text
        if let end = rest.firstIndex(of: "/") { rest = String(rest[..<end]) }
        var userInfo: String?
        if let at = rest.lastIndex(of: "@") {
            userInfo = String(rest[..<at])
            rest = String(rest[rest.index(after: at)...])
        }
        if let user = value(name + "-user")?.text {
            userInfo = Self.escaped(user) + ":" + Self.escaped(value(name + "-passwd")?.text ?? "")
        }
        // The port follows the last colon, also after an IPv6 address in brackets.
        let hasPort = rest.lastIndex(of: ":").map { !rest[$0...].contains("]") } ?? false
        if !hasPort { rest += scheme == "https" ? ":443" : ":80" }
        return scheme + "://" + (userInfo.map { $0 + "@" } ?? "") + rest
    }

    /// Percent-encodes all bytes except unreserved characters (RFC 3986, sections 2.1 and 2.3).
    private static func escaped(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var escaped: [UInt8] = []
        for byte in text.utf8 {
            if byte.isLetterOrDigit || Array("-._~".utf8).contains(byte) {
                escaped.append(byte)
            } else {
                escaped += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: escaped, as: UTF8.self)
    }

    // MARK: - How fast

    private mutating func readPace(into task: inout TaskSpecification, _ addresses: [TaskAddress]) throws(FileError) {
        let (split, perServer) = (try count("split"), try count("max-connection-per-server"))
        if split != nil || perServer != nil {
            // aria2 opens as many connections: five by default, and one to each server.
            let hosts = Set(addresses.map(\.host)).count
            let (product, overflows) = (perServer ?? 1).multipliedReportingOverflow(by: hosts)
            let wanted = min(split ?? 5, overflows ? .max : product)
            task.connections = .exactly(min(wanted, ConnectionCount.bounds.upperBound))
            if wanted > ConnectionCount.bounds.upperBound, let option = options["split"] {
                let most = ConnectionCount.bounds.upperBound
                notes.append((option.position, "\"split\" is above the maximum of \(most) connections for a task"))
            }
        }
        if let limit = value("max-download-limit") {
            guard let rate = Self.rate(limit.text) else {
                throw fault(
                    limit.position,
                    "\"max-download-limit\" must be a rate in bytes per second, such as 500K or 2M, or 0 for no limit")
            }
            task.limit = rate == 0 ? nil : rate
        }
    }

    /// Parses a rate: digits with an optional K or M for powers of 1024.
    private static func rate(_ text: String) -> Int64? {
        guard let last = text.utf8.last, last.isDigit || [0x4B, 0x4D].contains(last & 0xDF),
            text.utf8.dropLast().allSatisfy(\.isDigit)
        else { return nil }
        return ByteSize.parse(text)
    }

    // MARK: - Values

    /// Reads the fields that an option of their own carries.
    private mutating func readOptions(
        into task: inout TaskSpecification, _ addresses: [TaskAddress]
    ) throws(FileError) {
        var values = UnpackedTask(task)
        for field in TaskField.all where field.schemes == .all || addresses.contains(where: \.isHTTP) {
            guard case .option(let name) = field.aria2 else { continue }
            switch field.syntax {
            case .text(let path, _): values[keyPath: path] = value(name)?.text
            case .flag(let path): values[keyPath: path] = try flag(name) ?? false
            default: break
            }
        }
        task = values.packed
    }

    private mutating func value(_ name: String) -> Text? {
        used.insert(name)
        return options[name]
    }

    private mutating func flag(_ name: String) throws(FileError) -> Bool? {
        guard let option = value(name) else { return nil }
        guard let flag = ["true": true, "false": false][option.text] else {
            throw fault(option.position, "\"\(name)\" must be true or false")
        }
        return flag
    }

    private mutating func count(_ name: String) throws(FileError) -> Int? {
        guard let option = value(name) else { return nil }
        guard option.text.utf8.allSatisfy(\.isDigit), let count = Int(option.text), count > 0 else {
            throw fault(option.position, "\"\(name)\" must be a positive whole number")
        }
        return count
    }

    // MARK: - Faults

    private func fault(_ position: Position, _ message: String, _ code: ErrorCode = .invalid) -> FileError {
        FileError(file: file, at: position, code: code, message)
    }

    /// Maps a field's fault to the position of the option from which the field was made.
    private func placed(_ error: FieldError) -> FileError {
        let field = String(error.field.prefix { $0 != "[" })
        if field == "headers" {
            let index = Int(error.field.drop { !$0.isNumber }.prefix { $0.isNumber }) ?? 0
            let position = headers.indices.contains(index) ? headers[index].position : self.position
            return fault(position, "\"header\": \(error.message)", error.code)
        }
        let names = TaskField.named(field)?.aria2?.names ?? [field]
        guard let name = names.first(where: { used.contains($0) && options[$0] != nil }), let option = options[name]
        else { return fault(position, "\"\(field)\": \(error.message)", error.code) }
        return fault(option.position, "\"\(name)\": \(error.message)", error.code)
    }
}
