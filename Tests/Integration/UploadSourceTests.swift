import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Sources and secrets of uploads", .serialized, .timeLimit(.minutes(2)))
struct UploadSourceTests {
    @Test("after kill -9 the file of the first attempt is sent, or nothing until someone says so")
    func killed() async throws {
        let server = try ScriptedServer(["/in": [.hang, .status(201)]])
        let daemon = try await DaemonProcess.started()
        let path = daemon.directory.file("source")
        try Resource(size: 100_000, seed: 1).write(to: path)
        let id = try await daemon.upload(path, server.url("/in"))
        try await daemon.state(of: id, "to send") { $0.bytesDone == 100_000 }
        // Commits are ordered: with this one the record of the source is committed.
        _ = try await daemon.add("--paused", server.url("/other"))
        try await daemon.kill()
        let other = Resource(size: 100_000, seed: 2)
        try other.write(to: path + "2")
        #expect(rename(path + "2", path) == 0)
        try await daemon.start()
        let status = try await daemon.settled(id)
        #expect(status.state == .paused && status.reason == .sourceChanged && status.error?.code == .sourceChanged)
        #expect(server.requests().isEmpty || server.requests().count == 1)
        let asked = server.requests().count
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(server.requests().count == asked + 1 && server.requests().last?.body == other.bytes)
    }

    @Test("a form goes from the command line, its fields from a file")
    func form() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let daemon = try await DaemonProcess.started()
        let path = try daemon.directory.write("x", to: "photo.jpg")
        let fields = try daemon.directory.write("token=s3cret\n\n", to: "fields")
        let id = try await daemon.upload(
            "--form", "title=Sea", "--form", "@\(fields)", "--file-field", "image", path, server.url("/in"))
        let status = try await daemon.settled(id)
        #expect(status.state == .completed)
        let request = try #require(server.requests().first)
        let body = String(decoding: request.body, as: UTF8.self)
        for text in [
            "name=\"title\"\r\n\r\nSea\r\n", "name=\"token\"\r\n\r\ns3cret\r\n",
            "name=\"image\"; filename=\"photo.jpg\"\r\nContent-Type: image/jpeg\r\n\r\nx\r\n",
        ] {
            #expect(body.contains(text), "\(body)")
        }
        #expect(request.method == "POST" && status.bytesDone == Int64(request.body.count))
        let outcome = try await daemon.dlctl("upload", "--method", "put", "--form", "a=b", path, server.url("/in"))
        #expect(outcome.status == .exited(64) && outcome.error.contains("--method"))
    }

    @Test(
        "another user sends what she cannot open herself from nowhere, and each attempt looks again",
        .enabled(if: isRoot))
    func otherUser() async throws {
        let server = try ScriptedServer(["/in": [.status(201)]])
        let daemon = try DaemonProcess(
            configuration: quickRetries + "uploads: {roots: [@DIR@/out]}\ncontrol: {mode: \"0666\"}\n", mode: 0o755)
        let root = try daemon.directory.makeDirectory("out")
        #expect(chmod(root, 0o777) == 0)
        try await daemon.start()
        #expect(chmod(daemon.socket, 0o666) == 0)
        let client = try DaemonProcess.program("dlctl")
        func upload(_ path: String, _ options: [String] = []) async throws -> Outcome {
            try await run(
                [
                    "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", client, "--socket",
                    daemon.socket, "upload", path, server.url("/in"),
                ] + options)
        }
        let secret = try daemon.directory.write("secret", to: "secret")
        let inside = try daemon.directory.write("a", to: "out/inside")
        #expect(chmod(secret, 0o600) == 0 && chmod(inside, 0o644) == 0)
        for path in [secret, "/etc/shadow", daemon.stateDirectory + "/dld.db"] {
            let outcome = try await upload(path)
            let words = "may not upload \(path): see uploads.roots"
            #expect(outcome.status == .exited(77) && outcome.error.contains(words), "\(outcome.error)")
        }
        #expect(symlink(secret, root + "/link") == 0)
        #expect(try await upload(root + "/link").status == .exited(77))
        #expect(try await upload(inside, ["--wait"]).succeeded)
        // A path that was allowed when the task was added may be forbidden when it runs.
        let outcome = try await upload(inside, ["--paused"])
        let id = TaskID(try #require(outcome.lines.first.flatMap { Int64($0) }))
        #expect(unlink(inside) == 0 && symlink(secret, inside) == 0)
        #expect(try await daemon.dlctl("resume", "\(id)").succeeded)
        let status = try await daemon.settled(id)
        #expect(status.state == .failed && status.error?.code == .permissionDenied)
        #expect(server.requests().count == 1)
    }

    @Test("A23: no secret is told by a list, by what is shown, or by the log at its most talkative")
    func secrets() async throws {
        let server = try ScriptedServer(["/in": [.status(500)], "/a": [.status(403, body: "s3cret-answer")]])
        let daemon = try await DaemonProcess.started()
        let path = try daemon.directory.write("x", to: "source")
        let password = try daemon.directory.write("s3cret-password\n", to: "password")
        let headers = try daemon.directory.write("Authorization: Bearer s3cret-header\n", to: "headers")
        let jar = try daemon.directory.write("127.0.0.1\tFALSE\t/\tFALSE\t0\ta\ts3cret-cookie\n", to: "jar")
        let fields = try daemon.directory.write("token=s3cret-field\n", to: "fields")
        let host = "127.0.0.1:\(server.port)"
        let ids = [
            try await daemon.upload("--form", "@\(fields)", "--cookies", jar, path, server.url("/in")),
            try await daemon.upload(
                "--user", "u", "--password-file", password, path, "http://\(host)/in?token=s3cret-token"),
            try await daemon.add("--header", "@\(headers)", "http://\(host)/a?sig=s3cret-signature"),
            try await daemon.add("--cookies", jar, "http://u:s3cret-login@\(host)/a"),
            try await daemon.add("--proxy", "http://u:s3cret-proxy@127.0.0.1:9", server.url("/a")),
        ]
        for id in ids { #expect([.failed, .paused].contains(try await daemon.settled(id).state)) }
        let sent = server.requests()
        #expect(sent.contains { String(decoding: $0.body, as: UTF8.self).contains("s3cret-field") })
        #expect(sent.contains { $0.header("cookie") == "a=s3cret-cookie" })
        #expect(sent.contains { $0.header("authorization") == "Bearer s3cret-header" })
        for arguments in [["list"], ["list", "--json"], ["show"] + ids.map { "\($0)" }, ["show", "--json", "1"]] {
            let outcome = try await daemon.dlctl(arguments)
            #expect(outcome.succeeded && !outcome.output.contains("s3cret") && !outcome.error.contains("s3cret"))
        }
        for id in ids {
            let waited = try await daemon.dlctl("wait", "\(id)")
            #expect(!waited.error.contains("s3cret") && waited.status == .exited(1))
        }
        #expect(!daemon.log.contains("s3cret"))
        #expect(daemon.log.contains("task \(ids[4]) "))
    }
}
