import TaskModel
import TestSupport
import Testing

/// Cookies that servers set while a task runs, with the built daemon.
@Suite("Cookies of redirects and challenges", .timeLimit(.minutes(2)))
struct CookieTests {
    private let resource = Resource(size: 2 * mebibyte)

    private func redirect(to location: String, setting cookie: String) -> ScriptedAnswer {
        .status(302, headers: ["Location: \(location)", "Set-Cookie: \(cookie)", "Content-Length: 0"])
    }

    private func cookies(_ server: ScriptedServer, _ path: String) -> [String?] {
        server.requests(for: path).map { $0.header("cookie") }
    }

    @Test("F75: a redirect to the same URL sets a cookie, which all further requests of the attempt carry")
    func gate() async throws {
        let server = try ScriptedServer([
            "/f": [
                redirect(to: "/f", setting: "sid=1; Path=/"), .serveThenCut(resource, after: mebibyte),
                .serve(resource),
            ],
            "/g": [.serve(resource)],
        ])
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
        let task = try await daemon.settled(daemon.add(server.url("/f")))
        #expect(task.state == .completed, "\(String(describing: task.error))")
        #expect(resource.difference(fromFileAt: try #require(task.path)) == nil)
        // Half-way, the download goes on within the attempt.
        #expect(cookies(server, "/f") == [nil, "sid=1", "sid=1"])
        // No other task has the cookie.
        #expect(try await daemon.settled(daemon.add(server.url("/g"))).state == .completed)
        #expect(cookies(server, "/g") == [nil])
        daemon.expectTidy()
    }

    @Test("F75: a sign-on over two hosts works: each host is sent its own cookies, with and without --cookies")
    func signOn() async throws {
        for hasFile in [false, true] {
            // The two servers name each other.
            let port = try FreePort.next()
            let back = "http://127.0.0.1:\(port)"
            let login = try ScriptedServer(
                host: 2,
                [
                    "/login": [redirect(to: "/consent", setting: "login=1; Path=/")],
                    "/consent": [redirect(to: back + "/callback?code=5", setting: "consent=1; Path=/consent")],
                ])
            let site = try ScriptedServer(
                port: port,
                [
                    "/f": [redirect(to: login.url("/login"), setting: "state=1; Path=/"), .serve(resource)],
                    "/callback?code=5": [redirect(to: "/f", setting: "session=1; Path=/; HttpOnly")],
                ])
            let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
            var options: [String] = []
            if hasFile {
                let line = "127.0.0.1\tFALSE\t/\tFALSE\t0\town\t1\n"
                options = ["--cookies", try daemon.directory.write(line, to: "cookies")]
            }
            let added = try await daemon.dlctl(["add"] + options + [site.url("/f")])
            let id = TaskID(try #require(added.lines.first.flatMap { Int64($0) }))
            #expect(try await daemon.settled(id).state == .completed)
            let own = hasFile ? "own=1; " : ""
            #expect(cookies(site, "/f") == [hasFile ? "own=1" : nil, own + "state=1; session=1"])
            #expect(cookies(site, "/callback?code=5") == [own + "state=1"])
            #expect(cookies(login, "/login") == [nil] && cookies(login, "/consent") == ["login=1"])
        }
    }

    @Test("F75: a task's own Cookie field is sent together with what servers set, and a newer value replaces its own")
    func ownField() async throws {
        let server = try ScriptedServer([
            "/f": [redirect(to: "/f", setting: "sid=new; Path=/"), .serve(resource)]
        ])
        let daemon = try await DaemonProcess.started(quickRetries + oneConnection)
        let id = try await daemon.add("--header", "Cookie: sid=old; theme=dark", server.url("/f"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(cookies(server, "/f") == ["sid=old; theme=dark", "theme=dark; sid=new"])
    }

    @Test("F75: an upload and a challenge keep their cookies too")
    func upload() async throws {
        let server = try ScriptedServer([
            "/in": [
                .status(307, headers: ["Location: /in", "Set-Cookie: sid=1", "Content-Length: 0"]),
                .status(401, headers: ["WWW-Authenticate: Basic realm=\"r\"", "Set-Cookie: nonce=1"]), .status(201),
            ]
        ])
        let daemon = try await DaemonProcess.started(quickRetries)
        let place = try TemporaryDirectory()
        let password = try place.write("p\n", to: "password")
        let file = try place.write("content", to: "file")
        let id = try await daemon.upload("--user", "u", "--password-file", password, file, server.url("/in"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(cookies(server, "/in") == [nil, "sid=1", "sid=1; nonce=1"])
    }
}
