import TaskModel

extension Configuration {
    /// Parses the section `hosts`.
    mutating func readHosts(_ section: YAMLValue, baseDirectory: String, _ files: NamedFiles) {
        let expected = "a mapping of hosts to their settings, such as {example.org: {http-version: 2}}"
        for value in section.entries(atMost: Bound.hosts, expected) {
            guard let pattern = HostPattern(value.name) else {
                value.reportKey(HostPattern.expectation)
                continue
            }
            guard hosts[pattern.text] == nil else {
                value.reportKey("is given twice: \"\(pattern.text)\" is already present")
                continue
            }
            var host = Host()
            host.access.scheme = pattern.scheme
            typealias Key = ConfigurationKeys.Host
            let values = value.mapping(Key.self)
            for (key, value) in values?.entries(Key.self) ?? [] {
                switch key {
                case .connections: host.connections = value.integer(in: Bound.connectionsPerHost)
                case .downloadRate: host.downloadRate = value.rate()
                case .uploadRate: host.uploadRate = value.rate()
                case .requestsPerSecond: host.requestsPerSecond = value.number(in: Bound.requestsPerSecond)
                case .credential: host.access.credential = credential(value, of: pattern)
                case .headers: host.access.headers = Self.headers(value, baseDirectory, files)
                case .owners: host.access.owners = owners(value, of: pattern)
                case .timeouts:
                    for (key, time) in value.entries(
                        ConfigurationKeys.Timeouts.self, "a mapping such as {connect: 10s, stall: 2m}")
                    {
                        let span = time.span(atMost: Bound.span, "7d")
                        switch key {
                        case .connect: host.connectTimeout = span
                        case .stall: host.stallTimeout = span
                        }
                    }
                case .proxy: host.proxy = value.proxy(mayBeNone: true)
                case .trust: host.trust = trust(value, of: pattern, files)
                case .httpVersion: host.httpVersion = value.word()
                }
            }
            if let owners = values?[Key.owners], values?[Key.credential] == nil, values?[Key.headers] == nil {
                owners.report("has no effect without \"credential\" or \"headers\"")
            }
            if host.access.credential != nil, let headers = values?[Key.headers],
                host.access.headers.contains(where: { $0.lowercased().hasPrefix("authorization:") })
            {
                headers.report("must not contain Authorization beside \"credential\"")
            }
            if host.access.isEmpty { host.access = HostAccess() }
            hosts[pattern.text] = host
        }
    }

    /// Returns the key of ``positions`` for a value of a host.
    ///
    /// - Parameter index: the index in a list.
    package static func position(of key: String, ofHost pattern: String, at index: Int? = nil) -> String {
        "hosts \(pattern) \(key)" + (index.map { " \($0)" } ?? "")
    }

    private mutating func record(_ value: YAMLValue, _ key: String, of pattern: HostPattern, at index: Int? = nil) {
        positions.record(Self.position(of: key, ofHost: pattern.text, at: index), value)
    }

    private mutating func credential(_ value: YAMLValue, of pattern: HostPattern) -> String? {
        record(value, "credential", of: pattern)
        return value.parse(HostCredential.nameExpectation) { HostCredential.isName($0) ? $0 : nil }
    }

    private static func headers(_ value: YAMLValue, _ baseDirectory: String, _ files: NamedFiles) -> [String] {
        let lines = value.shape == .list ? value.list("a list of header lines") ?? [] : [value]
        let headers = lines.flatMap { line in
            secret(line, "a header line such as \"X-Token: …\"", baseDirectory, files)?.lines ?? []
        }
        // The rules are those of a task.
        var task = TaskSpecification(url: "https://localhost/")
        task.headers = headers
        do {
            try task.check()
        } catch {
            value.reportBare("\"headers\": \(error.message)", code: error.code)
        }
        if headers.contains(where: { $0.lowercased().hasPrefix("proxy-") }) {
            value.report("must not contain a field for a proxy")
        }
        return headers
    }

    private mutating func owners(_ value: YAMLValue, of pattern: HostPattern) -> [HostOwner]? {
        guard
            let values = value.list("a list of users and groups, such as [ann, 1001, '@staff'], or ['*'] for everyone")
        else { return nil }
        if values.isEmpty { value.report("names no one; omit it for administrators") }
        guard values.count <= Bound.owners else {
            value.report("contains more than \(Bound.owners) users and groups")
            return nil
        }
        var owners: [HostOwner] = []
        for value in values {
            record(value, "owners", of: pattern, at: owners.count)
            if let owner = value.parse("a user's name or number, a group such as '@staff', or '*'", HostOwner.init) {
                owners.append(owner)
            }
        }
        return owners
    }

    private mutating func trust(_ value: YAMLValue, of pattern: HostPattern, _ files: NamedFiles) -> HostTrust? {
        var trust = HostTrust()
        let expected = "default, or a mapping with ca-file or pin, such as {pin: ['sha256//…']}"
        guard value.shape == .mapping else {
            return value.parse(expected) { $0 == "default" ? trust : nil }
        }
        guard let values = value.mapping(ConfigurationKeys.Trust.self, expected) else { return nil }
        for (key, value) in values.entries(ConfigurationKeys.Trust.self) {
            switch key {
            case .caFile:
                record(value, "ca-file", of: pattern)
                guard let path = path(of: value, for: .certificates) else { continue }
                switch files.text(path, limit: SecretText.Limit.certificates) {
                case .success(let text) where text.contains("-----BEGIN CERTIFICATE-----"): trust.certificates = text
                case .success: value.report("names a file without a certificate in PEM")
                case .failure(let error): value.reportBare("\"ca-file\": \(error.reason)")
                }
            case .pin:
                let pins = value.shape == .list ? value.list("a list of pins") ?? [] : [value]
                if pins.isEmpty || pins.count > Bound.pins { value.report("must be 1 to \(Bound.pins) pins") }
                for pin in pins {
                    record(pin, "pin", of: pattern, at: trust.pins.count)
                    if let pin = pin.text("a pin such as sha256//…") { trust.pins.append(pin) }
                }
            }
        }
        if values.isWhole, values.values.isEmpty { value.report("must be \(expected)") }
        return trust
    }
}

extension Configuration.HostOwner {
    fileprivate init?(_ text: String) {
        if text == "*" {
            self = .everyone
            return
        }
        let isGroup = text.utf8.first == UInt8(ascii: "@")
        let name = isGroup ? String(text.dropFirst()) : text
        guard name.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "*") }),
            (1...Configuration.Bound.groupName).contains(name.utf8.count)
        else { return nil }
        self = isGroup ? .group(name) : .user(name)
    }
}
