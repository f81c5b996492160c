import ControlProtocol
import FoundationEssentials
import TaskModel
import TestSupport
import Testing

@Suite("Uploads", .serialized, .timeLimit(.minutes(2)))
struct UploadTests {
    @Test("a PUT to nginx's dav module arrives byte for byte", arguments: [0, 1, 20 * mebibyte + 7])
    func put(size: Int64) async throws {
        let nginx = try await Nginx([.dav("/dav/")])
        let daemon = try await DaemonProcess.started()
        let resource = Resource(size: size, seed: 3)
        let source = daemon.directory.file("source")
        try resource.write(to: source)
        let outcome = try await daemon.dlctl("upload", "--wait", source, nginx.url("/dav/in/there"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(resource.difference(fromFileAt: "\(nginx.uploads)/in/there") == nil)
        #expect(nginx.accesses().map(\.method) == ["PUT"])
        let task = try #require(try daemon.tasks().first)
        #expect(task.kind == .upload)
        #expect(task.state == .completed)
        #expect(task.path == source)
        #expect(task.bytesDone == size)
        #expect(resource.difference(fromFileAt: source) == nil)
        #expect(daemon.isRunning)
    }

    @Test("standard input and the files beneath a directory are uploaded")
    func inputAndTree() async throws {
        let nginx = try await Nginx([.dav("/dav/")])
        let daemon = try await DaemonProcess.started()
        let input = try await daemon.dlctl(["upload", "--wait", "-", nginx.url("/dav/in")], input: "from a pipe")
        #expect(input.succeeded, "\(input)")
        _ = try daemon.directory.makeDirectory("tree/deep er")
        _ = try daemon.directory.write("one", to: "tree/a")
        _ = try daemon.directory.write("two", to: "tree/deep er/b c")
        let tree = try await daemon.dlctl(
            "upload", "-r", "--wait", daemon.directory.file("tree"), nginx.url("/dav/up/"))
        #expect(tree.succeeded && tree.lines == ["2", "3"], "\(tree)")
        for (path, text) in [("in", "from a pipe"), ("up/a", "one"), ("up/deep er/b c", "two")] {
            let data = try Data(contentsOf: URL(filePath: "\(nginx.uploads)/\(path)"))
            #expect(String(decoding: data, as: UTF8.self) == text)
        }
    }

    @Test("a POST carries the file, its type and its length")
    func post() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let daemon = try await DaemonProcess.started()
        let resource = Resource(size: 300_000, seed: 4)
        try resource.write(to: daemon.directory.file("source"))
        let id = try await daemon.upload(
            "--method", "POST", "--content-type", "application/x-thing", daemon.directory.file("source"),
            server.url("/in"))
        #expect(try await daemon.settled(id).state == .completed)
        let request = try #require(server.requests(for: "/in").first)
        #expect(server.requests(for: "/in").count == 1)
        #expect(request.method == "POST")
        #expect(request.header("content-type") == "application/x-thing")
        #expect(request.header("content-length") == "300000")
        #expect(request.body == resource.bytes)
    }

    @Test("an upload that the server cannot take now is sent again, whole")
    func retried() async throws {
        let server = try ScriptedServer(["/in": [.status(503), .status(201)]])
        let daemon = try await DaemonProcess.started()
        let resource = Resource(size: 100_000, seed: 5)
        try resource.write(to: daemon.directory.file("source"))
        let id = try await daemon.upload(daemon.directory.file("source"), server.url("/in"))
        #expect(try await daemon.settled(id).state == .completed)
        #expect(server.requests(for: "/in").count == 2)
        #expect(server.requests(for: "/in").last?.body == resource.bytes)
    }

    @Test(
        "F79: an upload whose `Expect` is refused completes without it, or fails with the last status",
        arguments: [["--method", "PUT"], ["--method", "POST"], ["--form", "a=b"]], [true, false])
    func refusedExpectation(options: [String], isClosed: Bool) async throws {
        let refusal = ScriptedAnswer.status(417, headers: isClosed ? ["Connection: close"] : [])
        let servers = try (0..<2).map { _ in
            try ScriptedServer(
                continuesRequests: false, ["/in": [refusal, .status(201)], "/full": [refusal, .status(403)]])
        }
        let daemon = try await DaemonProcess.started()
        let resource = Resource(size: 3 * mebibyte, seed: 6)
        try resource.write(to: daemon.directory.file("source"))
        func upload(to url: String) async throws -> TaskStatus {
            let outcome = try await daemon.dlctl(["upload"] + options + [daemon.directory.file("source"), url])
            let number = try #require(outcome.lines.first.flatMap { Int64($0) }, "\(outcome.error)")
            return try await daemon.settled(TaskID(number))
        }
        let sent = try await upload(to: servers[0].url("/in"))
        #expect(sent.state == .completed && sent.attempts == 1, "\(sent)")
        #expect(sent.bytesDone == sent.bytesTotal)
        let requests = servers[0].requests(for: "/in")
        #expect(requests.map { $0.header("expect") } == ["100-continue", nil])
        #expect(requests.last?.body.count ?? 0 >= resource.size)
        let refused = try await upload(to: servers[1].url("/full"))
        #expect(refused.error?.code.rawValue == "http-403", "\(refused)")
    }

    @Test("a source that is not there fails the task and says so")
    func missing() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl("upload", "--wait", daemon.directory.file("nothing"), server.url("/in"))
        #expect(outcome.status != .exited(0))
        #expect(outcome.error.contains("nothing"))
        #expect(server.requests().isEmpty)
        #expect(daemon.isRunning)
    }
}
