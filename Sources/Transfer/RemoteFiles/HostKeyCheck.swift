/// Judges the key of one SSH server, over the connections that it may take to be shown the right one.
///
/// A server has several keys and shows one, of a type that both sides agree on: where that is not the one that is
/// trusted, the next connection asks for another type. That is no weakness: whatever it shows is judged.
struct HostKeyCheck {
    private enum Trust {
        case knownHosts([(hosts: KnownHosts, path: String)])
        case fingerprint(String)
    }

    private let trust: Trust
    private let server: String
    /// For the next connection, and for those after it.
    private var wishes: [Wish]
    /// Why the newest key that was shown was refused.
    private(set) var refusal: TransferError?
    /// Another key of the server may be the one.
    private var mayHaveAnother = true

    /// - Parameters:
    ///   - files: what the policy's files hold, in their order; empty where there is none.
    ///   - host: IPv6 without brackets.
    init(_ policy: HostKeyPolicy?, files: [[UInt8]], host: String, port: Int) throws(TransferError) {
        server = port == 22 ? host : "[\(host)]:\(port)"
        switch policy {
        case nil:
            throw TransferError(
                .hostKey, "no policy says which host key \(server) must have: set `hostKeys` to a known_hosts or a key")
        case .fingerprint(let text):
            let digest = text.hasPrefix("SHA256:") ? text.dropFirst(7) : text[...]
            let plain = digest.prefix { $0 != "=" }
            // 32 bytes are 43 digits of base64.
            guard plain.utf8.count == 43, digest.drop(while: { $0 != "=" }).utf8.count <= 1 else {
                throw TransferError(
                    .hostKey, "the fingerprint for \(server) is no SHA-256 in base64, as ssh-keygen -l prints it")
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
            // A host that is not known is asked all the same: its key is what the refusal tells.
            wishes = known.isEmpty ? [.any] : known.map { .type($0) }
        }
    }

    /// What to ask for in a connection.
    enum Wish: Equatable {
        case any
        case type(String)
    }

    /// Whether another connection may be shown the right key.
    var hasNext: Bool { mayHaveAnother && !wishes.isEmpty }

    /// - Returns: what to ask for in the next connection; `nil` where there is no use in another.
    mutating func next() -> Wish? {
        hasNext ? wishes.removeFirst() : nil
    }

    /// A `known_hosts` that has libssh2 ask for keys of `type`, and says nothing of which: that is ours to judge.
    static func wish(for type: String, host: String) -> [UInt8] {
        Array("\(host) \(type) \(String(repeating: "A", count: 64))\n".utf8)
    }

    /// Why there is no key to judge, where server and machine agreed on none; `nil` where any would have done.
    var unmet: TransferError? {
        guard refusal == nil, case .knownHosts(let lists) = trust else { return nil }
        let speaking = lists.filter { !$0.hosts.types.isEmpty }
        guard !speaking.isEmpty else { return nil }
        let types = Set(speaking.flatMap(\.hosts.types)).sorted().joined(separator: ", ")
        let path = Self.names(of: speaking)
        return TransferError(
            .hostKey,
            "\(path) knows \(server) by \(types) alone, which it does not show or this machine's libssh2 does not know: "
                + "compare what ssh-keyscan prints with what the server's administrator says, and add that line")
    }

    /// - Returns: whether the server is the one.
    mutating func judge(_ bytes: [UInt8]) -> Bool {
        guard let key = HostKey(bytes) else {
            refusal = TransferError(.hostKey, "\(server) shows a host key of no known form")
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
        case .knownHosts(let lists): return judge(key, shown, lists)
        }
        return false
    }

    private mutating func judge(
        _ key: HostKey, _ shown: String, _ lists: [(hosts: KnownHosts, path: String)]
    ) -> Bool {
        let verdicts = lists.map { (verdict: $0.hosts.judge(key), path: $0.path) }
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
                    + "server has a new key, or someone else answers in its place")
            return false
        }
        refusal = TransferError(
            .hostKey,
            "the host key of \(server), \(shown), is not in \(Self.names(of: lists)): compare it with what the "
                + "server's administrator says, then add the line that ssh-keyscan prints")
        return false
    }

    private static func names(of lists: [(hosts: KnownHosts, path: String)]) -> String {
        lists.map(\.path).joined(separator: " or ")
    }
}
