import Glibc
import TaskModel
import TestSupport
import Testing

/// What the configuration gives the tasks of certain users at a host, with the built daemon and real servers.
@Suite("Credentials of hosts", .serialized, .timeLimit(.minutes(3)), .enabled(if: isRoot))
struct HostCredentialTests {
    private let resource = Resource(size: 50_000)
    private let ann: uid_t = 64_201
    private let ben: uid_t = 64_202

    /// Starts a daemon of the system, whose credentials are passed as systemd passes them.
    private func daemon(
        hosts: String, credentials: [String: String], more: String = "", prefix: [String] = [],
        environment: [String: String?] = [:]
    ) async throws -> (daemon: DaemonProcess, credentials: TemporaryDirectory) {
        let directory = try TemporaryDirectory()
        for (name, text) in credentials { try directory.write(text, to: name) }
        let daemon = try DaemonProcess(
            configuration: quickRetries + "control: {mode: 0666}\n\(more)hosts:\n\(hosts)\n", prefix: prefix,
            environment: environment.merging(["CREDENTIALS_DIRECTORY": directory.path]) { $1 }, mode: 0o755)
        try await daemon.start()
        return (daemon, directory)
    }

    /// Adds downloads as a user.
    private func add(_ urls: [String], as uid: uid_t, to daemon: DaemonProcess) async throws -> [TaskID] {
        let user = ["setpriv", "--reuid", "\(uid)", "--regid", "\(uid)", "--clear-groups"]
        let added = try await run(user + [DaemonProcess.program("dlctl"), "--socket", daemon.socket, "add"] + urls)
        #expect(added.succeeded, "\(added.error)")
        return added.lines.compactMap { Int64($0).map { TaskID($0) } }
    }

    /// Downloads a file as a user.
    private func get(_ url: String, as uid: uid_t, from daemon: DaemonProcess) async throws -> TaskStatus {
        try await daemon.settled(try #require(await add([url], as: uid, to: daemon).first))
    }

    private func indented(_ text: String) -> String {
        text.split(separator: "\n").map { "\n  \($0)" }.joined()
    }

    @Test("A25: a password serves its owners, and no other user, in whichever order they come")
    func password() async throws {
        let made = try await TestCertificates.shared
        let nginx = try await Nginx(
            [.basic("/private/", user: "site", password: "c4nary-password")], tls: .init(certificate: made.server))
        try nginx.publish(resource, as: "f")
        let (daemon, _) = try await daemon(
            hosts: "  localhost: {credential: site, owners: [\(ann)]}",
            credentials: ["site": "user: site\npassword: c4nary-password\n"],
            more: "tls: {ca-file: \(made.authority.path)}\n")
        let url = nginx.url("/private/f", host: "localhost")
        for _ in 0..<2 {
            let stranger = try await get(url, as: ben, from: daemon)
            #expect(stranger.state == .paused && stranger.reason == .auth, "\(stranger)")
            let owner = try await get(url, as: ann, from: daemon)
            #expect(owner.state == .completed, "\(String(describing: owner.error))")
            #expect(resource.difference(fromFileAt: try #require(owner.path)) == nil)
        }
        // An administrator is no owner where others are named.
        #expect(try await get(url, as: 0, from: daemon).reason == .auth)
        // A login of the task's own is used in its place.
        let wrong = try await get(url.replacing("://", with: "://site:mistaken@"), as: ann, from: daemon)
        #expect(wrong.reason == .auth)
        #expect(!daemon.log.contains("c4nary"))
    }

    @Test("A25: a client certificate serves its owners alone, over connections of its own", arguments: ["1.1", "2"])
    func clientCertificate(version: String) async throws {
        let made = try await TestCertificates.shared
        let nginx = try await Nginx(
            tls: .init(certificate: made.server, clientAuthority: made.authority.path), http2: true)
        try nginx.publish(resource, as: "f")
        let credential =
            "certificate: |\(indented(made.client.certificate.text))\nkey: |\(indented(made.encryptedClientKey.text))\n"
            + "passphrase: \(made.passphrase)\n"
        let (daemon, _) = try await daemon(
            hosts: "  https://localhost:\(nginx.port): {credential: site, owners: [\(ann)], http-version: \(version)}",
            credentials: ["site": credential], more: "tls: {ca-file: \(made.authority.path)}\n")
        let url = nginx.url("/f", host: "localhost")
        for round in 0..<3 {
            let users = round % 2 == 0 ? [ann, ben, ann, ben] : [ben, ann, ben, ann]
            var tasks: [(uid_t, TaskID)] = []
            for uid in users { tasks += try await add([url, url, url], as: uid, to: daemon).map { (uid, $0) } }
            for (uid, id) in tasks {
                let status = try await daemon.settled(id)
                if uid == ann {
                    #expect(status.state == .completed, "\(String(describing: status.error))")
                } else {
                    #expect(status.error?.httpStatus == 400, "\(status)")
                }
            }
        }
    }

    @Test("a key of SFTP serves its owners, who need not name its user")
    func sftpKey() async throws {
        let server = try await SFTPServer()
        try resource.write(to: "\(server.root)/f")
        let home = try server.makeHome(knowing: server.hostKeys.filter { $0.type == .ed25519 })
        let accounts = try TemporaryDirectory()
        let credential =
            "user: \(server.user)\nsftp-key: |\(indented(try text(of: server.encryptedClientKey.privateKey)))\n"
            + "passphrase: \(server.passphrase)\n"
        let (daemon, _) = try await daemon(
            hosts: "  127.0.0.1: {credential: site, owners: [\(ann)]}", credentials: ["site": credential],
            prefix: try homeOfRoot(home, in: accounts))
        let url = "sftp://127.0.0.1:\(server.port)\(server.root)/f"
        #expect(try await get(url, as: ben, from: daemon).state != .completed)
        let owner = try await get(url, as: ann, from: daemon)
        #expect(owner.state == .completed, "\(String(describing: owner.error))")
        #expect(resource.difference(fromFileAt: try #require(owner.path)) == nil)
        let named = url.replacing("://", with: "://\(server.user)@")
        #expect(try await get(named, as: ann, from: daemon).state == .completed)
        #expect(try await get(named, as: ben, from: daemon).state != .completed)
    }

    @Test("A8: a token and headers are sent to their origin alone: not after a redirect, to a mirror or without TLS")
    func origin() async throws {
        let other = try ScriptedServer(["/f": [.serve(resource)]])
        let server = try ScriptedServer([
            "/f": [.serve(resource)], "/moved": [.redirect(other.url("/f"))], "/gone": [.status(404)],
        ])
        let plain = try ScriptedServer(["/f": [.serve(resource)]])
        let (daemon, _) = try await daemon(
            hosts: """
                  http://127.0.0.1:\(server.port): {credential: token, headers: ['X-Token: c4nary-header'], owners: ['*']}
                  127.0.0.1:\(plain.port): {credential: token, headers: ['X-Token: c4nary-header'], owners: ['*']}
                """, credentials: ["token": "bearer: c4nary-token\n"])
        #expect(try await get(server.url("/f"), as: ann, from: daemon).state == .completed)
        #expect(try await get(server.url("/moved"), as: ann, from: daemon).state == .completed)
        let mirrored = try await daemon.add("--mirror", other.url("/f"), server.url("/gone"))
        #expect(try await daemon.settled(mirrored).state == .completed)
        #expect(try await get(plain.url("/f"), as: ann, from: daemon).state == .completed)
        #expect(server.requests().count >= 3)
        for request in server.requests() {
            #expect(request.header("authorization") == "Bearer c4nary-token", "\(request.path)")
            #expect(request.header("x-token") == "c4nary-header", "\(request.path)")
        }
        #expect(other.requests().count >= 2 && !plain.requests().isEmpty)
        for request in other.requests() + plain.requests() {
            #expect(request.header("authorization") == nil && request.header("x-token") == nil, "\(request.path)")
        }
        // Header fields of the task's own are sent in their place.
        let id = try await daemon.add(
            "--header", "Authorization: Basic own", "--header", "X-Token: own", server.url("/f"))
        #expect(try await daemon.settled(id).state == .completed)
        let last = try #require(server.requests().last)
        #expect(last.header("authorization") == "Basic own" && last.header("x-token") == "own")
    }

    @Test("A23: a credential is in no list, event, journal, backup or file of the daemon")
    func nowhere() async throws {
        let journal = try JournalSubstitute()
        let server = try ScriptedServer(["/f": [.serve(resource)], "/bad": [.status(403)]])
        let directory = try TemporaryDirectory()
        let field = try directory.write("X-Token: c4nary-field\n", to: "field")
        let (daemon, _) = try await daemon(
            hosts: "  http://127.0.0.1:\(server.port): {credential: site, headers: ['@\(field)'], owners: ['*']}",
            credentials: ["site": "user: ann\npassword: c4nary-password\n"], prefix: journal.prefix,
            environment: journal.environment)
        let good = try await daemon.add(server.url("/f"))
        let bad = try await daemon.add(server.url("/bad"))
        #expect(try await daemon.settled(good).state == .completed)
        _ = try await daemon.settled(bad)
        #expect(server.requests().allSatisfy { $0.header("x-token") == "c4nary-field" })
        // Basic encodes the password.
        let secrets = ["c4nary", "YW5uOmM0bmFyeS1wYXNzd29yZA"]
        let copies = try TemporaryDirectory()
        let calls = [
            ["list", "--json"], ["show", "--json", "\(good)", "\(bad)"], ["events", "--json", "--after", "0"],
            ["status", "--json"], ["show", "\(good)", "\(bad)"], ["backup", copies.file("copy")],
            ["rpc", "task.list"],
        ]
        for arguments in calls {
            let outcome = try await daemon.dlctl(arguments)
            #expect(outcome.succeeded, "\(arguments) \(outcome.error)")
            for secret in secrets { #expect(!(outcome.output + outcome.error).contains(secret), "\(arguments)") }
        }
        #expect(try await daemon.terminate() == .exited(0))
        #expect(try !journal.story(of: good.rawValue).isEmpty)
        let entries = "\(try journal.entries())"
        for secret in secrets {
            #expect(!daemon.log.contains(secret) && !entries.contains(secret))
            let holders = try await run(["grep", "-rla", secret, daemon.stateDirectory, copies.path, daemon.downloads])
            #expect(holders.lines == [])
        }
    }

    @Test("a changed credential counts from the next reload, and one that is missing or wrong refuses the reload")
    func reload() async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let (daemon, credentials) = try await daemon(
            hosts: "  http://127.0.0.1:\(server.port): {credential: token}", credentials: ["token": "bearer: one\n"])
        func sent() async throws -> String? {
            #expect(try await get(server.url("/f"), as: 0, from: daemon).state == .completed)
            return server.requests().last?.header("authorization")
        }
        #expect(try await sent() == "Bearer one")
        try credentials.write("bearer: two\n", to: "token")
        #expect(try await sent() == "Bearer one")
        #expect(try await daemon.dlctl("reload").succeeded)
        #expect(try await sent() == "Bearer two")
        try credentials.write("bearer: three\nc4nary: x\n", to: "token")
        let wrong = try await daemon.dlctl("reload")
        #expect(wrong.status == .exited(1))
        #expect(wrong.error.contains(":4:"), "\(wrong.error)")
        #expect(wrong.error.contains("/token:2:1: is not a key of a credential"), "\(wrong.error)")
        #expect(!wrong.error.contains("c4nary"))
        #expect(unlink(credentials.file("token")) == 0)
        let missing = try await daemon.dlctl("reload")
        #expect(missing.status == .exited(1) && missing.error.contains("credentials/token: cannot be"), "\(missing)")
        #expect(try await sent() == "Bearer two")
        // A user who is no administrator gets nothing without `owners`.
        #expect(try await get(server.url("/f"), as: ann, from: daemon).state == .completed)
        #expect(server.requests().last?.header("authorization") == nil)
        try await daemon.terminate()
        let start = try daemon.launch()
        #expect(try await start.wait() == .exited(78))
        #expect(start.standardError.contains("dld.yaml:4:") && start.standardError.contains("\"credential\""))
    }

    @Test("a user's own daemon reads files that only the user can read")
    func ownDaemon() async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let home = try TemporaryDirectory()
        for name in ["dld", "dld/credentials"] { _ = try home.makeDirectory(name) }
        let file = try home.write("bearer: token\n", to: "dld/credentials/token")
        #expect(chmod(file, 0o640) == 0)
        let daemon = try DaemonProcess(
            configuration: quickRetries + "hosts:\n  http://127.0.0.1:\(server.port):\n    credential: token\n",
            environment: ["XDG_CONFIG_HOME": home.path, "STATE_DIRECTORY": home.path, "CREDENTIALS_DIRECTORY": nil])
        let check = try daemon.launch(extra: ["--check-config"])
        #expect(try await check.wait() == .exited(78))
        #expect(check.standardError.contains("dld.yaml:4:17: \"credential\""), "\(check.standardError)")
        #expect(check.standardError.contains("mode 0640); run: chmod 600 \(file)"), "\(check.standardError)")
        #expect(chmod(file, 0o600) == 0)
        try await daemon.start()
        let id = try await daemon.add(server.url("/f"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(server.requests().last?.header("authorization") == "Bearer token")
        #expect(chown(file, ann, 0) == 0)
        let refused = try await daemon.dlctl("reload")
        #expect(refused.error.contains("belongs to another user"), "\(refused.error)")
    }
}
