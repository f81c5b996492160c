import Crypto
import FoundationEssentials

/// What a `known_hosts` file says (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT").
struct KnownHosts {
    /// Bytes of a file.
    static let maximumSize = 4 << 20

    enum Verdict: Equatable {
        case trusted
        /// The file says nothing of this host.
        case unknown
        /// The file has keys of other types for this host.
        case otherTypes
        /// The file has another key of this type for this host, in this line.
        case changed(line: Int)
        case revoked(line: Int)
    }

    private struct Entry {
        var line: Int
        var isRevoked: Bool
        var type: String
        var key: [UInt8]
    }

    /// Those that are about the host.
    private var entries: [Entry] = []

    /// - Parameters:
    ///   - file: what it holds. Lines that cannot be read say nothing, as OpenSSH has it.
    ///   - host: whom to look for: a name in lower case or an address, IPv6 without brackets.
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

    func judge(_ key: HostKey) -> Verdict {
        if let entry = entries.first(where: { $0.isRevoked && $0.key == key.bytes }) {
            return .revoked(line: entry.line)
        }
        let trusted = entries.filter { !$0.isRevoked }
        if trusted.contains(where: { $0.key == key.bytes }) { return .trusted }
        if let other = trusted.first(where: { $0.type == key.type }) { return .changed(line: other.line) }
        return trusted.isEmpty ? .unknown : .otherTypes
    }

    /// The types of the keys that it has for the host.
    var types: Set<String> { Set(entries.filter { !$0.isRevoked }.map(\.type)) }

    // MARK: Names

    private static func matches(_ hosts: ArraySlice<UInt8>, _ name: String) -> Bool {
        if hosts.starts(with: "|1|".utf8) { return matchesHash(hosts, name) }
        var isMatched = false
        for pattern in hosts.split(separator: UInt8(ascii: ",")) {
            let isNegated = pattern.first == UInt8(ascii: "!")
            let pattern = (isNegated ? pattern.dropFirst() : pattern).map(lowercase)
            guard matches(pattern[...], Array(name.utf8)[...]) else { continue }
            // One that says no outweighs all that say yes.
            if isNegated { return false }
            isMatched = true
        }
        return isMatched
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// `*` stands for any number of characters, `?` for one.
    private static func matches(_ pattern: ArraySlice<UInt8>, _ name: ArraySlice<UInt8>) -> Bool {
        var (pattern, name) = (pattern, name)
        /// Where to go on when what follows the last asterisk turns out not to fit.
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

    /// `|1|salt|HMAC-SHA1 of the name`, both in base64.
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
