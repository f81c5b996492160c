import FoundationEssentials
import Glibc

/// An sshd on a free loopback port that serves only SFTP, for the user who runs the tests.
///
/// Its paths are those of the machine; ``url(_:host:)`` returns URLs below ``root``. libssh2 1.10 supports Ed25519 and
/// ECDSA keys for host and client. It uses RSA only with SHA-1 (`ssh-rsa`), which sshd refuses by default; see
/// `allowingSHA1`. A locked account (`passwd -l`) cannot log in.
package final class SFTPServer: Sendable {
    package enum KeyType: String, Sendable, CaseIterable {
        case ed25519, rsa
    }

    /// The paths of a private key and its public key, as written by ssh-keygen.
    package struct KeyPair: Sendable {
        package let privateKey: String
        package let publicKey: String
        package let type: KeyType

        /// The key type and the base64 key, as in `authorized_keys` and `known_hosts`, without a comment.
        package var line: String { textOfFile(at: publicKey).split(separator: " ").prefix(2).joined(separator: " ") }
    }

    package let port: Int
    /// The name of the account.
    package let user: String
    /// The directory of files to download and of uploads.
    package let root: String
    package let hostKeys: [KeyPair]
    /// An authorised key of ``user``, like ``encryptedClientKey`` and ``rsaClientKey``.
    package let clientKey: KeyPair
    /// An authorised key encrypted with ``passphrase``.
    package let encryptedClientKey: KeyPair
    /// An authorised key in OpenSSH's own format. libssh2 1.10 can use it only with `allowingSHA1`.
    package let rsaClientKey: KeyPair
    /// A key that is neither authorised for login nor a host key.
    package let strangerKey: KeyPair
    package let passphrase = "open sesame"
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - hostKeys: the types of the server's host keys.
    ///   - allowingSHA1: whether `ssh-rsa` is accepted for the host and for clients.
    ///   - login: a temporary user who logs in by password, in place of ``user``; the keys then give no access. Only
    ///     the server sees the account. Requires root.
    ///   - wanted: the port of an earlier server; `nil` for a free port.
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
        // The privilege separation directory, which sshd requires when it is started by root.
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
        // sshd executes itself again for each connection and requires an absolute path for that.
        var command = ["/usr/sbin/sshd", "-D", "-e", "-f", file, "-p", String(port)]
        if let login {
            command =
                try await privateAccount(login.user, password: login.password, home: root, in: directory) + command
        }
        process = try await ServerProcess("sshd", command, port: port)
    }

    deinit { process.end() }

    /// Ends the server and its connections, and frees its port.
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

    /// Returns the URL of `path`, which begins with a slash, below ``root``.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "sftp://\(host):\(port)\(root)\(path)" }

    /// Breaks all current connections; the server continues to accept new ones.
    package func cutConnections() { process.cutConnections() }

    /// Creates a file below the root.
    package func publish(_ resource: Resource, as name: String) throws {
        try resource.write(to: "\(root)/\(name)")
    }

    /// Suspends the server with all its connections open.
    package func freeze() { process.signalAll(SIGSTOP) }

    /// Continues the suspended server.
    package func thaw() { process.signalAll(SIGCONT) }

    /// The log of sshd so far, including who logged in and with which key.
    package var log: String { process.child.standardError }

    /// Returns the fingerprint for `--hostpubsha256` and `CURLOPT_SSH_HOST_PUBLIC_KEY_SHA256`: base64 without padding
    /// and without a prefix.
    package func sha256(of key: KeyPair) async throws -> String {
        try await fingerprint(of: key, "sha256", prefix: "SHA256:")
    }

    /// Returns the fingerprint for `--hostpubmd5` and `CURLOPT_SSH_HOST_PUBLIC_KEY_MD5`: 32 hexadecimal digits.
    package func md5(of key: KeyPair) async throws -> String {
        try await fingerprint(of: key, "md5", prefix: "MD5:").replacing(":", with: "")
    }

    private func fingerprint(of key: KeyPair, _ digest: String, prefix: String) async throws -> String {
        let words = try await Self.keygen(["-l", "-E", digest, "-f", key.publicKey]).split(separator: " ")
        guard words.count > 1, words[1].hasPrefix(prefix) else { throw Unusable(reason: "ssh-keygen -l: \(words)") }
        return String(words[1].dropFirst(prefix.count))
    }

    /// Writes a `known_hosts` file with these keys for this server, by address and by name.
    ///
    /// libcurl requests a host key of the type of the *first* matching line. If that is `ssh-rsa` and `allowingSHA1` is
    /// not set, client and server find no common algorithm (`CURLE_FAILED_INIT`, 2).
    ///
    /// - Returns: the path of a home directory that contains the file as `.ssh/known_hosts`.
    package func makeHome(knowing keys: [KeyPair], port: Int? = nil) throws -> String {
        let port = port ?? self.port
        let home = "home-\(keys.map { $0.privateKey.split(separator: "/").last ?? "" }.joined(separator: "-"))"
        try directory.makeDirectory("\(home)/.ssh")
        let lines = keys.map { "[127.0.0.1]:\(port),[localhost]:\(port) \($0.line)\n" }
        try directory.write(lines.joined(), to: "\(home)/.ssh/known_hosts")
        return directory.file(home)
    }
}
