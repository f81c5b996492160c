import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Uploads as tasks")
struct UploadTaskTests {
    /// A user who may upload any file.
    private static let daemonUser = Caller(uid: getuid(), isAdministrator: true)
    /// A user who may not upload every file.
    private static let other = Caller(uid: 4_000, isAdministrator: false)

    private let first = Resource(size: 100_000, seed: 1)
    private let second = Resource(size: 100_000, seed: 2)

    /// Creates a queue with a back-off of a day, so that a failed task waits until it is resumed.
    private func fixture(_ change: (inout QueueSettings) -> Void = { _ in }) async throws -> QueueFixture {
        try await QueueFixture { settings in
            settings.retry = RetryPolicy(attempts: 5, baseDelay: 86_400_000, maximumDelay: 86_400_000)
            change(&settings)
        }
    }

    private func upload(
        _ path: String, _ url: String, in fixture: QueueFixture, by caller: Caller = daemonUser,
        _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskID {
        try await fixture.add(url, by: caller) { task in
            task.kind = .upload
            task.file = path
            change(&task)
        }
    }

    /// Returns a waiting task whose first attempt the server rejected.
    private func waiting(
        _ path: String, _ server: ScriptedServer, in fixture: QueueFixture, by caller: Caller = daemonUser
    ) async throws -> TaskID {
        let id = try await upload(path, server.url("/in"), in: fixture, by: caller)
        #expect(try await fixture.status(id, once: [.waiting]).reason == .retry)
        return id
    }

    private func server() throws -> ScriptedServer { try ScriptedServer(["/in": [.status(503), .status(201)]]) }

    private func go(
        _ event: TaskLifecycle.Event, _ id: TaskID, in queue: TaskQueue, by caller: Caller = daemonUser
    ) async throws {
        #expect(try await queue.apply(event, to: [id], by: caller).changed == 1)
    }

    /// Returns the first completed, failed or paused status after the command `event`.
    private func outcome(
        of event: TaskLifecycle.Event, _ id: TaskID, in fixture: QueueFixture, by caller: Caller = daemonUser
    ) async throws -> TaskStatus {
        let last = try fixture.queue.lastEvent()
        try await go(event, id, in: fixture.queue, by: caller)
        return try await fixture.status(id, once: [.completed, .failed, .paused], after: last)
    }

    /// Replaces the file at the path with another one, as editors do.
    private func replace(_ path: String, by resource: Resource) throws {
        try resource.write(to: path + "~")
        #expect(rename(path + "~", path) == 0)
    }

    @Test("A20: an answer that never ends holds no upload")
    func endlessAnswer() async throws {
        let head = "HTTP/1.1 201 Created\r\n\r\n"
        let liar = try MisbehavingServer { _ in
            .raw([.bytes(Array(head.utf8)), .endless(Array(repeating: 0x78, count: 4096))])
        }
        let fixture = try await fixture()
        let path = fixture.directory.file("source")
        try first.write(to: path)
        _ = try await fixture.completed(try await upload(path, liar.url(), in: fixture))
    }

    // MARK: Forms

    @Test("a form goes by POST with its fields, the file's name and type and its length, and counts every byte of it")
    func form() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let fixture = try await fixture()
        let path = try fixture.directory.write("the file", to: "photo \"1\".png")
        let id = try await upload(path, server.url("/in"), in: fixture) { task in
            task.form = ["title=Sea = blue", "empty="]
            task.fileField = "image"
        }
        let status = try await fixture.completed(id)
        let seen = try #require(server.requests().first)
        #expect(seen.method == "POST" && seen.header("transfer-encoding") == nil)
        let type = try #require(seen.header("content-type"))
        #expect(type.hasPrefix("multipart/form-data; boundary="))
        let boundary = String(type.split(separator: "=").last ?? "").replacing("\"", with: "")
        let expected = [
            "--\(boundary)", "Content-Disposition: form-data; name=\"title\"", "", "Sea = blue",
            "--\(boundary)", "Content-Disposition: form-data; name=\"empty\"", "", "",
            "--\(boundary)", "Content-Disposition: form-data; name=\"image\"; filename=\"photo %221%22.png\"",
            "Content-Type: image/png", "", "the file", "--\(boundary)--", "",
        ]
        #expect(String(decoding: seen.body, as: UTF8.self) == expected.joined(separator: "\r\n"))
        #expect(seen.header("content-length") == "\(seen.body.count)")
        let count = Int64(seen.body.count)
        #expect(status.bytesDone == count && status.bytesTotal == count && status.bytesFetched == count)
    }

    @Test("the field's name alone makes a form; a content type is the file's")
    func fileField() async throws {
        let server = try ScriptedServer(["/in": [.status(303, headers: ["Location: /done"])]])
        let fixture = try await fixture()
        let path = try fixture.directory.write("x", to: "a.bin")
        _ = try await fixture.completed(
            try await upload(path, server.url("/in"), in: fixture) { task in
                task.fileField = "f"
                task.contentType = "text/x-thing"
            })
        let body = String(decoding: try #require(server.requests().first).body, as: UTF8.self)
        #expect(body.contains("name=\"f\"; filename=\"a.bin\"\r\nContent-Type: text/x-thing\r\n\r\nx\r\n"))
        // The redirect in the response is for people and is not followed.
        #expect(server.requests().count == 1)
    }

    @Test(
        "an answer that leads to another server or to a login is told",
        arguments: [
            ("/done", false), ("/login?next=/done", true), ("http://sso.example.org/x", true), ("//h.example/", true),
        ])
    func redirectedToLogin(location: String, isDoubtful: Bool) async throws {
        let server = try ScriptedServer(["/in": [.status(302, headers: ["Location: \(location)"])]])
        let fixture = try await fixture()
        let path = try fixture.directory.write("x", to: "a.bin")
        let status = try await fixture.completed(
            try await upload(path, server.url("/in"), in: fixture) { $0.method = "POST" })
        let history = try await fixture.queue.detail(of: status.id, for: Self.daemonUser)?.history
        let warning = history?.last?.warning
        #expect((warning?.contains("it may ask for a login, and not have stored the file") ?? false) == isDoubtful)
    }

    @Test("A8: a file goes to no other server than the one that was named", arguments: ["PUT", "POST", "form"])
    func redirectedAway(method: String) async throws {
        let other = try ScriptedServer(["/in": [.status(201)]])
        let server = try ScriptedServer(["/in": [.status(307, headers: ["Location: \(other.url("/in"))"])]])
        let fixture = try await fixture()
        let path = try fixture.directory.write("x", to: "a.bin")
        let id = try await upload(path, server.url("/in"), in: fixture) { task in
            if method == "form" { task.fileField = "f" } else { task.method = method }
        }
        let status = try await fixture.status(id, once: [.completed, .failed, .paused])
        #expect(status.state == .failed && status.error?.code == .protocolNotAllowed)
        let message = status.error?.message ?? ""
        #expect(message.contains(":\(server.port)") && message.contains(":\(other.port)"), "\(message)")
        #expect(other.connectionsAccepted == 0)
    }

    @Test("a limit holds for an upload")
    func limit() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let fixture = try await fixture()
        try Resource(size: 50_000_000).write(to: fixture.directory.file("source"))
        let id = try await upload(fixture.directory.file("source"), server.url("/in"), in: fixture) {
            $0.limit = 200_000
        }
        // Without a limit the upload would have ended by then, or would end within a moment.
        try await fixture.running(id, bytes: 400_000)
        let status = try await fixture.status(id)
        #expect(status.state == .active && status.bytesDone < 25_000_000 && status.bytesTotal == 50_000_000)
        _ = try await fixture.queue.apply(.pause, to: [id], by: Self.daemonUser)
        let paused = try await fixture.status(id)
        #expect(paused.state == .paused && paused.reason == .user && paused.attempts == 0)
        _ = try await fixture.queue.apply(.cancel, to: [id], by: Self.daemonUser)
        #expect(try await fixture.status(id).state == .cancelled && server.requests().isEmpty)
    }

    @Test("cookies go to their hosts and paths")
    func cookies() async throws {
        let server = try ScriptedServer(["/in": [.status(201)], "/a": [.status(200, body: "a")]])
        let fixture = try await fixture()
        let cookies = """
            # Netscape HTTP Cookie File
            127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tmine

            #HttpOnly_127.0.0.1\tFALSE\t/in\tFALSE\t0\tdeep\tyes
            example.org\tTRUE\t/\tFALSE\t0\tother\tno
            """
        let source = try fixture.directory.write("x", to: "source")
        let ids = [
            try await upload(source, server.url("/in"), in: fixture) { $0.cookies = cookies },
            try await fixture.add(server.url("/a")) { $0.cookies = cookies.replacing("\n", with: "\r\n") },
        ]
        for id in ids { _ = try await fixture.completed(id) }
        let sent = server.requests(for: "/in").first?.header("cookie")?.split(separator: "; ").sorted()
        #expect(sent == ["deep=yes", "session=mine"])
        #expect(server.requests(for: "/a").first?.header("cookie") == "session=mine")
    }

    // MARK: The source

    @Test("an attempt after the first sends the file of the first or nothing; resume sends it as it is then")
    func changed() async throws {
        let server = try server()
        let fixture = try await fixture()
        let path = fixture.directory.file("source")
        try first.write(to: path)
        let id = try await waiting(path, server, in: fixture)
        try replace(path, by: second)
        let status = try await outcome(of: .resume, id, in: fixture)
        #expect(status.state == .paused && status.reason == .sourceChanged && status.error?.code == .sourceChanged)
        #expect(status.error?.message.contains(path) == true)
        #expect(server.requests().count == 1)
        #expect(try await outcome(of: .resume, id, in: fixture).state == .completed)
        #expect(server.requests().last?.body == second.bytes)
    }

    @Test(
        "a file that was written to, cut, or touched is another; one whose rights or name changed is not",
        arguments: 0..<5)
    func harms(harm: Int) async throws {
        let server = try server()
        let fixture = try await fixture()
        let path = fixture.directory.file("source")
        try first.write(to: path)
        let id = try await waiting(path, server, in: fixture)
        switch harm {
        case 0: #expect(truncate(path, 99_999) == 0)
        case 1: #expect(truncate(path, 100_001) == 0)
        case 2:
            var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
            #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
        case 3: #expect(chmod(path, 0o600) == 0)
        default: #expect(link(path, path + "2") == 0 && unlink(path) == 0 && rename(path + "2", path) == 0)
        }
        let status = try await outcome(of: .resume, id, in: fixture)
        #expect(status.state == (harm < 3 ? .paused : .completed))
        #expect(status.reason == (harm < 3 ? .sourceChanged : nil))
    }

    @Test("it is known in the next life; retry takes the file as it is then")
    func nextLife() async throws {
        let server = try ScriptedServer(["/in": [.status(503), .status(410), .status(201)]])
        let fixture = try await fixture()
        let path = fixture.directory.file("source")
        try first.write(to: path)
        let id = try await waiting(path, server, in: fixture)
        await fixture.queue.stop()
        try replace(path, by: second)
        let next = try QueueFixture.queue(fixture.store, fixture.settings)
        await next.start()
        var last = try next.lastEvent()
        try await go(.resume, id, in: next)
        #expect(try await fixture.status(id, once: [.paused], after: last, in: next).reason == .sourceChanged)
        try replace(path, by: first)
        last = try next.lastEvent()
        try await go(.resume, id, in: next)
        #expect(try await fixture.status(id, once: [.failed], after: last, in: next).error?.code == .http(410))
        try replace(path, by: second)
        try await go(.retry, id, in: next)
        _ = try await fixture.status(id, once: [.completed], in: next)
        #expect(server.requests().map { $0.body == first.bytes } == [true, true, false])
        #expect(server.requests().last?.body == second.bytes)
        await next.stop()
    }

    @Test("another URL takes the file as it is then")
    func otherURL() async throws {
        let server = try ScriptedServer(["/in": [.status(503)], "/other": [.status(201)]])
        let fixture = try await fixture()
        let path = fixture.directory.file("source")
        try first.write(to: path)
        let id = try await waiting(path, server, in: fixture)
        try replace(path, by: second)
        #expect(try await outcome(of: .resume, id, in: fixture).reason == .sourceChanged)
        var changes = TaskChanges()
        changes.url = server.url("/other")
        _ = try await fixture.queue.update(id, by: changes, for: Self.daemonUser)
        _ = try await fixture.completed(id)
        #expect(server.requests(for: "/other").first?.body == second.bytes)
    }

    @Test("a file that is gone pauses its task, which goes on when it is back")
    func gone() async throws {
        let server = try server()
        let fixture = try await fixture()
        let path = fixture.directory.file("source")
        try first.write(to: path)
        let id = try await waiting(path, server, in: fixture)
        #expect(rename(path, path + ".away") == 0)
        let status = try await outcome(of: .resume, id, in: fixture)
        #expect(status.state == .paused && status.reason == .sourceChanged)
        #expect(status.error?.message.contains("no file") == true)
        #expect(rename(path + ".away", path) == 0)
        #expect(try await outcome(of: .resume, id, in: fixture).state == .completed)
    }

    @Test(
        "who may send it is judged at every attempt",
        arguments: ["closed", "link", "directory link", "fifo", "directory"])
    func everyAttempt(harm: String) async throws {
        let server = try server()
        let place = try TemporaryDirectory(mode: 0o755)
        let root = try place.makeDirectory("out/deep")
        try place.makeDirectory("secret")
        let secret = try place.write("secret", to: "secret/source")
        chmod(secret, 0o644)
        let fixture = try await fixture { settings in
            settings.uploadRoots = [place.file("out")]
            // A uid that owns none of these tasks.
            settings.daemonUser = 4_001
        }
        let path = root + "/source"
        try first.write(to: path)
        chmod(path, 0o644)
        let id = try await waiting(path, server, in: fixture, by: Self.other)
        var code = ErrorCode.permissionDenied
        switch harm {
        case "closed":
            // The file of another user, readable by its owner only; the daemon could still read it.
            chmod(path, 0o600)
        case "link": #expect(unlink(path) == 0 && symlink(secret, path) == 0)
        case "directory link":
            #expect(rename(root, root + "2") == 0 && symlink(place.file("secret"), root) == 0)
        case "fifo":
            code = .invalid
            #expect(unlink(path) == 0 && mkfifo(path, 0o644) == 0)
        default:
            code = .invalid
            #expect(unlink(path) == 0 && mkdir(path, 0o755) == 0)
        }
        let status = try await outcome(of: .resume, id, in: fixture, by: Self.other)
        #expect(status.state == .failed && status.error?.code == code)
        #expect(server.requests().count == 1)
    }

    @Test("nobody learns by a refusal what there is outside the roots")
    func noOracle() async throws {
        let place = try TemporaryDirectory(mode: 0o755)
        let root = try place.makeDirectory("out")
        let there = try place.write("a", to: "there")
        #expect(symlink(there, root + "/there") == 0 && symlink(place.file("nothing"), root + "/nothing") == 0)
        var settings = QueueFixture.settings(downloads: place.path)
        settings.uploadRoots = [root]
        settings.daemonUser = 4_001
        let permission = UploadPermission(settings: settings, user: UserIdentity(uid: 4_000, groups: []))
        func refusal(_ path: String) -> TransferError? {
            do throws(TransferError) {
                _ = try permission.open(path)
                return nil
            } catch {
                // It names the path, and is the same otherwise.
                var error = error
                #expect(error.message.contains(path))
                error.message = error.message.replacing(path, with: "PATH")
                return error
            }
        }
        let expected = try #require(refusal(there))
        #expect(expected.code == .permissionDenied)
        for path in [
            place.file("nothing"), place.path, "/dev/null", root + "/there", root + "/nothing", root + "/../nothing",
        ] {
            #expect(refusal(path) == expected, "\(path)")
        }
        // Within the roots the refusal tells whether a file exists.
        #expect(refusal(root + "/none")?.code == .sourceChanged)
    }
}
