import TaskModel
import TestSupport
import Testing

/// Logins of servers to which redirects lead, and the scheme by which a password is sent, with the built daemon.
@Suite("Logins by server", .timeLimit(.minutes(2)))
struct LoginTests {
    private let resource = Resource(size: 100_000)
    private static let basic = "WWW-Authenticate: Basic realm=\"Earthdata\""
    /// `ann:of-the-portal` in Base64.
    private static let login = "Basic YW5uOm9mLXRoZS1wb3J0YWw="

    /// A file server that sends its clients to a portal, whose login it does not accept itself.
    private struct Site {
        let files: ScriptedServer
        let portal: ScriptedServer

        init(_ resource: Resource) throws {
            func redirect(_ location: String, _ cookie: String) -> ScriptedAnswer {
                .status(302, headers: ["Location: \(location)", "Set-Cookie: \(cookie)", "Content-Length: 0"])
            }
            let port = try FreePort.next()
            portal = try ScriptedServer(
                host: 2,
                [
                    "/oauth": [
                        .status(401, headers: [basic]),
                        redirect("http://127.0.0.1:\(port)/login?code=1", "urs=1; Path=/"),
                    ]
                ])
            files = try ScriptedServer(
                port: port,
                [
                    "/f": [redirect(portal.url("/oauth"), "state=1; Path=/"), .serve(resource)],
                    "/login?code=1": [redirect("/f", "session=1; Path=/")],
                ])
        }

        /// Expects that the portal alone was sent the login.
        func expectLogin(_ expected: Bool = true) {
            let sent = portal.requests().map { $0.header("authorization") }
            #expect(sent == (expected ? [nil, LoginTests.login] : [nil]))
            for request in files.requests() { #expect(request.header("authorization") == nil) }
            if expected { #expect(files.requests().last?.header("cookie") == "state=1; session=1") }
        }
    }

    @Test("F77: a redirect to a host of --netrc or of the configuration logs in there, and nowhere else")
    func signOn() async throws {
        for way in ["netrc", "configuration", "none"] {
            let site = try Site(resource)
            let credentials = try TemporaryDirectory()
            try credentials.write("user: ann\npassword: of-the-portal\n", to: "urs")
            let hosts = "hosts:\n  http://127.0.0.2:\(site.portal.port): {credential: urs, owners: ['*']}\n"
            let daemon = try DaemonProcess(
                configuration: quickRetries + (way == "configuration" ? hosts : ""),
                environment: ["CREDENTIALS_DIRECTORY": credentials.path])
            try await daemon.start()
            let netrc = try daemon.directory.write(
                "machine 127.0.0.2\n  login ann\n  password of-the-portal\ndefault login no password no\n", to: "netrc")
            let options = way == "netrc" ? ["--netrc", netrc] : []
            let added = try await daemon.dlctl(["add"] + options + [site.files.url("/f")])
            #expect(added.succeeded, "\(added.error)")
            let task = try await daemon.settled(TaskID(try #require(added.lines.first.flatMap { Int64($0) })))
            if way == "none" {
                #expect(task.state == .paused && task.reason == .auth)
            } else {
                #expect(task.state == .completed, "\(String(describing: task.error))")
                #expect(resource.difference(fromFileAt: try #require(task.path)) == nil)
            }
            site.expectLogin(way != "none")
            let calls = [["show", "--json", "\(task.id)"], ["list", "--json"], ["events", "--json", "--after", "0"]]
            for arguments in calls {
                let shown = try await daemon.dlctl(arguments)
                #expect(!shown.output.contains("of-the-portal"), "\(arguments)")
            }
            #expect(!daemon.log.contains("of-the-portal"))
        }
    }

    @Test("F77: by plain HTTP a password is sent only after the server asked, and a digest where it asks for one")
    func digestOnly() async throws {
        let offer = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"
        let server = try ScriptedServer([
            "/digest": [.status(401, headers: [offer]), .serve(resource)],
            "/basic": [.status(401, headers: [Self.basic]), .serve(resource)],
            "/bare": [.status(401), .serve(resource)],
            "/in": [.status(401, headers: [offer]), .status(201)],
        ])
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
        let password = try daemon.directory.write("of-the-portal\n", to: "password")
        let netrc = try daemon.directory.write("machine 127.0.0.1 login ann password of-the-portal", to: "netrc")
        func schemes(_ path: String) -> [String?] {
            server.requests(for: path).map { $0.header("authorization")?.split(separator: " ").first.map(String.init) }
        }
        let url = server.url("/digest")
        let own = ["--user", "ann", "--password-file", password]
        var ids = [try await daemon.add(own[0], own[1], own[2], own[3], url)]
        #expect(try await daemon.settled(ids[0]).state == .completed)
        #expect(schemes("/digest") == [nil, "Digest"])
        for (path, scheme) in [("/basic", "Basic"), ("/bare", "Basic")] {
            let url = server.url(path).replacing("://", with: "://ann:of-the-portal@")
            ids.append(try await daemon.add(url))
            #expect(try await daemon.settled(try #require(ids.last)).state == .completed)
            #expect(schemes(path) == [nil, scheme])
            #expect(server.requests(for: path).last?.header("authorization") == Self.login)
        }
        let file = try daemon.directory.write("content", to: "file")
        let upload = try await daemon.upload("--netrc", netrc, file, server.url("/in"))
        #expect(try await daemon.settled(upload).state == .completed)
        #expect(schemes("/in") == [nil, "Digest"])
        #expect(server.requests(for: "/in").last?.body == Array("content".utf8))
    }

    @Test("F77: a login in a URL answers a digest, and a netrc file that cannot be read names its line")
    func odd() async throws {
        let offer = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
        let server = try ScriptedServer(["/f": [.status(401, headers: [offer]), .serve(resource)]])
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
        let id = try await daemon.add(server.url("/f").replacing("://", with: "://ann:p%40ss@"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(server.requests().last?.header("authorization")?.hasPrefix("Digest username=\"ann\"") == true)
        let netrc = try daemon.directory.write("machine h login ann\npasswort s3cret\n", to: "netrc")
        let refused = try await daemon.dlctl("add", "--netrc", netrc, server.url("/f"))
        #expect(refused.status == .exited(64), "\(refused)")
        #expect(refused.error.contains("line 2 has a word that is not machine"), "\(refused.error)")
        #expect(!refused.error.contains("s3cret"))
    }
}
