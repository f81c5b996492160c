/// The logins of a netrc file, by server.
///
/// The format is that of ftp(1): the words `machine NAME`, `login USER`, `password PASSWORD` and `default`, separated by
/// blanks or line ends. A word may be in double quotes, in which a backslash precedes a quote or another backslash. `#` at
/// the beginning of a word starts a comment up to the end of the line. `account` and `macdef` are accepted and ignored.
public struct Netrc: Sendable, Equatable {
    /// A user name and a password; either may be absent.
    public struct Login: Sendable, Equatable {
        public var user: String?
        public var password: String?
    }

    /// The maximum size of the text, in bytes.
    package static let maximumLength = 262_144
    /// The maximum number of machines.
    static let maximumMachines = 1_000

    /// The logins by name or `name:port`, in lower case. The first one of a machine counts.
    public private(set) var machines: [String: Login] = [:]
    /// The login of all machines that are not named.
    public private(set) var fallback: Login?

    /// Parses the text of a file.
    ///
    /// - Throws: ``FieldError`` for the field `netrc`. The message contains no part of the text, which may be a secret.
    public init(parsing text: String) throws(FieldError) {
        guard text.utf8.count <= Self.maximumLength else {
            throw FieldError(field: "netrc", message: "must be at most \(Self.maximumLength / 1024) KiB")
        }
        var words = NetrcWords(text.utf8[...])
        var entry: (machine: String?, login: Login)?
        while let word = words.next() {
            switch word {
            case "machine", "default":
                try close(entry)
                entry = (word == "default" ? nil : try words.value(of: word).lowercased(), Login())
            case "login", "password", "account":
                let value = try words.value(of: word)
                guard entry != nil else { throw Self.fault(words.line, "has a \(word) before the first machine") }
                if word == "login" { entry?.login.user = value }
                if word == "password" { entry?.login.password = value }
            case "macdef": words.skipMacro()
            default:
                throw Self.fault(words.line, "has a word that is not machine, default, login, password or account")
            }
        }
        try close(entry)
        guard !machines.isEmpty || fallback != nil else {
            throw FieldError(field: "netrc", message: "names no machine")
        }
    }

    private mutating func close(_ entry: (machine: String?, login: Login)?) throws(FieldError) {
        guard let entry else { return }
        guard let name = entry.machine else {
            if fallback == nil { fallback = entry.login }
            return
        }
        // An IPv6 address is in brackets in a URL.
        let isAddress = name.utf8.count { $0 == UInt8(ascii: ":") } > 1 && name.utf8.first != UInt8(ascii: "[")
        let key = isAddress ? "[\(name)]" : name
        if machines[key] == nil { machines[key] = entry.login }
        guard machines.count <= Self.maximumMachines else {
            throw FieldError(field: "netrc", message: "must name at most \(Self.maximumMachines) machines")
        }
    }

    fileprivate static func fault(_ line: Int, _ words: String) -> FieldError {
        FieldError(field: "netrc", message: "line \(line) \(words)")
    }

    /// Returns the login of a server that is named.
    ///
    /// - Parameter host: the host in lower case, an IPv6 address in brackets.
    public func login(forHost host: String, port: Int) -> Login? { machines["\(host):\(port)"] ?? machines[host] }
}

/// The words of a netrc file.
private struct NetrcWords {
    private var rest: Substring.UTF8View
    private(set) var line = 1

    init(_ text: Substring.UTF8View) { rest = text }

    private static func isBlank(_ byte: UInt8) -> Bool { byte <= 0x20 }

    private mutating func skip() -> UInt8? {
        guard let byte = rest.popFirst() else { return nil }
        if byte == UInt8(ascii: "\n") { line += 1 }
        return byte
    }

    private mutating func skipBlanksAndComments() {
        while let byte = rest.first {
            if byte == UInt8(ascii: "#") {
                while let byte = rest.first, byte != UInt8(ascii: "\n") { _ = skip() }
            } else if Self.isBlank(byte) {
                _ = skip()
            } else {
                return
            }
        }
    }

    /// Returns the next word; `nil` at the end.
    mutating func next() -> String? {
        skipBlanksAndComments()
        return rest.isEmpty ? nil : word()
    }

    /// Returns the next word as the value of `name`. It may begin with `#`.
    mutating func value(of name: String) throws(FieldError) -> String {
        while let byte = rest.first, Self.isBlank(byte) { _ = skip() }
        guard let value = rest.isEmpty ? nil : word(), !value.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw Netrc.fault(line, "has a \(name) without a value, or with a control character in it")
        }
        return value
    }

    private mutating func word() -> String {
        var bytes: [UInt8] = []
        guard rest.first == UInt8(ascii: "\"") else {
            while let byte = rest.first, !Self.isBlank(byte), let byte = skip() { bytes.append(byte) }
            return String(decoding: bytes, as: UTF8.self)
        }
        _ = skip()
        while let byte = skip(), byte != UInt8(ascii: "\"") {
            let isEscape = byte == UInt8(ascii: "\\")
            if let escaped = isEscape ? skip() : byte { bytes.append(escaped) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Skips the name of a macro and its lines, which end at an empty one.
    mutating func skipMacro() {
        var isEmpty = false
        while let byte = skip() {
            if byte == UInt8(ascii: "\n") {
                if isEmpty { return }
                isEmpty = true
            } else if byte != UInt8(ascii: "\r") {
                isEmpty = false
            }
        }
    }
}
