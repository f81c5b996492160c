import FoundationEssentials
import Glibc

/// A vsftpd on a free loopback port, serving its own directory.
///
/// As root it confines each session to that directory. As another user it cannot: relative paths (`ftp://host/name`)
/// have the same meaning there, but `ftp://host//name` refers to the root of the machine.
package final class Vsftpd: Sendable {
    /// The accounts that can log in.
    package enum Login: Sendable {
        /// The users `anonymous` and `ftp`, with any password or only with this one.
        case anonymous(password: String? = nil)
        /// A temporary user account that only the server sees, through its own mount namespace. Requires root.
        case user(String, password: String)
    }

    package enum Security: Sendable {
        case plain
        /// TLS that the client must request (`AUTH TLS`, RFC 4217) before it logs in.
        case explicit(TestCertificates.Identity)
        /// TLS from the first byte (`ftps`).
        case implicit(TestCertificates.Identity)
    }

    package let port: Int
    /// The directory in which a session starts. Nothing in it is writable except ``uploads``.
    package let root: String
    /// The directory `upload` below the root, where a session may create, rename and delete files.
    package let uploads: String
    private let scheme: String
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// Starts the server.
    ///
    /// - Parameter allowingTLS13: whether TLS 1.3 is allowed; otherwise TLS 1.2 is the maximum. In TLS 1.3 the server
    ///   sends session tickets after the handshake. libcurl 7.88 closes an upload's data connection without reading
    ///   them, so the kernel sends RST and vsftpd loses its unread data: most uploads fail with 426.
    /// - Parameter bytesPerSecond: the rate limit of each connection of an anonymous session; `nil` for no limit.
    /// - Throws: ``Unusable`` if vsftpd is missing, or a user is requested and this process may not mount.
    package init(
        login: Login = .anonymous(), security: Security = .plain, allowingTLS13: Bool = false,
        bytesPerSecond: Int? = nil
    ) async throws {
        directory = try TemporaryDirectory(mode: 0o755)
        root = try directory.makeDirectory("root")
        uploads = try directory.makeDirectory("root/upload")
        let empty = try directory.makeDirectory("empty")
        port = try FreePort.next()
        for place in [root, empty] where chmod(place, 0o755) != 0 { throw SystemError("chmod \(place)") }
        guard chmod(uploads, 0o777) == 0 else { throw SystemError("chmod \(uploads)") }

        var settings = [
            "listen=YES", "listen_address=127.0.0.1", "listen_port=\(port)", "background=NO",
            // These ports are below the range for outgoing connections; see FreePort.
            "pasv_min_port=20000", "pasv_max_port=31999",
            "write_enable=YES", "seccomp_sandbox=NO", "isolate=NO", "isolate_network=NO",
            "secure_chroot_dir=\(empty)", "run_as_launching_user=\(geteuid() == 0 ? "NO" : "YES")",
            "xferlog_enable=YES", "log_ftp_protocol=YES", "vsftpd_log_file=\(directory.file("log"))",
        ]
        if let bytesPerSecond { settings.append("anon_max_rate=\(bytesPerSecond)") }
        let file = directory.file("vsftpd.conf")
        // vsftpd writes its error messages to descriptor 0.
        var command = ["sh", "-c", #"exec "$@" 0>&2"#, "sh", "vsftpd", file]
        switch login {
        case .anonymous(let password):
            settings += try Self.anonymous(root: root, password: password, in: directory)
        case .user(let name, let password):
            settings += Self.local
            command = try await privateAccount(name, password: password, home: root, in: directory) + command
        }
        switch security {
        case .plain:
            scheme = "ftp"
        case .explicit(let identity):
            scheme = "ftp"
            settings += Self.tls(identity)
        case .implicit(let identity):
            scheme = "ftps"
            settings += Self.tls(identity) + ["implicit_ssl=YES"]
        }
        if !allowingTLS13 {
            // vsftpd has no such setting, but OpenSSL does (config(5ssl), "SSL Configuration").
            let limits = """
                openssl_conf = all
                [all]
                ssl_conf = tls
                [tls]
                system_default = limits
                [limits]
                MaxProtocol = TLSv1.2

                """
            command = ["env", "OPENSSL_CONF=\(try directory.write(limits, to: "openssl.cnf"))"] + command
        }
        try directory.write(settings.joined(separator: "\n") + "\n", to: "vsftpd.conf")
        process = try await ServerProcess("vsftpd", command, port: port)
    }

    deinit { process.end() }

    private static func anonymous(
        root: String, password: String?, in directory: TemporaryDirectory
    ) throws -> [String] {
        var settings = [
            "anonymous_enable=YES", "local_enable=NO", "anon_root=\(root)", "anon_umask=022",
            "anon_upload_enable=YES", "anon_mkdir_write_enable=YES", "anon_other_write_enable=YES",
            "anon_world_readable_only=NO",
        ]
        if let password {
            let list = try directory.write("\(password)\n", to: "passwords")
            settings += ["secure_email_list_enable=YES", "email_password_file=\(list)"]
        }
        return settings
    }

    private static let local = [
        "anonymous_enable=NO", "local_enable=YES", "local_umask=022", "chroot_local_user=YES",
        "pam_service_name=vsftpd", "session_support=NO",
    ]

    /// Returns the TLS settings. The certificate has an elliptic-curve key, and vsftpd's default ciphers are for RSA.
    /// Few clients reuse the control connection's TLS session for data connections, so reuse is not required.
    private static func tls(_ identity: TestCertificates.Identity) -> [String] {
        [
            "ssl_enable=YES", "allow_anon_ssl=YES", "force_anon_logins_ssl=YES", "force_anon_data_ssl=YES",
            "force_local_logins_ssl=YES", "force_local_data_ssl=YES", "require_ssl_reuse=NO", "ssl_request_cert=NO",
            "ssl_ciphers=HIGH", "rsa_cert_file=\(identity.chain.path)",
            "rsa_private_key_file=\(identity.key.path)",
        ]
    }

    /// - Parameter host: the host name, such as `localhost` when it must match the certificate.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "\(scheme)://\(host):\(port)\(path)" }

    /// Creates a file in the root or below it.
    package func publish(_ resource: Resource, as name: String) throws {
        try resource.write(to: "\(root)/\(name)")
        guard chmod("\(root)/\(name)", 0o644) == 0 else { throw SystemError("chmod \(name)") }
    }

    /// The commands received so far, in order, such as `RETR file`. A password is shown as `<password>`.
    package var commands: [String] {
        tails(of: textOfFile(at: directory.file("log")), behind: #"FTP command: Client "127.0.0.1", ""#)
            .map { String($0.dropLast()) }
    }
}
