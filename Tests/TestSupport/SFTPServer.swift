import FoundationEssentials
import Glibc

/// A real sshd on a free loopback port that does nothing but SFTP, for the user whom the tests run as.
///
/// Its paths are the machine's; ``url(_:host:)`` leads beneath ``root``. What libssh2 1.10 can do with it:
/// keys on Ed25519 and ECDSA, the host's and the client's. It signs and verifies with RSA only by SHA-1 (`ssh-rsa`),
/// which sshd refuses unless told otherwise; see `allowingSHA1`. An account that is locked (`passwd -l`) gets no
/// entry.
package final class SFTPServer: Sendable {
    package enum KeyType: String, Sendable, CaseIterable {
        case ed25519, rsa
    }

    /// A key and its public half, as ssh-keygen writes them.
    package struct KeyPair: Sendable {
        package let privateKey: String
        package let publicKey: String
        package let type: KeyType

        /// The type and the key in base64, as in `authorized_keys` and `known_hosts`, without a comment.
        package var line: String { textOfFile(at: publicKey).split(separator: " ").prefix(2).joined(separator: " ") }
    }

    package let port: Int
    /// The account's name.
    package let user: String
    /// Files to download, and room for uploads.
    package let root: String
    package let hostKeys: [KeyPair]
    /// Lets ``user`` in, as do ``encryptedClientKey`` and ``rsaClientKey``.
    package let clientKey: KeyPair
    /// Under ``passphrase``.
    package let encryptedClientKey: KeyPair
    /// In OpenSSH's own format; of use with `allowingSHA1` to libssh2 1.10.
    package let rsaClientKey: KeyPair
    /// Lets nobody in, and is no host's.
    package let strangerKey: KeyPair
    package let passphrase = "open sesame"
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// - Parameters:
    ///   - hostKeys: what the server proves itself by.
    ///   - allowingSHA1: whether `ssh-rsa` is taken, for the host and for clients.
    ///   - login: a user of the machine who is made up and enters by a password, in the place of ``user``; the keys let
    ///     nobody in then. Only the server sees the account. Needs root.
    ///   - wanted: where another server was; absent: a free port.
    package init(
        hostKeys: [KeyType] = KeyType.allCases, allowingSHA1: Bool = false,
        login: (user: String, password: String)? = nil, port wanted: Int? = nil
    ) async throws {
        directory = try TemporaryDirectory(mode: login == nil ? 0o700 : 0o755)
        root = try directory.makeDirectory("root")
        port = try wanted ?? FreePort.next()
        guard let account = getpwuid(geteuid()) else { throw Unusable(reason: "user \(geteuid()) has no name") }
        user = login?.user ?? String(cString: account.pointee.pw_name)
        if login != nil, chmod(root, 0o755) != 0 { throw SystemError("chmod \(root)") }
        // Where sshd, started by root, locks up the half of it that talks to strangers.
        if geteuid() == 0, mkdir("/run/sshd", 0o755) != 0, errno != EEXIST { throw SystemError("mkdir /run/sshd") }

        var keys: [KeyPair] = []
        for type in hostKeys { keys.append(try await Self.makeKey("host-\(type.rawValue)", type, in: directory)) }
        self.hostKeys = keys
        clientKey = try await Self.makeKey("client", .ed25519, in: directory)
        encryptedClientKey = try await Self.makeKey("encrypted", .ed25519, passphrase: passphrase, in: directory)
        rsaClientKey = try await Self.makeKey("client-rsa", .rsa, in: directory)
        strangerKey = try await Self.makeKey("stranger", .ed25519, in: directory)
        let authorized = [clientKey, encryptedClientKey, rsaClientKey].map { $0.line + "\n" }.joined()
        let algorithms = "HostKeyAlgorithms +ssh-rsa\nPubkeyAcceptedAlgorithms +ssh-rsa"
        let configuration = """
            ListenAddress 127.0.0.1
            \(keys.map { "HostKey \($0.privateKey)" }.joined(separator: "\n"))
            \(allowingSHA1 ? algorithms : "")
            PidFile none
            AuthorizedKeysFile \(try directory.write(authorized, to: "authorized_keys"))
            PubkeyAuthentication yes
            PasswordAuthentication \(login == nil ? "no" : "yes")
            KbdInteractiveAuthentication no
            PermitRootLogin prohibit-password
            StrictModes no
            UsePAM no
            MaxStartups 200
            LogLevel VERBOSE
            Subsystem sftp internal-sftp
            ForceCommand internal-sftp

            """
        let file = try directory.write(configuration, to: "sshd_config")
        // It starts itself anew for each connection, and insists on an absolute path for that.
        var command = ["/usr/sbin/sshd", "-D", "-e", "-f", file, "-p", String(port)]
        if let login {
            command =
                try await privateAccount(login.user, password: login.password, home: root, in: directory) + command
        }
        process = try await ServerProcess("sshd", command, port: port)
    }

    deinit { process.end() }

    /// Ends the server and its connections; its port is free for another.
    package func stop() { process.end() }

    private static func makeKey(
        _ name: String, _ type: KeyType, passphrase: String = "", in directory: TemporaryDirectory
    ) async throws -> KeyPair {
        let key = directory.file(name)
        let size = type == .rsa ? ["-b", "2048"] : []
        try await keygen(["-q", "-t", type.rawValue, "-N", passphrase, "-C", "", "-f", key] + size)
        return KeyPair(privateKey: key, publicKey: "\(key).pub", type: type)
    }

    @discardableResult
    private static func keygen(_ arguments: [String]) async throws -> String {
        let outcome = try await run(["ssh-keygen"] + arguments)
        guard outcome.succeeded else { throw Unusable(reason: "ssh-keygen: \(outcome.error)") }
        return outcome.output
    }

    /// The URL of what lies at `path`, which begins with a slash, beneath ``root``.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "sftp://\(host):\(port)\(root)\(path)" }

    /// All connections that there are break; the server takes new ones.
    package func cutConnections() { process.cutConnections() }

    /// Puts a file beneath the root.
    package func publish(_ resource: Resource, as name: String) throws {
        try resource.write(to: "\(root)/\(name)")
    }

    /// Has it stand still, with all connections open.
    package func freeze() { process.signalAll(SIGSTOP) }

    /// Has it go on.
    package func thaw() { process.signalAll(SIGCONT) }

    /// What sshd said so far: who came, with which key.
    package var log: String { process.child.standardError }

    /// The fingerprint that `--hostpubsha256` and `CURLOPT_SSH_HOST_PUBLIC_KEY_SHA256` take: base64, here
    /// without its padding, and no prefix.
    package func sha256(of key: KeyPair) async throws -> String {
        try await fingerprint(of: key, "sha256", prefix: "SHA256:")
    }

    /// The fingerprint that `--hostpubmd5` and `CURLOPT_SSH_HOST_PUBLIC_KEY_MD5` take: 32 hexadecimal digits.
    package func md5(of key: KeyPair) async throws -> String {
        try await fingerprint(of: key, "md5", prefix: "MD5:").replacing(":", with: "")
    }

    private func fingerprint(of key: KeyPair, _ digest: String, prefix: String) async throws -> String {
        let words = try await Self.keygen(["-l", "-E", digest, "-f", key.publicKey]).split(separator: " ")
        guard words.count > 1, words[1].hasPrefix(prefix) else { throw Unusable(reason: "ssh-keygen -l: \(words)") }
        return String(words[1].dropFirst(prefix.count))
    }

    /// Writes a `known_hosts` that says of this server, by address and by name, that these are its keys.
    ///
    /// libcurl asks the server for a key of the type of the *first* line that fits. With `ssh-rsa` there, and
    /// `allowingSHA1` not given, the two find no algorithm in common (`CURLE_FAILED_INIT`, 2).
    ///
    /// - Returns: the path of a home directory; the file is `.ssh/known_hosts` in it.
    package func makeHome(knowing keys: [KeyPair], port: Int? = nil) throws -> String {
        let port = port ?? self.port
        let home = "home-\(keys.map { $0.privateKey.split(separator: "/").last ?? "" }.joined(separator: "-"))"
        try directory.makeDirectory("\(home)/.ssh")
        let lines = keys.map { "[127.0.0.1]:\(port),[localhost]:\(port) \($0.line)\n" }
        try directory.write(lines.joined(), to: "\(home)/.ssh/known_hosts")
        return directory.file(home)
    }
}
