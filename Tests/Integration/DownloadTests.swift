import Crypto
import FoundationEssentials
import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Downloads", .serialized, .timeLimit(.minutes(3)))
struct DownloadTests {
    @Test("a file arrives byte for byte under the name that the URL gives it")
    func plain() async throws {
        let nginx = try await Nginx()
        let resource = Resource(size: 5 * mebibyte + 3)
        try nginx.publish(resource, as: "disk.img")
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl("add", "--wait", nginx.url("/disk.img"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(resource.difference(fromFileAt: daemon.path("disk.img")) == nil)

        let id = TaskID(try #require(outcome.lines.first.flatMap { Int64($0) }))
        let task = try daemon.task(id)
        #expect(task.state == .completed)
        #expect(task.path == daemon.path("disk.img"))
        #expect(task.bytesDone == resource.size)
        #expect(task.bytesTotal == resource.size)
        #expect(task.bytesFetched == resource.size)
        #expect(task.error == nil)
        #expect(task.owner == getuid())
        #expect(task.finishedAt != nil)
        daemon.expectTidy()
    }

    @Test("several URLs get an id each, in order, as lines or as JSON")
    func several() async throws {
        let server = try ScriptedServer([
            "/a": [.serve(Resource(size: 1000, seed: 1))], "/b": [.serve(Resource(size: 2000, seed: 2))],
        ])
        let daemon = try await DaemonProcess.started()
        let lines = try await daemon.dlctl("add", server.url("/a"), server.url("/b"))
        #expect(lines.lines.compactMap { Int64($0) }.count == 2)
        let json = try await daemon.dlctl("add", "--json", "--directory", "more", server.url("/a"), server.url("/b"))
        struct Added: Decodable { let ids: [TaskID] }
        let added = try JSONDecoder().decode(Added.self, from: Data(json.output.utf8))
        #expect(added.ids.count == 2)
        let literal = try await daemon.dlctl("add", "--paused", "http://me:secret@127.0.0.1:9/a[1-3].iso")
        #expect(literal.error.contains("is taken as one URL; with --glob it stands for 3"), "\(literal.error)")
        #expect(literal.lines.count == 1 && !literal.error.contains("secret"))
        #expect(try await daemon.dlctl(["remove"] + literal.lines).succeeded)
        let waited = try await daemon.dlctl(["wait"] + lines.lines + added.ids.map(\.description))
        #expect(waited.status == .exited(0), "\(waited.error)")
        #expect(Resource(size: 1000, seed: 1).difference(fromFileAt: daemon.path("a")) == nil)
        #expect(Resource(size: 2000, seed: 2).difference(fromFileAt: daemon.path("more/b")) == nil)
        let list = try await daemon.dlctl("list", "--json")
        let tasks = try JSONDecoder().decode([TaskStatus].self, from: Data(list.output.utf8))
        #expect(tasks.map(\.state) == [.completed, .completed, .completed, .completed])
        daemon.expectTidy()
    }

    @Test(
        "F81: the time of a file is its server's, however the server writes it",
        arguments: [
            ("Mon, 01 Mar 1965 12:00:00 GMT", -152_625_600), ("Mon, 15 Jun 2150 01:02:03 GMT", 5_694_541_323),
            ("Sun, 06 Nov 1994 08:49:37 UTC", 784_111_777), ("Sun, 06 Nov 1994 08:49:37 +0000", 784_111_777),
            ("Sun, 06 Nov 94 08:49:37 GMT", 784_111_777), ("Sun Nov  6 08:49:37 1994", 784_111_777),
            ("Sun Nov  6 08:49:37 UTC 1994", 784_111_777),
        ] as [(String, Int)])
    func modificationTime(text: String, seconds: Int) async throws {
        let server = try ScriptedServer([
            "/f": [.serve(Resource(size: 1000), headers: ["Last-Modified: \(text)"])]
        ])
        let daemon = try await DaemonProcess.started()
        #expect(try await daemon.dlctl("add", "--wait", server.url("/f")).succeeded)
        var status = stat()
        #expect(stat(daemon.path("f"), &status) == 0)
        #expect(status.st_mtim.tv_sec == seconds)
    }

    @Test(
        "F81: a start in the hour that clocks skip is after it, and one in the hour that they show twice in the first")
    func startAtChangedClocks() async throws {
        // The zone is written out, since the system may know none.
        let daemon = try DaemonProcess(
            configuration: quickRetries, environment: ["TZ": "CET-1CEST,M3.5.0,M10.5.0/3"])
        try await daemon.start()
        for (text, start) in [
            ("2030-03-31T02:30", 1_901_151_000_000), ("2030-03-31T03:30", 1_901_151_000_000),
            ("2030-10-27T02:30", 1_919_291_400_000), ("2030-10-27T02:30+01:00", 1_919_295_000_000),
        ] as [(String, Int64)] {
            let id = try await daemon.add("--start-at", text, "http://127.0.0.1:1/f")
            #expect(try daemon.task(id).notBefore == start, "\(text)")
        }
    }

    @Test("F81: a file that is not ready yet is asked for until it is, and other files of its host come meanwhile")
    func notReadyYet() async throws {
        let resource = Resource(size: 300_000)
        let waiting = ScriptedAnswer.status(202, headers: ["Retry-After: 2"], body: "wait")
        let server = try ScriptedServer([
            "/f": [waiting, waiting, .serve(resource)], "/other": [.serve(resource)],
            "/SUMS": [
                .status(202, headers: ["Retry-After: 0"]), .status(200, body: "\(Self.checksum(resource))  g\n"),
            ],
            "/g": [.serve(resource)], "/never": [.status(202)],
        ])
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add(server.url("/f"))
        try await daemon.state(of: id, "to wait") { $0.state == .waiting && $0.error?.httpStatus == 202 }
        #expect(try await daemon.dlctl("add", "--wait", server.url("/other")).succeeded)
        #expect(try daemon.task(id).state == .waiting)
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        #expect(server.requests(for: "/f").count == 3)
        let listed = try await daemon.dlctl("add", "--wait", "--checksum-url", server.url("/SUMS"), server.url("/g"))
        #expect(listed.succeeded, "\(listed.error)")
        #expect(try await daemon.settled(daemon.add(server.url("/never"))).error?.code.rawValue == "http-202")
        daemon.expectTidy()
    }

    private static func checksum(_ resource: Resource) -> String {
        SHA256.hash(data: resource.bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    @Test("F81: the zone of an IPv6 address is understood, encoded or not", arguments: ["%25lo", "%lo"])
    func zone(zone: String) async throws {
        let port = try FreePort.next()
        let nginx = try await Nginx(settings: "listen [::1]:\(port);", port: port)
        let resource = Resource(size: 100_000)
        try nginx.publish(resource, as: "f")
        let daemon = try await DaemonProcess.started()
        let id = try await daemon.add("http://[::1\(zone)]:\(port)/f")
        let task = try await daemon.settled(id)
        #expect(task.state == .completed, "\(task)")
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
    }

    @Test("a list of URLs from standard input is queued whole")
    func list() async throws {
        let server = try ScriptedServer([
            "/1": [.serve(Resource(size: 10, seed: 1))], "/2": [.serve(Resource(size: 20, seed: 2))],
        ])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl(
            ["add", "--wait", "--input", "-"], input: "\(server.url("/1"))\n\(server.url("/2"))\n")
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(Resource(size: 10, seed: 1).difference(fromFileAt: daemon.path("1")) == nil)
        #expect(Resource(size: 20, seed: 2).difference(fromFileAt: daemon.path("2")) == nil)
    }

    @Test("files of no byte and of one byte arrive")
    func small() async throws {
        let nginx = try await Nginx()
        try nginx.publish(Resource(size: 0), as: "none")
        try nginx.publish(Resource(size: 1), as: "one")
        let server = try ScriptedServer(["/chunked-none": [.chunked(Resource(size: 0))]])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl(
            "add", "--wait", nginx.url("/none"), nginx.url("/one"), server.url("/chunked-none"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(size(of: daemon.path("none")) == 0)
        #expect(size(of: daemon.path("chunked-none")) == 0)
        #expect(Resource(size: 1).difference(fromFileAt: daemon.path("one")) == nil)
        daemon.expectTidy()
    }

    @Test("a redirect is followed")
    func redirect() async throws {
        let resource = Resource(size: 70_000)
        let server = try ScriptedServer(["/old": [.redirect("/new")], "/new": [.serve(resource)]])
        let daemon = try await DaemonProcess.started()
        let outcome = try await daemon.dlctl("add", "--wait", "-o", "file", server.url("/old"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(resource.difference(fromFileAt: daemon.path("file")) == nil)
    }

    @Test("a wrong checksum fails the task, and no file appears; a right one is said to be verified")
    func checksum() async throws {
        let server = try ScriptedServer(["/file": [.status(200, body: "hello\n")]])
        let daemon = try await DaemonProcess.started()
        let right = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
        let good = try await daemon.add("--checksum", right, "-o", "good", server.url("/file"))
        #expect(try await daemon.settled(good).verified)
        let wrong = "sha256:" + String(repeating: "0", count: 64)
        let bad = try await daemon.add("--checksum", wrong, "-o", "bad", server.url("/file"))
        let task = try await daemon.settled(bad)
        #expect(task.state == .failed)
        #expect(task.error?.code == .checksumMismatch)
        #expect(!exists(daemon.path("bad")))
    }

    @Test("A5: a name that is taken is not overwritten: the newcomer gets a number")
    func conflict() async throws {
        let resource = Resource(size: 500)
        let server = try ScriptedServer(["/file.txt": [.serve(resource)]])
        let daemon = try await DaemonProcess.started()
        try daemon.directory.write("mine", to: "downloads/file.txt")
        let outcome = try await daemon.dlctl("add", "--wait", server.url("/file.txt"))
        #expect(outcome.succeeded, "\(outcome.error)")
        #expect(try text(of: daemon.path("file.txt")) == "mine")
        #expect(resource.difference(fromFileAt: daemon.path("file (1).txt")) == nil)
    }
}
