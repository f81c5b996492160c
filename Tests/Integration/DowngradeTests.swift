import Glibc
import TaskModel
import TestSupport
import Testing

/// Servers, or intermediaries in front of them, that offer less than current TLS.
@Suite("Downgrades", .serialized, .timeLimit(.minutes(2)))
struct DowngradeTests {
    /// `ben:of-the-origin` in Base64.
    private static let login = "YmVuOm9mLXRoZS1vcmlnaW4="

    private let place: TemporaryDirectory

    init() throws {
        place = try TemporaryDirectory()
        try place.write("of-the-origin\n", to: "password")
    }

    /// Creates a daemon with an OpenSSL configuration that permits every version and cipher.
    private func daemon() async throws -> DaemonProcess {
        let lenient = """
            openssl_conf = all
            [all]
            ssl_conf = ssl
            [ssl]
            system_default = lenient
            [lenient]
            MinProtocol = TLSv1
            CipherString = DEFAULT:@SECLEVEL=0

            """
        let authority = try await TestCertificates.shared.authority.path
        let daemon = try DaemonProcess(
            configuration: quickRetries + "tls: {ca-file: \(authority)}\n",
            environment: ["OPENSSL_CONF": try place.write(lenient, to: "openssl.cnf")])
        try await daemon.start()
        return daemon
    }

    private func add(_ url: String, to daemon: DaemonProcess, _ more: [String] = []) async throws -> Outcome {
        try await daemon.dlctl(
            ["add", "--wait", "--user", "ben", "--password-file", place.file("password")] + more + [url])
    }

    @Test(
        "A24: a server that speaks TLS 1.0 or 1.1 alone gets no request, whatever the machine's OpenSSL would take",
        arguments: ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"])
    func oldTLS(version: String) async throws {
        let identity = try await TestCertificates.shared.server
        let nginx = try await Nginx(
            tls: .init(certificate: identity),
            settings: "ssl_protocols \(version); ssl_ciphers DEFAULT:@SECLEVEL=0;")
        let resource = Resource(size: 1000)
        try nginx.publish(resource, as: "f")
        let daemon = try await daemon()
        let added = try await add(nginx.url("/f", host: "localhost"), to: daemon)
        let task = try #require(try daemon.tasks().last)
        // The two newer versions show that everything else works.
        if version == "TLSv1.2" || version == "TLSv1.3" {
            #expect(added.succeeded, "\(added.error)")
            #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        } else {
            #expect(added.status == .exited(1))
            #expect(task.state == .failed && task.error?.code == .tls, "\(task)")
            #expect(nginx.accesses().isEmpty)
            #expect(!exists(daemon.path("f")))
        }
        daemon.expectTidy()
    }

    @Test(
        "A24: a proxy of https that speaks TLS 1.1 alone is told no secret", arguments: ["TLSv1.1", "TLSv1.2"])
    func oldProxy(version: String) async throws {
        let identity = try await TestCertificates.shared.server
        // This server treats the request as its own and has no such file: the test only checks whether it receives the
        // request.
        let nginx = try await Nginx(
            tls: .init(certificate: identity),
            settings: "ssl_protocols \(version); ssl_ciphers DEFAULT:@SECLEVEL=0;")
        let daemon = try await daemon()
        let proxy = nginx.url("", host: "localhost").replacing("://", with: "://ann:of-the-proxy@")
        _ = try await add("http://origin.example/f", to: daemon, ["--proxy", proxy])
        #expect(nginx.accesses().isEmpty == (version == "TLSv1.1"))
        #expect(try daemon.tasks().last?.state == .failed)
        daemon.expectTidy()
    }

    @Test("A24: where plain HTTP answers at the port of https, nothing is asked of it, and it is no success")
    func plain() async throws {
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno".utf8)
        let server = try RawServer([answer], head: 16)
        let daemon = try await daemon()
        let added = try await add("https://127.0.0.1:\(server.port)/f", to: daemon)
        #expect(added.status == .exited(1))
        #expect(try daemon.tasks().last?.error?.code == .tls)
        // The bytes received were the beginning of TLS: a handshake record.
        #expect(!server.requests.isEmpty)
        for said in server.requests { #expect(said.utf8.first == 22 && !said.contains("GET")) }
        #expect(!exists(daemon.path("f")))
        daemon.expectTidy()
    }

    @Test("A24, A9: a server of https that sends on to http gets nobody there, with a login or without")
    func redirect() async throws {
        let plain = try ScriptedServer(["/f": [.status(200, body: "no")]])
        let identity = try await TestCertificates.shared.server
        let nginx = try await Nginx(
            [.custom("/down", "return 302 '\(plain.url("/f"))';")], tls: .init(certificate: identity))
        let daemon = try await daemon()
        let added = try await add(nginx.url("/down", host: "localhost"), to: daemon)
        #expect(added.status == .exited(1))
        #expect(try daemon.tasks().last?.error?.code == .protocolNotAllowed)
        #expect(plain.connectionsAccepted == 0)
        daemon.expectTidy()
    }
}
