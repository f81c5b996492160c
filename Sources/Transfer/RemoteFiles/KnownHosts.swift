import Crypto
import FoundationEssentials

/// The entries of a `known_hosts` file for one host (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT").
struct KnownHosts {
    /// The maximum size of a file, in bytes.
    static let maximumSize = 4 << 20

    enum Verdict: Equatable {
        case trusted
        /// The file has no entry for this host.
        case unknown
        /// The file has only keys of other types for this host.
        case otherTypes
        /// The file has a different key of this type for this host, in this line.
        case changed(line: Int)
        case revoked(line: Int)
    }

    private struct Entry {
        var line: Int
        var isRevoked: Bool
        var type: String
        var key: [UInt8]
    }

    /// The entries that match the host.
    private var entries: [Entry] = []

    /// Parses a file.
    ///
    /// - Parameters:
    ///   - file: The contents of the file. Like OpenSSH, the parser ignores invalid lines.
    ///   - host: The host to look up: a name in lower case or an address, IPv6 without brackets.
    ///   - port: The port of the server.
    init(_ file: [UInt8], host: String, port: Int) {
        let name = port == 22 ? host : "[\(host)]:\(port)"
        for (index, line) in file.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            if let entry = Self.entry(line, number: index + 1, name: name) { entries.append(entry) }
        }
    }

    private static func entry(_ line: ArraySlice<UInt8>, number: Int, name: String) -> Entry? {
        var words = line.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }[...]
        guard let first = words.first, first.first != UInt8(ascii: "#") else { return nil }
        var isRevoked = false
        if first.first == UInt8(ascii: "@") {
            guard first.elementsEqual("@revoked".utf8) else { return nil }
            isRevoked = true
            words.removeFirst()
        }
        guard words.count >= 3, let hosts = words.popFirst(), let type = words.popFirst(), let text = words.popFirst(),
            matches(hosts, name), let key = Data(base64Encoded: String(decoding: text, as: UTF8.self))
        else { return nil }
        return Entry(
            line: number, isRevoked: isRevoked, type: String(decoding: type, as: UTF8.self), key: Array(key))
    }

    func evaluate(_ key: HostKey) -> Verdict {
        if let entry = entries.first(where: { $0.isRevoked && $0.key == key.bytes }) {
            return .revoked(line: entry.line)
        }
        let trusted = entries.filter { !$0.isRevoked }
        if trusted.contains(where: { $0.key == key.bytes }) { return .trusted }
        if let other = trusted.first(where: { $0.type == key.type }) { return .changed(line: other.line) }
        return trusted.isEmpty ? .unknown : .otherTypes
    }

    /// The types of the host's keys, without revoked ones.
    var types: Set<String> { Set(entries.filter { !$0.isRevoked }.map(\.type)) }

    // MARK: Names

    private static func matches(_ hosts: ArraySlice<UInt8>, _ name: String) -> Bool {
        if hosts.starts(with: "|1|".utf8) { return matchesHash(hosts, name) }
        var isMatched = false
        for pattern in hosts.split(separator: UInt8(ascii: ",")) {
            let isNegated = pattern.first == UInt8(ascii: "!")
            let pattern = (isNegated ? pattern.dropFirst() : pattern).map(lowercase)
            guard matches(pattern[...], Array(name.utf8)[...]) else { continue }
            // A negated pattern that matches overrides all other patterns.
            if isNegated { return false }
            isMatched = true
        }
        return isMatched
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// Matches a pattern in which `*` stands for any number of characters and `?` for one.
    private static func matches(_ pattern: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>) -> Bool {
        var (pattern, name) = (pattern, name)
        /// The position to resume from if the text after the last asterisk does not match.
        var retreat: (pattern: ArraySlice<UInt8>, name: ArraySlice<UInt8>)?
        while true {
            if pattern.first == UInt8(ascii: "*") {
                pattern = pattern.dropFirst()
                retreat = (pattern, name)
            } else if let byte = name.first, let wanted = pattern.first, wanted == byte || wanted == UInt8(ascii: "?") {
                pattern = pattern.dropFirst()
                name = name.dropFirst()
            } else if name.isEmpty, pattern.isEmpty {
                return true
            } else if let last = retreat, !last.name.isEmpty {
                retreat = (last.pattern, last.name.dropFirst())
                (pattern, name) = (last.pattern, last.name.dropFirst())
            } else {
                return false
            }
        }
    }

    /// Matches a hashed host name: `|1|salt|HMAC-SHA1 of the name`, both in base64.
    private static func matchesHash(_ hosts: ArraySlice<UInt8>, _ name: String) -> Bool {
        let words = hosts.split(separator: UInt8(ascii: "|")).map { String(decoding: $0, as: UTF8.self) }
        guard words.count == 3, let salt = Data(base64Encoded: words[1]), let hash = Data(base64Encoded: words[2])
        else {
            return false
        }
        return HMAC<Insecure.SHA1>.isValidAuthenticationCode(
            hash, authenticating: Array(name.utf8), using: SymmetricKey(data: salt))
    }
}
