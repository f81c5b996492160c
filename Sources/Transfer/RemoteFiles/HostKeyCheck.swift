/// A check of one SSH server's host key. It may take several connections until the server presents the trusted key.
///
/// A server has several keys and presents one, of a type that both sides negotiate. If it is not the trusted one, the
/// next connection requests another type. This does not weaken the check, because every presented key is validated.
struct HostKeyCheck {
    private enum Trust {
        case knownHosts([(hosts: KnownHosts, path: String)])
        case fingerprint(String)
    }

    private let trust: Trust
    private let server: String
    /// The key types to request in the following connections, in order.
    private var wishes: [Wish]
    /// The reason for refusing the most recent key.
    private(set) var refusal: TransferError?
    /// Whether another key of the server may be the trusted one.
    private var mayHaveAnother = true

    /// Creates a check.
    ///
    /// - Parameters:
    ///   - files: The contents of the policy's files, in their order; empty for a missing file.
    ///   - host: The host name or address, IPv6 without brackets.
    ///   - port: The port of the server.
    init(_ policy: HostKeyPolicy?, files: [[UInt8]], host: String, port: Int) throws(TransferError) {
        server = port == 22 ? host : "[\(host)]:\(port)"
        switch policy {
        case nil:
            throw TransferError(
                .hostKey, "no policy defines the host key of \(server): set \"hostKeys\" to a known_hosts or a key")
        case .fingerprint(let text):
            let digest = text.hasPrefix("SHA256:") ? text.dropFirst(7) : text[...]
            let plain = digest.prefix { $0 != "=" }
            // A digest of 32 bytes has 43 base64 digits.
            guard plain.utf8.count == 43, digest.drop(while: { $0 != "=" }).utf8.count <= 1 else {
                throw TransferError(
                    .hostKey, "the fingerprint for \(server) is not a SHA-256 in base64, as ssh-keygen -l prints it")
            }
            trust = .fingerprint(String(plain))
            wishes = [.any] + HostKey.types.map { .type($0) }
        case .knownHosts, .knownHostsFiles:
            let lists = zip(files, policy?.files ?? []).map {
                (hosts: KnownHosts($0, host: host, port: port), path: $1)
            }
            trust = .knownHosts(lists)
            let types = Set(lists.flatMap(\.hosts.types))
            let known = HostKey.types.filter(types.contains)
            // An unknown host is contacted all the same, because the refusal reports its key.
            wishes = known.isEmpty ? [.any] : known.map { .type($0) }
        }
    }

    /// The key type to request in a connection.
    enum Wish: Equatable {
        case any
        case type(String)
    }

    /// Whether another connection may present the trusted key.
    var hasNext: Bool { mayHaveAnother && !wishes.isEmpty }

    /// Returns the key type to request in the next connection; `nil` if no further connection is useful.
    mutating func next() -> Wish? {
        hasNext ? wishes.removeFirst() : nil
    }

    /// Returns a `known_hosts` line that makes libssh2 request keys of `type`. Its key is a dummy, because
    /// ``evaluate(_:)`` validates the key.
    static func wish(for type: String, host: String) -> [UInt8] {
        Array("\(host) \(type) \(String(repeating: "A", count: 64))\n".utf8)
    }

    /// The reason why there is no key to check, if server and client agreed on no key type; `nil` if any type was
    /// acceptable.
    var unmet: TransferError? {
        guard refusal == nil, case .knownHosts(let lists) = trust else { return nil }
        let speaking = lists.filter { !$0.hosts.types.isEmpty }
        guard !speaking.isEmpty else { return nil }
        let types = Set(speaking.flatMap(\.hosts.types)).sorted().joined(separator: ", ")
        let path = Self.names(of: speaking)
        return TransferError(
            .hostKey,
            "\(path) has only \(types) for \(server), which it does not offer or this machine's libssh2 does not "
                + "support: verify the output of ssh-keyscan with the server's administrator, then add it")
    }

    /// Returns whether the server's key is trusted, and records the refusal if it is not.
    mutating func evaluate(_ bytes: [UInt8]) -> Bool {
        guard let key = HostKey(bytes) else {
            refusal = TransferError(.hostKey, "\(server) sent a host key of an unknown format")
            return false
        }
        wishes.removeAll { $0 == .type(key.type) }
        let shown = "\(key.type) SHA256:\(key.fingerprint)"
        switch trust {
        case .fingerprint(let wanted):
            if key.fingerprint == wanted { return true }
            refusal = TransferError(
                .hostKey, "\(server) does not have the host key SHA256:\(wanted), but \(shown): is it the right server?"
            )
        case .knownHosts(let lists): return evaluate(key, shown, lists)
        }
        return false
    }

    private mutating func evaluate(
        _ key: HostKey, _ shown: String, _ lists: [(hosts: KnownHosts, path: String)]
    ) -> Bool {
        let verdicts = lists.map { (verdict: $0.hosts.evaluate(key), path: $0.path) }
        for case (.revoked(let line), let path) in verdicts {
            mayHaveAnother = false
            refusal = TransferError(
                .hostKey, "the host key of \(server), \(shown), is revoked by line \(line) of \(path)")
            return false
        }
        if verdicts.contains(where: { $0.verdict == .trusted }) { return true }
        for case (.changed(let line), let path) in verdicts {
            mayHaveAnother = false
            refusal = TransferError(
                .hostKey,
                "the host key of \(server) is \(shown), and not the one in line \(line) of \(path): either the "
                    + "server has a new key, or another machine answers in its place")
            return false
        }
        refusal = TransferError(
            .hostKey,
            "the host key of \(server), \(shown), is not in \(Self.names(of: lists)): verify it with the "
                + "server's administrator, then add the line that ssh-keyscan prints")
        return false
    }

    private static func names(of lists: [(hosts: KnownHosts, path: String)]) -> String {
        lists.map(\.path).joined(separator: " or ")
    }
}
