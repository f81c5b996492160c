import FoundationEssentials
import Glibc

/// A real vsftpd on a free loopback port, serving a directory of its own.
///
/// As root it locks each session into that directory. Another user's vsftpd cannot: paths that begin at the
/// session's start (`ftp://host/name`) mean the same there, but `ftp://host//name` reaches the machine's root.
package final class Vsftpd: Sendable {
    /// Who may enter.
    package enum Login: Sendable {
        /// `anonymous` or `ftp`, with any password or with this one alone.
        case anonymous(password: String? = nil)
        /// This user of the machine, who is made up: only the server sees the account, through a mount namespace
        /// of its own. Needs root.
        case user(String, password: String)
    }

    package enum Security: Sendable {
        case plain
        /// The client has to ask for TLS (`AUTH TLS`, RFC 4217) before it logs in.
        case explicit(TestCertificates.Identity)
        /// TLS from the first byte (`ftps`).
        case implicit(TestCertificates.Identity)
    }

    package let port: Int
    /// The directory that a session starts in. Nobody can write to it but through ``uploads``.
    package let root: String
    /// The directory `upload` beneath the root, where a session may make, rename and delete.
    package let uploads: String
    private let scheme: String
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// - Parameter allowingTLS13: TLS 1.2 is the most otherwise. In TLS 1.3 the server sends session tickets after
    ///   the handshake. libcurl 7.88 closes an upload's data connection without having read them, the kernel answers
    ///   with RST, and vsftpd loses what it had not read yet: most uploads fail with 426.
    /// - Parameter bytesPerSecond: of each connection of an anonymous session; absent: as fast as can be.
    /// - Throws: ``Unusable`` where vsftpd is missing, or a user is wanted and this process may not mount.
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
            // Where no outgoing connection gets its port from; see FreePort.
            "pasv_min_port=20000", "pasv_max_port=31999",
            "write_enable=YES", "seccomp_sandbox=NO", "isolate=NO", "isolate_network=NO",
            "secure_chroot_dir=\(empty)", "run_as_launching_user=\(geteuid() == 0 ? "NO" : "YES")",
            "xferlog_enable=YES", "log_ftp_protocol=YES", "vsftpd_log_file=\(directory.file("log"))",
        ]
        if let bytesPerSecond { settings.append("anon_max_rate=\(bytesPerSecond)") }
        let file = directory.file("vsftpd.conf")
        // What it has to complain about, vsftpd writes to descriptor 0.
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
            // vsftpd has no setting for it, but OpenSSL has (config(5ssl), "SSL Configuration").
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

    /// With a certificate on a curve; vsftpd's own choice of ciphers is for RSA. Few clients take up the control
    /// connection's TLS session for data, so that is not asked for.
    private static func tls(_ identity: TestCertificates.Identity) -> [String] {
        [
            "ssl_enable=YES", "allow_anon_ssl=YES", "force_anon_logins_ssl=YES", "force_anon_data_ssl=YES",
            "force_local_logins_ssl=YES", "force_local_data_ssl=YES", "require_ssl_reuse=NO", "ssl_request_cert=NO",
            "ssl_ciphers=HIGH", "rsa_cert_file=\(identity.chain.path)",
            "rsa_private_key_file=\(identity.key.path)",
        ]
    }

    /// - Parameter host: `localhost`, where the name in a certificate matters.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "\(scheme)://\(host):\(port)\(path)" }

    /// Puts a file into the root, or beneath it.
    package func publish(_ resource: Resource, as name: String) throws {
        try resource.write(to: "\(root)/\(name)")
        guard chmod("\(root)/\(name)", 0o644) == 0 else { throw SystemError("chmod \(name)") }
    }

    /// The commands that came so far, in order: `RETR file`. A password is shown as `<password>`.
    package var commands: [String] {
        tails(of: textOfFile(at: directory.file("log")), behind: #"FTP command: Client "127.0.0.1", ""#)
            .map { String($0.dropLast()) }
    }
}
