import Crypto
import FoundationEssentials
import TaskModel
import TestSupport
import Testing

@Suite("Downloads that are held against checksums, and come from mirrors", .serialized, .timeLimit(.minutes(3)))
struct VerifiedDownloadTests {
    private let resource = Resource(size: 12 * mebibyte + 7)

    private func hex(_ digest: some Sequence<UInt8>) -> String {
        digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private var sha256: String { hex(SHA256.hash(data: resource.bytes)) }

    private func outcome(_ daemon: DaemonProcess, _ arguments: [String]) async throws -> TaskStatus {
        let added = try await daemon.dlctl(["add"] + arguments)
        #expect(added.succeeded, "\(added.error)")
        let id = try #require(added.lines.first.flatMap { Int64($0) })
        return try await daemon.settled(TaskID(id))
    }

    @Test("a list of checksums on the server names the file's, and the file is held against it")
    func checksumList() async throws {
        let list = "0000  other.iso\n\(sha256) *./disk image.iso\n"
        let server = try ScriptedServer([
            "/a/disk%20image.iso?key=1": [.serve(resource)], "/SHA256SUMS": [.status(200, body: list)],
            "/lies": [.status(200, body: list.replacing("\(sha256.prefix(4))", with: "0000"))],
            "/other": [.status(200, body: "\(sha256)  another.iso\n")],
        ])
        let daemon = try await DaemonProcess.started(quickRetries)
        let url = server.url("/a/disk%20image.iso?key=1")
        let right = try await outcome(daemon, ["--checksum-url", server.url("/SHA256SUMS"), url])
        #expect(right.state == .completed)
        #expect(right.verified)
        #expect(resource.difference(fromFileAt: daemon.path("disk image.iso")) == nil)
        let wrong = try await outcome(daemon, ["--checksum-url", server.url("/lies"), "-o", "b", url])
        #expect(wrong.error?.code == .checksumMismatch)
        let unnamed = try await outcome(daemon, ["--checksum-url", server.url("/other"), "-o", "c", url])
        #expect(unnamed.error?.code == .checksumMissing)
        #expect(unnamed.error?.message.contains("the list of checksums") == true)
        let missing = try await outcome(daemon, ["--checksum-url", server.url("/none"), "-o", "d", url])
        #expect(missing.error?.code == .http(404))
        #expect(!exists(daemon.path("b")) && !exists(daemon.path("c")) && !exists(daemon.path("d")))
        daemon.expectTidy()
    }

    @Test("F78: a list names the file by --output or by the name that the server gives it, in the form of gpg")
    func otherNames() async throws {
        let upper = sha256.uppercased()
        let groups = stride(from: 0, to: 64, by: 8).map { String(upper.dropFirst($0).prefix(8)) }
        let list =
            "disk.iso: \(groups.prefix(6).joined(separator: " "))\n          "
            + groups.dropFirst(6).joined(separator: " ") + "\n"
        let disposition = "Content-Disposition: attachment; filename=\"disk.iso\""
        let server = try ScriptedServer([
            "/get?id=1": [.serve(resource, headers: [disposition])], "/get?id=2": [.serve(resource)],
            "/disk.iso.sha256": [.status(200, body: list)],
            "/lies": [.status(200, body: "\(String(repeating: "0", count: 64))  disk.iso\n")],
        ])
        let daemon = try await DaemonProcess.started(quickRetries)
        let url = ["--checksum-url", server.url("/disk.iso.sha256")]
        let named = try await outcome(daemon, url + [server.url("/get?id=1")])
        #expect(named.state == .completed && named.verified, "\(String(describing: named.error))")
        #expect(resource.difference(fromFileAt: daemon.path("disk.iso")) == nil)
        let chosen = try await outcome(daemon, url + ["-o", "disk.iso", "-d", "b", server.url("/get?id=2")])
        #expect(chosen.state == .completed && chosen.verified, "\(String(describing: chosen.error))")
        let wrong = try await outcome(
            daemon, ["--checksum-url", server.url("/lies"), "-d", "c", server.url("/get?id=1")])
        #expect(wrong.error?.code == .checksumMismatch)
        daemon.expectTidy()
    }

    @Test("F78: bad lines of a cookie file are passed over, and dlctl names them")
    func cookieFile() async throws {
        let server = try ScriptedServer(["/f": [.serve(resource)]])
        let daemon = try await DaemonProcess.started(quickRetries)
        let lines = [
            "\u{FEFF}# Netscape HTTP Cookie File", "127.0.0.1\tFALSE\t/\tFALSE\t4102444800.5\ta\t1",
            "127.0.0.1\tFALSE\t/\tFALSE\t\tb\t2", "127.0.0.1\tFALSE\t/\tFALSE\t-1\tc\t3", "garbage s3cret",
            "127.0.0.1 FALSE / FALSE 0 d s3cret",
        ]
        let file = try daemon.directory.write(lines.joined(separator: "\r\n"), to: "cookies")
        let added = try await daemon.dlctl("add", "--wait", "--cookies", file, server.url("/f"))
        #expect(added.succeeded, "\(added.error)")
        #expect(server.requests().first?.header("cookie") == "a=1; b=2; c=3")
        for line in [5, 6] {
            let warning = "\(file):\(line):1: warning: is passed over: it is not in Netscape format, seven fields"
            #expect(added.error.contains(warning), "\(added.error)")
        }
        #expect(!added.error.contains("s3cret") && !daemon.log.contains("s3cret"))
    }

    @Test("a Metalink's file comes from all its mirrors, and of a wrong piece only that is fetched again")
    func metalink() async throws {
        var wrong = resource
        wrong.wrongByte = 5 * mebibyte + 9
        let line = { NetworkLine(roundTrip: 2, rate: 6_000_000) }
        let own = try ScriptedServer(line: line(), ["/f": [.serve(wrong)]])
        let mirror = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let pieces = stride(from: 0, to: resource.size, by: Int64.Stride(mebibyte)).map { start in
            "<hash>\(hex(SHA256.hash(data: resource.bytes(start..<min(start + mebibyte, resource.size)))))</hash>"
        }
        let place = try TemporaryDirectory()
        try place.write(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="disk.iso"><size>\(resource.size)</size>
            <hash type="sha-256">\(sha256)</hash>
            <pieces length="\(mebibyte)" type="sha-256">\(pieces.joined())</pieces>
            <url priority="1">\(own.url("/f"))</url><url priority="2">\(mirror.url("/f"))</url></file></metalink>
            """, to: "disk.meta4")
        let daemon = try await DaemonProcess.started(quickRetries)
        let task = try await outcome(daemon, ["--input", place.file("disk.meta4"), "--connections", "2"])
        #expect(task.state == .completed, "\(String(describing: task.error))")
        #expect(task.verified)
        #expect(resource.difference(fromFileAt: daemon.path("disk.iso")) == nil)
        #expect(task.bytesFetched <= resource.size + 3 * mebibyte)
        #expect(mirror.bodyBytesSent(for: "/f") > mebibyte)
        daemon.expectTidy()
    }

    @Test("a Metalink on a server is read before its file is fetched, and again after SIGKILL: the file ends exact")
    func metalinkByURL() async throws {
        let resource = Resource(size: 40 * mebibyte + 7)
        let line = { NetworkLine(roundTrip: 2, rate: 4_000_000) }
        let first = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let second = try ScriptedServer(line: line(), ["/f": [.serve(resource)]])
        let digest = hex(SHA256.hash(data: resource.bytes(0..<resource.size)))
        let server = try ScriptedServer([
            "/dist/disk.iso.meta4": [
                .status(
                    200,
                    body: """
                        <?xml version="1.0" encoding="UTF-8"?>
                        <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="dist/disk.iso">
                        <size>\(resource.size)</size><hash type="sha-256">\(digest)</hash>
                        <url priority="2">\(second.url("/f"))</url><url priority="1">\(first.url("/f"))</url>
                        </file></metalink>
                        """)
            ]
        ])
        let daemon = try await DaemonProcess.started(quickRetries)
        let id = try await daemon.add("--metalink", "--connections", "2", server.url("/dist/disk.iso.meta4"))
        // By then two seconds have passed, and therefore a commit.
        try await daemon.state(of: id, "to have 24 MiB") { $0.bytesDone >= 24 * mebibyte }
        try await daemon.kill()
        #expect(!exists(daemon.path("disk.iso")) && daemon.partFiles.count == 1)
        try await daemon.start()
        let task = try await daemon.settled(id)
        #expect(task.state == .completed, "\(String(describing: task.error))")
        #expect(task.verified && task.path == daemon.path("disk.iso"))
        #expect(task.url == server.url("/dist/disk.iso.meta4"))
        #expect(resource.difference(fromFileAt: daemon.path("disk.iso")) == nil)
        #expect(server.requests().count == 2)
        let sent = [first, second].map { $0.bodyBytesSent(for: "/f") }
        #expect(sent.allSatisfy { $0 > 4 * mebibyte }, "\(sent)")
        #expect(sent.reduce(0, +) < resource.size / 2 * 3, "what was committed is not fetched again: \(sent)")
        daemon.expectTidy()
    }

    @Test("a mirror takes over where the task's own server has nothing")
    func mirror() async throws {
        let own = try ScriptedServer([:])
        let mirror = try ScriptedServer(["/f": [.serve(resource)]])
        let daemon = try await DaemonProcess.started(quickRetries)
        let task = try await outcome(
            daemon, ["--mirror", mirror.url("/f"), "--checksum", "sha-256:\(sha256)", own.url("/f")])
        #expect(task.state == .completed)
        #expect(task.verified)
        #expect(task.url == own.url("/f"))
        daemon.expectTidy()
    }

    @Test("as many connections are used as a task says")
    func connections() async throws {
        let line = NetworkLine(roundTrip: 10, rate: 2_000_000)
        let server = try ScriptedServer(line: line, ["/f": [.serve(resource)]])
        let daemon = try await DaemonProcess.started()
        let added = try await daemon.dlctl("add", "--connections", "3", server.url("/f"))
        let id = TaskID(try #require(added.lines.first.flatMap { Int64($0) }))
        try await eventually(that: "three connections are at work") { try daemon.task(id).connections == 3 }
        #expect(try await daemon.settled(id).state == .completed)
        #expect(resource.difference(fromFileAt: daemon.path("f")) == nil)
        let single = NetworkLine(roundTrip: 10, rate: 20_000_000)
        let other = try ScriptedServer(line: single, ["/g": [.serve(resource)]])
        let task = try await outcome(daemon, ["--connections", "1", other.url("/g")])
        #expect(task.state == .completed)
        #expect(single.connections == 1)
    }
}
