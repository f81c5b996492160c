import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// The real servers of the harness, each tested with the `curl` program.
@Suite("The servers of the harness")
struct ServerFixtureTests {
    /// Runs curl once and returns its exit code and standard output.
    private func curl(
        _ arguments: [String], home: String = "/nonexistent"
    ) async throws -> (code: Int32, output: String) {
        let outcome = try await run(
            ["curl", "-sS", "-m", "60", "--noproxy", ""] + arguments, environment: ["HOME": home, "CURL_HOME": nil])
        guard case .exited(let code) = outcome.status else { throw Unusable(reason: "curl was killed") }
        return (code, outcome.output)
    }

    private func succeeds(_ arguments: String...) async throws -> Bool { try await curl(arguments).code == 0 }

    // MARK: Certificates and nginx

    @Test("a client that trusts the authority accepts the server's certificate and none of the bad ones")
    func certificates() async throws {
        let made = try await TestCertificates.shared
        func code(_ identity: TestCertificates.Identity, _ host: String, _ extra: [String] = []) async throws -> Int32 {
            let nginx = try await Nginx([.custom("= /", "return 204;")], tls: .init(certificate: identity))
            let map = ["--resolve", "*:\(nginx.port):127.0.0.1"]
            return try await curl(map + ["--cacert", made.authority.path, nginx.url("/", host: host)] + extra).code
        }
        let listed = ["--crlfile", made.revocationList.path]
        #expect(try await code(made.server, "localhost") == 0)
        #expect(try await code(made.server, "127.0.0.1") == 0)
        #expect(try await code(made.server, "localhost", listed) == 0)
        #expect(try await code(made.server, "other.test") == 60)
        #expect(try await code(made.wrongHost, "localhost") == 60)
        #expect(try await code(made.wrongHost, "wrong.example") == 0)
        #expect(try await code(made.expired, "localhost") == 60)
        #expect(try await code(made.selfSigned, "localhost") == 60)
        #expect(try await code(made.selfSigned, "localhost", ["--cacert", made.selfSigned.certificate.path]) == 0)
        #expect(try await code(made.revoked, "localhost") == 0)
        #expect(try await code(made.revoked, "localhost", listed) == 60)
        #expect(try await code(made.wildcard, "one.wild.test") == 0)
        #expect(try await code(made.wildcard, "two.one.wild.test") == 60)
        #expect(try await code(made.server, "localhost", ["--pinnedpubkey", made.serverPublicKeyPin]) == 0)
        #expect(try await code(made.revoked, "localhost", ["--pinnedpubkey", made.serverPublicKeyPin]) == 90)
        #expect(made.authority.text.hasPrefix("-----BEGIN CERTIFICATE-----"))
        #expect(made.revocationList.text.hasPrefix("-----BEGIN X509 CRL-----"))
    }

    @Test("nginx hands out the stapled answer, and a client believes it")
    func stapling() async throws {
        let made = try await TestCertificates.shared
        func code(_ identity: TestCertificates.Identity, staple: String?) async throws -> Int32 {
            let nginx = try await Nginx(
                [.custom("= /", "return 204;")], tls: .init(certificate: identity, staple: staple))
            let url = nginx.url("/", host: "localhost")
            return try await curl(["--cert-status", "--cacert", made.authority.path, url]).code
        }
        #expect(try await code(made.server, staple: made.goodResponse) == 0)
        #expect(try await code(made.revoked, staple: made.revokedResponse) == 91)
        #expect(try await code(made.server, staple: nil) == 91)
    }

    @Test("nginx asks for a client's certificate, which comes as PEM, with a passphrase or as PKCS #12")
    func clientCertificate() async throws {
        let made = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.custom("= /", "return 200 $ssl_client_s_dn;")],
            tls: .init(certificate: made.server, clientAuthority: made.authority.path))
        func answer(_ arguments: String...) async throws -> (code: Int32, output: String) {
            try await curl(["-f", "--cacert", made.authority.path, nginx.url("/", host: "localhost")] + arguments)
        }
        let certificate = made.client.certificate.path
        #expect(try await answer().code == 22)
        #expect(try await answer("--cert", certificate, "--key", made.client.key.path).output == "CN=client")
        let encrypted = made.encryptedClientKey.path
        #expect(try await answer("--cert", certificate, "--key", encrypted, "--pass", made.passphrase).code == 0)
        #expect(try await answer("--cert", certificate, "--key", encrypted, "--pass", "wrong").code == 58)
        let bundle = made.clientPKCS12
        #expect(try await answer("--cert-type", "P12", "--cert", "\(bundle):\(made.passphrase)").code == 0)
        let stranger = made.selfSigned
        #expect(try await answer("--cert", stranger.certificate.path, "--key", stranger.key.path).code == 22)
    }

    @Test("nginx speaks HTTP/2 where it is told to, and its log tells connections and versions apart")
    func http2() async throws {
        let made = try await TestCertificates.shared
        for (http2, version) in [(true, "HTTP/2.0"), (false, "HTTP/1.1")] {
            let nginx = try await Nginx(
                [.custom("= /a", "return 204;")], tls: .init(certificate: made.server), http2: http2)
            let url = nginx.url("/a", host: "localhost")
            #expect(try await succeeds("--cacert", made.authority.path, url, url))
            #expect(try await succeeds("--cacert", made.authority.path, url))
            let log = try await eventually(have: "three lines") {
                let log = nginx.accesses(for: "/a")
                return log.count == 3 ? log : nil
            }
            #expect(log.map(\.version) == [version, version, version])
            #expect(log[0].connection == log[1].connection)
            #expect(log[1].connection != log[2].connection)
        }
    }

    @Test("nginx's locations: passwords, redirects, echoes, added headers, compression, bodies by POST")
    func locations() async throws {
        let nginx = try await Nginx([
            .basic("/private/", user: "ann", password: "open sesame"), .redirect("/moved", to: "/file", status: 308),
            .echo("/echo", headers: ["Authorization", "X-Two-Words"]), .compressed("/gzip/"),
            .headers("/set/", [("Set-Cookie", "a=\"b\"; Path=/"), ("Cache-Control", "max-age=60")]),
            .withoutEntityTag("/tagless/"), .post("/post/"), .custom("= /custom", "alias @ROOT@/file;"),
        ])
        let resource = Resource(size: 20_000)
        try nginx.publish(resource, as: "file")
        func head(_ path: String, _ arguments: String...) async throws -> String {
            try await curl(["-D", "-", "-o", "/dev/null", nginx.url(path)] + arguments).output
        }
        #expect(try await head("/private/file").hasPrefix("HTTP/1.1 401"))
        #expect(try await head("/private/file", "-u", "ann:wrong").hasPrefix("HTTP/1.1 401"))
        #expect(try await head("/private/file", "-u", "ann:open sesame").hasPrefix("HTTP/1.1 200"))
        let moved = try await head("/moved")
        #expect(moved.hasPrefix("HTTP/1.1 308"))
        #expect(moved.contains("/file\r\n"))
        #expect(try await succeeds("-fL", "-o", "/dev/null", nginx.url("/moved")))
        let echo = try await curl(["-X", "DELETE", "-H", "X-Two-Words: yes", nginx.url("/echo?a=b")]).output
        #expect(echo == "DELETE /echo?a=b\nAuthorization: \nX-Two-Words: yes\n")
        let set = try await head("/set/file")
        #expect(set.contains("Set-Cookie: a=\"b\"; Path=/\r\n"))
        #expect(set.contains("Cache-Control: max-age=60\r\n"))
        #expect(try await head("/gzip/file", "--compressed").contains("Content-Encoding: gzip"))
        #expect(try await !head("/gzip/file").contains("Content-Encoding"))
        #expect(try await head("/file").contains("ETag"))
        #expect(try await !head("/tagless/file").contains("ETag"))
        #expect(try await head("/custom").contains("Content-Length: 20000"))
        let form = ["-H", "Content-Type: text/x-mine", "--data-binary", "@\(nginx.root)/file", nginx.url("/post/a/b")]
        #expect(try await curl(["-i"] + form).output.contains("X-Content-Type: text/x-mine"))
        #expect(resource.difference(fromFileAt: "\(nginx.uploads)/a/b") == nil)
    }

    // MARK: FTP

    /// Tests the transfers that every FTP or SFTP server here must support: a download, a resumed one, an upload, a
    /// resumed one.
    private func transfers(
        _ resource: Resource, _ file: String, into place: String, at uploads: String, _ options: [String]
    ) async throws {
        let directory = try TemporaryDirectory()
        let whole = directory.file("whole")
        let half = directory.file("half")
        try resource.write(to: whole)
        let firstHalf = Resource(size: resource.size / 2, seed: resource.seed)
        try firstHalf.write(to: half)
        #expect(try await curl(options + ["-C", "-", "-o", half, file]).code == 0)
        #expect(resource.difference(fromFileAt: half) == nil)
        #expect(try await curl(options + ["-o", directory.file("new"), file]).code == 0)
        #expect(resource.difference(fromFileAt: directory.file("new")) == nil)
        try firstHalf.write(to: half)
        #expect(try await curl(options + ["-T", half, "\(place)/up"]).code == 0)
        #expect(try await curl(options + ["-C", "-", "-T", whole, "\(place)/up"]).code == 0)
        #expect(resource.difference(fromFileAt: "\(uploads)/up") == nil)
    }

    private func ftp(_ server: Vsftpd, _ options: [String] = []) async throws {
        let resource = Resource(size: 300_000)
        try server.publish(resource, as: "file")
        let place = server.url("/upload", host: "localhost")
        try await transfers(
            resource, server.url("/file", host: "localhost"), into: place, at: server.uploads, options)
        let renamed = ["-Q", "-RNFR part", "-Q", "-RNTO done"]
        let source = "\(server.root)/file"
        #expect(try await curl(options + ["-T", source, "\(place)/part"] + renamed).code == 0)
        #expect(resource.difference(fromFileAt: "\(server.uploads)/done") == nil)
        #expect(try await curl(options + ["--ftp-create-dirs", "-T", source, "\(place)/a/b/c"]).code == 0)
        let deletion = ["-Q", "DELE upload/done", "-I", server.url("/", host: "localhost")]
        #expect(try await curl(options + deletion).code == 0)
        #expect(access("\(server.uploads)/done", F_OK) != 0)
        #expect(try await curl(options + [server.url("/none", host: "localhost")]).code == 78)
        #expect(server.commands.contains("REST 150000"))
        #expect(server.commands.contains("APPE up"))
        #expect(server.commands.contains("RNTO done"))
    }

    @Test("vsftpd serves anyone, resumes both ways, renames and deletes")
    func plainFTP() async throws {
        try await ftp(Vsftpd())
    }

    @Test("vsftpd with TLS, explicit and implicit, turns away who does not take it")
    func ftps() async throws {
        let made = try await TestCertificates.shared
        let explicit = try await Vsftpd(security: .explicit(made.server))
        try await ftp(explicit, ["--ssl-reqd", "--cacert", made.authority.path])
        #expect(try await curl([explicit.url("/file")]).code == 67)
        #expect(try await curl(["--ssl-reqd", explicit.url("/file")]).code == 60)
        let implicit = try await Vsftpd(security: .implicit(made.server))
        #expect(implicit.url("/").hasPrefix("ftps://"))
        try await ftp(implicit, ["--cacert", made.authority.path])
    }

    @Test("vsftpd wants the one password of its anonymous user")
    func anonymousPassword() async throws {
        let server = try await Vsftpd(login: .anonymous(password: "sesame"))
        try await ftp(server, ["-u", "ftp:sesame"])
        #expect(try await curl(["-u", "ftp:other", server.url("/file")]).code == 67)
    }

    @Test("vsftpd lets a user in by password", .enabled(if: geteuid() == 0, "only root can mount"))
    func userAndPassword() async throws {
        let server = try await Vsftpd(login: .user("ann", password: "open sesame"))
        try await ftp(server, ["-u", "ann:open sesame"])
        #expect(try await curl(["-u", "ann:other", server.url("/file")]).code == 67)
        #expect(try await curl([server.url("/file")]).code == 67)
    }

    @Test("a server that goes takes the processes of its connections with it")
    func connectionsEnd() async throws {
        var server: Vsftpd? = try await Vsftpd()
        let port = try #require(server?.port)
        let connection = try StreamSocket(port: port)
        connection.setReadTimeout(20)
        #expect(try connection.readLine()?.hasPrefix("220 ") == true)
        server = nil
        #expect(try connection.readToEnd().isEmpty)
        #expect(throws: SystemError.self) { _ = try StreamSocket(port: port) }
    }

    // MARK: SFTP

    @Test("sshd serves SFTP by key, resumes both ways and renames, and curl knows its host by a fingerprint")
    func sftp() async throws {
        let server = try await SFTPServer()
        let resource = Resource(size: 300_000)
        try server.publish(resource, as: "file")
        let host = try #require(server.hostKeys.first { $0.type == .ed25519 })
        let (sha256, md5) = (try await server.sha256(of: host), try await server.md5(of: host))
        func login(_ key: SFTPServer.KeyPair) -> [String] {
            ["-u", "\(server.user):", "--key", key.privateKey, "--pubkey", key.publicKey]
        }
        let options = login(server.clientKey) + ["--hostpubsha256", sha256]
        let url = server.url("/file")
        try await transfers(resource, url, into: server.url(""), at: server.root, options)
        let upload = ["-T", "\(server.root)/file", server.url("/part")]
        let renamed = ["-Q", "-rename \(server.root)/part \(server.root)/done"]
        #expect(try await curl(options + upload + renamed).code == 0)
        #expect(resource.difference(fromFileAt: "\(server.root)/done") == nil)
        func code(_ key: SFTPServer.KeyPair, _ extra: String..., home: String = "/nonexistent") async throws -> Int32 {
            try await curl(["-o", "/dev/null", url] + login(key) + extra, home: home).code
        }
        #expect(try await code(server.clientKey, "--hostpubmd5", md5) == 0)
        let stranger = try await server.sha256(of: server.strangerKey)
        #expect(try await code(server.clientKey, "--hostpubsha256", stranger) == 60)
        #expect(try await code(server.strangerKey, "--insecure") == 67)
        #expect(try await code(server.encryptedClientKey, "--insecure", "--pass", server.passphrase) == 0)
        #expect(try await code(server.encryptedClientKey, "--insecure", "--pass", "wrong") == 67)
        #expect(try await code(server.clientKey, home: server.makeHome(knowing: [host])) == 0)
        #expect(try await code(server.clientKey, home: server.makeHome(knowing: [server.strangerKey])) == 60)
        #expect(try await code(server.clientKey, home: server.makeHome(knowing: [])) == 60)
        #expect(server.log.contains("Accepted publickey for \(server.user)"))
    }

    @Test("RSA keys are of use to libssh2 1.10 only where sshd takes SHA-1")
    func sftpRSA() async throws {
        for (allowed, expected) in [(true, Int32(0)), (false, 2)] {
            let server = try await SFTPServer(hostKeys: [.rsa], allowingSHA1: allowed)
            try server.publish(Resource(size: 10), as: "file")
            let key = ["--key", server.rsaClientKey.privateKey, "-u", "\(server.user):"]
            let known = try server.makeHome(knowing: server.hostKeys)
            #expect(try await curl(key + [server.url("/file"), "-o", "/dev/null"], home: known).code == expected)
        }
    }

    // MARK: Proxies

    @Test("tinyproxy forwards and tunnels, for its user alone, and logs what it was asked")
    func httpProxy() async throws {
        let nginx = try await Nginx([.custom("= /", "return 200 ok;")])
        let open = try await HTTPProxy()
        #expect(try await curl(["-x", open.url, nginx.url("/")]).output == "ok")
        #expect(try await curl(["-x", open.url, "-p", nginx.url("/")]).output == "ok")
        #expect(
            open.requests == ["GET \(nginx.url("/")) HTTP/1.1", "CONNECT 127.0.0.1:\(nginx.port) HTTP/1.1"])
        let locked = try await HTTPProxy(user: "ann", password: "sesame")
        let user = ["--proxy-user", "ann:sesame"]
        #expect(try await curl(["-x", locked.url, "-f", nginx.url("/")]).code == 22)
        #expect(try await curl(["-x", locked.url, "-p", nginx.url("/")]).code == 56)
        #expect(try await curl(["-x", locked.url, nginx.url("/")] + user).output == "ok")
        #expect(try await curl(["-x", locked.url, "-p", nginx.url("/")] + user).output == "ok")
        #expect(locked.requests.count == 4)
    }

    @Test("microsocks connects to addresses and names, for its user alone")
    func socksProxy() async throws {
        let nginx = try await Nginx([.custom("= /", "return 200 ok;")])
        let open = try await SOCKSProxy()
        #expect(try await curl(["-x", open.url(), nginx.url("/")]).output == "ok")
        #expect(try await curl(["-x", open.url(resolving: true), nginx.url("/", host: "localhost")]).output == "ok")
        #expect(open.targets == ["127.0.0.1:\(nginx.port)", "localhost:\(nginx.port)"])
        let locked = try await SOCKSProxy(user: "ann", password: "open sesame")
        #expect(try await curl(["-x", locked.url(), nginx.url("/")]).code == 97)
        #expect(try await curl(["-x", locked.url(), "--proxy-user", "ann:wrong", nginx.url("/")]).code == 97)
        #expect(try await curl(["-x", locked.url(), "--proxy-user", "ann:open sesame", nginx.url("/")]).output == "ok")
    }
}
