import Crypto
import Glibc
import TaskModel
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Downloads that a Metalink on a server describes")
struct MetalinkTaskTests {
    private let body = Resource(size: 200_000)

    private func md5(_ resource: Resource) -> String {
        Insecure.MD5.hash(data: resource.bytes(0..<resource.size))
            .map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// - Parameter content: the description of the file; by default the digest of the body.
    private func metalink(_ urls: [String], name: String = "dir/disk.iso", _ content: String? = nil) -> ScriptedAnswer {
        let urls = urls.map { "<url>\($0)</url>" }.joined()
        let content = content ?? "<hash type='md5'>\(md5(body))</hash>"
        return .status(
            200,
            body: "<metalink xmlns='urn:ietf:params:xml:ns:metalink'><file name='\(name)'>\(content)\(urls)</file>"
                + "</metalink>")
    }

    @Test("the file is fetched from where the Metalink says, held against its digest, and named by it")
    func fetched() async throws {
        let files = try ScriptedServer(["/f": [.serve(body)]])
        let challenge = ScriptedAnswer.status(401, headers: ["WWW-Authenticate: Basic realm=\"x\""])
        let list = metalink([files.url("/none"), files.url("/f")])
        let server = try ScriptedServer(["/d/other.meta4": [challenge, list]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/d/other.meta4")) { task in
            task.metalink = true
            task.user = "me"
            task.password = "secret"
            task.headers = ["Authorization-Token: x", "Cookie: a=b", "Accept-Language: en"]
            task.paused = true
        }
        #expect(try await fixture.status(id).name == "other", "until the Metalink is read")
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        let status = try await fixture.completed(id)
        #expect(status.verified && status.name == "disk.iso")
        #expect(status.url == server.url("/d/other.meta4"))
        #expect(status.bytesFetched == body.size && status.bytesTotal == body.size && status.attempts == 1)
        #expect(fixture.files == ["disk.iso"], "its directory is left out")
        #expect(body.difference(fromFileAt: fixture.downloads + "/disk.iso") == nil)
        // Credentials are sent only to the task's own server.
        let asked = server.requests()
        #expect(asked.map { $0.header("authorization") != nil } == [false, true])
        #expect(asked.allSatisfy { $0.header("cookie") == "a=b" })
        #expect(files.requests().map(\.path) == ["/none", "/f"])
        for request in files.requests() {
            #expect(request.header("authorization") == nil && request.header("cookie") == nil)
            #expect(request.header("authorization-token") == nil && request.header("accept-language") == "en")
        }
    }

    @Test("a file of another size than the Metalink's is refused by its head, and where that is silent when it is here")
    func otherSize() async throws {
        let files = try ScriptedServer(["/f": [.serve(body)], "/c": [.chunked(body)]])
        for path in ["/f", "/c"] {
            let server = try ScriptedServer(["/a.meta4": [metalink([files.url(path)], "<size>200001</size>")]])
            let fixture = try await QueueFixture()
            let id = try await fixture.add(server.url("/a.meta4")) { $0.metalink = true }
            let status = try await fixture.status(id, once: [.failed])
            #expect(status.error?.code == .checksumMismatch)
            #expect(status.error?.message.contains("200000 bytes") == true)
            #expect(fixture.files.isEmpty)
            if path == "/f" { #expect(status.bytesFetched == 0) }
        }
    }

    @Test("what the person said goes before what the Metalink says")
    func outranked() async throws {
        let files = try ScriptedServer(["/mine": [.serve(body)], "/f": [.serve(body)], "/theirs": [.serve(body)]])
        let server = try ScriptedServer([
            "/a": [metalink([files.url("/none"), files.url("/theirs")])],
            "/wrong": [metalink([files.url("/f")], "<hash type='md5'>\(md5(Resource(size: 5)))</hash>")],
            "/right": [metalink([files.url("/f")])],
        ])
        let fixture = try await QueueFixture()
        let named = try await fixture.add(server.url("/a")) { task in
            task.metalink = true
            task.output = "mine.iso"
            task.directory = "isos"
            task.mirrors = [files.url("/mine")]
        }
        #expect(try await fixture.completed(named).path == fixture.downloads + "/isos/mine.iso")
        #expect(files.requests().map(\.path) == ["/none", "/mine"])
        let right = try await fixture.add(server.url("/wrong")) { task in
            task.metalink = true
            task.checksum = "md5:" + md5(body)
            task.output = "right"
        }
        #expect(try await fixture.completed(right).verified)
        let wrong = try await fixture.add(server.url("/right")) { task in
            task.metalink = true
            task.checksum = "md5:" + md5(Resource(size: 5))
            task.output = "wrong"
        }
        #expect(try await fixture.status(wrong, once: [.failed]).error?.code == .checksumMismatch)
        #expect(fixture.files == ["isos", "isos/mine.iso", "right"])
    }

    @Test("the server's suggestion goes before the Metalink's name, and the person's conflict policy holds for it")
    func naming() async throws {
        let files = try ScriptedServer([
            "/f": [.serve(body, headers: ["Content-Disposition: attachment; filename=\"suggested\""])],
            "/g": [.serve(body)],
        ])
        let server = try ScriptedServer([
            "/f": [metalink([files.url("/f")])], "/g": [metalink([files.url("/g")])],
        ])
        let fixture = try await QueueFixture()
        let suggested = try await fixture.add(server.url("/f")) { $0.metalink = true }
        #expect(try await fixture.completed(suggested).name == "suggested")
        try fixture.directory.write("old", to: "downloads/disk.iso")
        let taken = try await fixture.add(server.url("/g")) { task in
            task.metalink = true
            task.onConflict = .fail
        }
        #expect(try await fixture.status(taken, once: [.failed]).error?.code == .nameConflict)
        let renamed = try await fixture.add(server.url("/g")) { $0.metalink = true }
        #expect(try await fixture.completed(renamed).name == "disk (1).iso")
    }

    @Test("without a digest no bytes of two servers are joined; a mirror stands in for one that has nothing")
    func withoutDigest() async throws {
        let large = Resource(size: 12 << 20)
        let (first, second) = (
            try ScriptedServer(["/f": [.serve(large)]]), try ScriptedServer(["/f": [.serve(large)]])
        )
        let server = try ScriptedServer([
            "/a": [metalink([first.url("/f"), second.url("/f")], "<size>\(large.size)</size>")],
            "/b": [metalink(["ftp://127.0.0.1:1/f", first.url("/none"), second.url("/f")], "")],
        ])
        let fixture = try await QueueFixture { $0.segments = .automatic }
        let id = try await fixture.add(server.url("/a")) { $0.metalink = true }
        let alone = try await fixture.completed(id)
        #expect(!alone.verified && second.requests().isEmpty)
        let other = try await fixture.add(server.url("/b")) { $0.metalink = true }
        let turned = try await fixture.completed(other)
        #expect(!turned.verified && second.requests().count >= 1)
        #expect(large.difference(fromFileAt: fixture.downloads + "/disk.iso") == nil)
        #expect(large.difference(fromFileAt: fixture.downloads + "/disk (1).iso") == nil)
    }

    @Test("the digests of pieces that the Metalink has count as those that a task is given")
    func pieces() async throws {
        let files = try ScriptedServer(["/f": [.serve(body)]])
        func pieces(_ resource: Resource) -> String {
            "<pieces type='md5' length='\(body.size)'><hash>\(md5(resource))</hash></pieces>"
        }
        let server = try ScriptedServer([
            "/right": [metalink([files.url("/f")], name: "right", pieces(body))],
            "/wrong": [metalink([files.url("/f")], name: "wrong", pieces(Resource(size: 5)))],
        ])
        let fixture = try await QueueFixture()
        let right = try await fixture.add(server.url("/right")) { $0.metalink = true }
        #expect(try await fixture.completed(right).verified)
        let wrong = try await fixture.add(server.url("/wrong")) { $0.metalink = true }
        #expect(try await fixture.status(wrong, once: [.failed]).error?.code == .checksumMismatch)
        #expect(fixture.files == ["right"])
    }

    @Test(
        "a Metalink that cannot be used fails the task with a word that says why",
        arguments: [
            (.status(404), .http(404)), (.status(200, body: "<html>"), .invalid), (.status(200, body: ""), .invalid),
            (
                .status(
                    200,
                    body: """
                        <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="a"><url>http://h/a</url></file>\
                        <file name="b"><url>http://h/b</url></file></metalink>
                        """), .invalid
            ),
            (.serve(Resource(size: (8 << 20) + 1)), .tooLarge), (.redirect("file:///etc/passwd"), .protocolNotAllowed),
        ] as [(ScriptedAnswer, ErrorCode)])
    func unusable(answer: ScriptedAnswer, code: ErrorCode) async throws {
        let server = try ScriptedServer(["/a.meta4": [answer]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a.meta4")) { $0.metalink = true }
        let status = try await fixture.status(id, once: [.failed])
        #expect(status.error?.code == code)
        #expect(status.error?.message.hasPrefix("the Metalink: ") == true, "\(String(describing: status.error))")
        #expect(status.bytesTotal == nil && status.bytesFetched == 0, "they are the Metalink's, and not the file's")
        #expect(fixture.files.isEmpty && server.requests().count == 1)
    }

    @Test("each attempt asks for the Metalink, and goes on with what is there wherever the file lies by then")
    func anew() async throws {
        let large = Resource(size: 8 << 20)
        let digest = "<hash type='md5'>\(md5(large))</hash>"
        let first = try ScriptedServer(["/f": [.serveThenCut(large, after: 6 << 20), .status(503)]])
        let second = try ScriptedServer(["/f": [.serve(large)]])
        let server = try ScriptedServer([
            "/old": [.redirect("/new")],
            "/new": [metalink([first.url("/f")], digest), .status(503), metalink([second.url("/f")], digest)],
        ])
        let fixture = try await QueueFixture { $0.retry.attempts = 9 }
        let id = try await fixture.add(server.url("/old")) { $0.metalink = true }
        let status = try await fixture.completed(id)
        #expect(status.verified)
        #expect(large.difference(fromFileAt: fixture.downloads + "/disk.iso") == nil)
        #expect(server.requests(for: "/old").count == 3 && server.requests(for: "/new").count == 3)
        #expect(second.bodyBytesSent(for: "/f") < 4 << 20, "what is there is not fetched again")
    }

    @Test("a task that is paused while it waits for the Metalink keeps what it has")
    func paused() async throws {
        let files = try ScriptedServer(["/f": [.serveThenCut(body, after: 120_000), .status(503), .serve(body)]])
        let server = try ScriptedServer(["/a.meta4": [metalink([files.url("/f")]), .hang, metalink([files.url("/f")])]])
        let fixture = try await QueueFixture { $0.retry.attempts = 9 }
        let id = try await fixture.add(server.url("/a.meta4")) { $0.metalink = true }
        try await eventually(that: "the Metalink is asked for again") {
            server.requests().count == 2
        }
        _ = try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me)
        let paused = try await fixture.status(id)
        #expect(paused.state == .paused && paused.bytesDone == 120_000 && paused.bytesTotal == body.size)
        _ = try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me)
        #expect(try await fixture.completed(id).verified)
        #expect(body.difference(fromFileAt: fixture.downloads + "/disk.iso") == nil)
        #expect(files.requests().last?.header("range") != nil)
    }

    @Test("a file that was published just before a crash is known by the Metalink's name, and not fetched again")
    func published() async throws {
        let files = try ScriptedServer(["/f": [.serveThenCut(body, after: 100_000), .serveThenCut(body, after: 0)]])
        let server = try ScriptedServer(["/a.meta4": [metalink([files.url("/f")])]])
        let fixture = try await QueueFixture()
        let id = try await fixture.add(server.url("/a.meta4")) { $0.metalink = true }
        let next = try await fixture.nextLife(of: id, whichFinished: body, as: "disk.iso")
        let asked = files.requests().count
        try await QueueFixture.takeUp(id, in: next)
        let status = try await fixture.status(id, once: [.completed], in: next)
        #expect(files.requests().count == asked)
        #expect(status.path == fixture.downloads + "/disk.iso" && status.verified && status.bytesDone == body.size)
        #expect(fixture.files == ["disk.iso"])
        await next.stop()
    }
}
