import FoundationEssentials
import Testing

@testable import Transfer

/// Returns a key of `type` in the wire format.
private func key(_ type: String, _ body: UInt8) -> HostKey? {
    HostKey([0, 0, 0, UInt8(type.utf8.count)] + Array(type.utf8) + [0, 0, 0, 4, body, body, body, body])
}

@Suite("Keys of SSH servers")
struct KnownHostsTests {
    private let ed25519: HostKey
    private let other: HostKey
    private let ecdsa: HostKey

    init() throws {
        ed25519 = try #require(key("ssh-ed25519", 1))
        other = try #require(key("ssh-ed25519", 2))
        ecdsa = try #require(key("ecdsa-sha2-nistp256", 3))
    }

    private func line(_ hosts: String, _ key: HostKey) -> String {
        "\(hosts) \(key.type) \(Data(key.bytes).base64EncodedString())\n"
    }

    private func verdict(_ file: String, _ key: HostKey, host: String = "a.test", port: Int = 22) -> KnownHosts.Verdict
    {
        KnownHosts(Array(file.utf8), host: host, port: port).evaluate(key)
    }

    @Test("a host is known by its name, one of several, a pattern, and not where a pattern says no")
    func names() {
        for hosts in ["a.test", "b.test,a.test", "*", "*.test", "?.test", "A.TEST", "!b.test,*.test", "a.*t*t"] {
            #expect(verdict(line(hosts, ed25519), ed25519) == .trusted, "\(hosts)")
        }
        for hosts in ["b.test", "a.test.org", "*.org", "??.test", "!a.test,*.test", "*.test,!a.*", "[a.test]:22", ""] {
            #expect(verdict(line(hosts, ed25519), ed25519) == .unknown, "\(hosts)")
        }
    }

    @Test("another port is another server")
    func ports() {
        #expect(verdict(line("[a.test]:2222", ed25519), ed25519, port: 2222) == .trusted)
        #expect(verdict(line("a.test", ed25519), ed25519, port: 2222) == .unknown)
        #expect(verdict(line("[a.test]:2222", ed25519), ed25519) == .unknown)
        #expect(verdict(line("[::1]:2222", ed25519), ed25519, host: "::1", port: 2222) == .trusted)
    }

    // The lines were made by `ssh-keygen -H` for a.test and [a.test]:2222; the fingerprint is from `ssh-keygen -l`.
    private static let hashedKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB/U9Aaus8hCjFZfRaUTi3J2CeGRSOmRw4Ww6yvRoBHQ"
    private static let hashedName = "|1|V4rmwD8KYco7UD108N/8qIRJeBI=|92PQ/oIesQ++pEp0k+x+cLeVnjA="
    private static let hashedPort = "|1|dqHg5I18Q/vW1kdB59+hDcvR4LA=|fiMpa+Kn5a7qCgPL/wv2le5ATRE="
    private static let fingerprint = "n2gU97hpp29HtBwgKK+DwIEcox5qi0kjxN7dnBaDkXk"

    @Test("a hashed name counts for that name and port alone")
    func hashed() throws {
        let text = try #require(Self.hashedKey.split(separator: " ").last)
        let bytes = try #require(Data(base64Encoded: String(text)))
        let key = try #require(HostKey(Array(bytes)))
        #expect(key.fingerprint == Self.fingerprint)
        let (name, port) = ("\(Self.hashedName) \(Self.hashedKey)", "\(Self.hashedPort) \(Self.hashedKey)")
        #expect(verdict(name, key) == .trusted)
        #expect(verdict(name, key, port: 2222) == .unknown)
        #expect(verdict(port, key, port: 2222) == .trusted)
        #expect(verdict(name, key, host: "b.test") == .unknown)
        #expect(verdict(line("|1|x|y", ed25519), ed25519) == .unknown)
        #expect(verdict(line("|1||", ed25519), ed25519) == .unknown)
    }

    @Test("another key of the same type is a changed one, one of another type is not")
    func changed() {
        let file = "# comment\n\n" + line("a.test", other)
        #expect(verdict(file, ed25519) == .changed(line: 3))
        #expect(verdict(file, ecdsa) == .otherTypes)
        #expect(verdict(file + line("a.test", ed25519), ed25519) == .trusted)
    }

    @Test("a revoked key is refused even where it is known")
    func revoked() {
        let file = line("a.test", ed25519) + "@revoked " + line("*", ed25519)
        #expect(verdict(file, ed25519) == .revoked(line: 2))
        #expect(verdict(file, other) == .changed(line: 1))
    }

    @Test("authorities, and lines that cannot be read, say nothing")
    func unreadable() {
        #expect(verdict("@cert-authority " + line("*", ed25519), ed25519) == .unknown)
        for text in ["a.test", "a.test ssh-ed25519", "a.test ssh-ed25519 !!", "\u{0}", "@", "a.test  ssh-ed25519\t\r"] {
            #expect(verdict(text + "\n", ed25519) == .unknown)
        }
        #expect(verdict(line("a.test", ed25519).replacing(" ", with: " \t "), ed25519) == .trusted)
        #expect(verdict(line("a.test", ed25519).replacing("\n", with: " who@where\r\n"), ed25519) == .trusted)
    }

    @Test("a pattern of many asterisks is judged in a moment")
    func patterns() {
        let hosts = String(repeating: "*a", count: 2000) + "b"
        #expect(verdict(line(hosts, ed25519), ed25519, host: String(repeating: "a", count: 4000)) == .unknown)
    }

    @Test(
        "what is no key is none",
        arguments: [[], [0, 0, 0], [0, 0, 0, 0], [255, 255, 255, 255, 1], [0, 0, 0, 1, 7]])
    func noKey(bytes: [UInt8]) {
        #expect(HostKey(bytes) == nil)
    }

    // MARK: Key checks

    private func check(_ policy: HostKeyPolicy?, _ file: String = "") throws -> HostKeyCheck {
        try HostKeyCheck(policy, files: [Array(file.utf8)], host: "a.test", port: 22)
    }

    @Test("without a policy nobody is trusted, and a fingerprint has to be one")
    func noPolicy() {
        for policy in [nil, .fingerprint(""), .fingerprint("MD5:ab"), .fingerprint("SHA256:abc")] as [HostKeyPolicy?] {
            #expect(throws: TransferError.self) { try check(policy) }
        }
    }

    /// Returns all key types that the check requests.
    private func wishes(_ check: HostKeyCheck) -> [HostKeyCheck.Wish] {
        var check = check
        var wishes: [HostKeyCheck.Wish] = []
        while let wish = check.next() { wishes.append(wish) }
        return wishes
    }

    @Test("the types that are known are asked for, the best first; of an unknown host any")
    func known() throws {
        let known = try check(.knownHosts(path: "/f"), line("a.test", ecdsa) + line("a.test", ed25519))
        #expect(wishes(known) == [.type("ssh-ed25519"), .type("ecdsa-sha2-nistp256")])
        var unknown = try check(.knownHosts(path: "/f"))
        #expect(wishes(unknown) == [.any])
        let isTrusted = unknown.evaluate(ed25519.bytes)
        #expect(!isTrusted)
        #expect(unknown.refusal?.message.contains(ed25519.fingerprint) == true)
        #expect(unknown.refusal?.message.contains("/f") == true)
    }

    @Test("a key that does not have the fingerprint lets the others be asked for, and is not shown again")
    func fingerprint() throws {
        let digest = ed25519.fingerprint
        for text in [digest, "SHA256:\(digest)", digest + "="] {
            var check = try check(.fingerprint(text))
            _ = check.next()
            let verdicts = [check.evaluate(ecdsa.bytes), check.evaluate(ed25519.bytes)]
            #expect(verdicts == [false, true])
            #expect(
                wishes(check) == ["ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"].map { .type($0) })
        }
    }

    @Test("a changed key ends it at once")
    func changedEnds() throws {
        var check = try check(.knownHosts(path: "/f"), line("a.test", other) + line("a.test", ecdsa))
        _ = check.next()
        let isTrusted = check.evaluate(ed25519.bytes)
        #expect(!isTrusted && !check.hasNext)
        #expect(check.refusal?.code == .hostKey)
    }

    @Test("of several files any may know a key, and any may revoke it")
    func severalFiles() throws {
        let policy = HostKeyPolicy.knownHostsFiles(["/user", "/system"])
        func verdict(_ user: String, _ system: String) throws -> (isTrusted: Bool, message: String?) {
            var check = try HostKeyCheck(
                policy, files: [Array(user.utf8), Array(system.utf8)], host: "a.test", port: 22)
            return (check.evaluate(ed25519.bytes), check.refusal?.message)
        }
        let (own, foreign) = (line("a.test", ed25519), line("a.test", other))
        for (user, system) in [(own, ""), ("", own), (own, foreign), (foreign, own)] {
            #expect(try verdict(user, system).isTrusted)
        }
        for (user, system) in [(own, "@revoked " + own), ("@revoked " + own, own)] {
            let (isTrusted, message) = try verdict(user, system)
            #expect(!isTrusted && message?.contains("revoked") == true)
        }
        #expect(try verdict("", foreign).message?.contains("line 1 of /system") == true)
        #expect(try verdict("", "").message?.contains("/user or /system") == true)
    }

    @Test("what is no key is refused")
    func garbage() throws {
        var check = try check(.knownHosts(path: "/f"), line("*", ed25519))
        let isTrusted = check.evaluate([1, 2, 3])
        #expect(!isTrusted && check.refusal != nil)
    }
}
