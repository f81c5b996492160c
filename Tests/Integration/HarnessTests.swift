import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// Tests of the harness itself against curl and plain programs.
@Suite("The harness")
struct HarnessTests {
    @Test("a program's status, output and error come back")
    func outcome() async throws {
        let outcome = try await run(["sh", "-c", "read line; echo \"$line\"; echo no >&2; exit 7"], input: "hello\n")
        #expect(outcome.status == .exited(7))
        #expect(outcome.output == "hello\n")
        #expect(outcome.error == "no\n")
    }

    @Test("a killed program is told from one that ended")
    func killed() async throws {
        let child = try ChildProcess(["sleep", "60"])
        #expect(child.poll() == nil)
        child.kill(SIGKILL)
        #expect(try await child.wait() == .killed(signal: SIGKILL))
    }

    @Test("any part of a resource is what the whole holds at that place, and files are compared byte for byte")
    func resource() throws {
        let resource = Resource(size: 1_500_001, seed: 7)
        let whole = resource.bytes
        #expect(resource.bytes(4090..<9000) == Array(whole[4090..<9000]))
        #expect(resource.bytes(4099..<4100) == [whole[4099]])
        #expect(Resource(size: 4096, seed: 8).bytes != Array(whole[..<4096]))
        let directory = try TemporaryDirectory()
        try resource.write(to: directory.file("a"))
        #expect(resource.difference(fromFileAt: directory.file("a")) == nil)
        var spoilt = whole
        spoilt[1_200_000] ^= 1
        try Data(spoilt).write(to: URL(filePath: directory.file("b")))
        #expect(resource.difference(fromFileAt: directory.file("b"))?.hasSuffix("at byte 1200000") == true)
        #expect(Resource(size: 1_500_000, seed: 7).difference(fromFileAt: directory.file("a")) != nil)
    }

    @Test("the scripted server serves ranges, counts requests and goes through its script")
    func scripted() async throws {
        let resource = Resource(size: 300_000)
        let server = try ScriptedServer([
            "/file": [.serve(resource)],
            "/again": [.status(500), .serve(resource)],
            "/cut": [.serveThenCut(resource, after: 100_000), .serve(resource)],
            "/moved": [.redirect("/file")],
            "/chunked": [.chunked(resource)],
            "/long": [.claim(resource, length: 300_001)],
            "/put": [.status(201)],
        ])
        let directory = try TemporaryDirectory()
        let file = directory.file("out")
        func curl(_ arguments: String...) async throws -> String {
            try await run(["curl", "-s", "-o", file, "-w", "%{http_code}"] + arguments).output
        }
        #expect(try await curl(server.url("/file")) == "200")
        #expect(resource.difference(fromFileAt: file) == nil)
        #expect(try await curl("-r", "1000-1999", server.url("/file")) == "206")
        #expect([UInt8](try Data(contentsOf: URL(filePath: file))) == resource.bytes(1000..<2000))
        #expect(try await curl("-r", "300000-", server.url("/file")) == "416")
        #expect(try await curl("-r", "5-", "-H", "If-Range: \"other\"", server.url("/file")) == "200")
        #expect(try await curl(server.url("/again")) == "500")
        #expect(try await curl(server.url("/again")) == "200")
        #expect(server.requests(for: "/again").count == 2)
        #expect(try await run(["curl", "-s", "-o", file, server.url("/cut")]).status == .exited(18))
        #expect(server.bodyBytesSent(for: "/cut") == 100_000)
        #expect(try await curl("-C", "100000", server.url("/cut")) == "206")
        #expect(try await curl("-L", server.url("/moved")) == "200")
        #expect(try await curl(server.url("/chunked")) == "200")
        #expect(resource.difference(fromFileAt: file) == nil)
        #expect(try await run(["curl", "-s", "-o", file, server.url("/long")]).status == .exited(18))
        #expect(try await curl("-T", file, server.url("/put")) == "201")
        #expect(server.requests(for: "/put").first?.body == resource.bytes)
        #expect(try await curl(server.url("/nothing")) == "404")
    }

    @Test("a hanging answer hangs, a dripping one drips, and a stopped server refuses")
    func slow() async throws {
        let server = try ScriptedServer([
            "/hang": [.hang], "/drip": [.drip(Resource(size: 50_000), bytesPerSecond: 100_000)],
        ])
        #expect(try await run(["curl", "-s", "-m", "0.5", server.url("/hang")]).status == .exited(28))
        let start = ContinuousClock.now
        #expect(try await run(["curl", "-s", "-o", "/dev/null", server.url("/drip")]).succeeded)
        #expect(ContinuousClock.now - start > .milliseconds(400))
        server.stop()
        #expect(try await run(["curl", "-s", server.url("/hang")]).status == .exited(7))
    }

    @Test("nginx serves, limits the rate, takes files by PUT and keeps its log")
    func nginx() async throws {
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: 1_000_000), .dav("/dav/")])
        let resource = Resource(size: 1_000_000)
        try nginx.publish(resource, as: "file")
        let directory = try TemporaryDirectory()
        let file = directory.file("out")
        #expect(try await run(["curl", "-s", "-o", file, nginx.url("/file")]).succeeded)
        #expect(resource.difference(fromFileAt: file) == nil)
        let start = ContinuousClock.now
        #expect(try await run(["curl", "-s", "-o", file, nginx.url("/slow/file")]).succeeded)
        #expect(ContinuousClock.now - start > .milliseconds(500))
        #expect(try await run(["curl", "-sf", "-T", file, nginx.url("/dav/deep/in")]).succeeded)
        #expect(resource.difference(fromFileAt: "\(nginx.uploads)/deep/in") == nil)
        #expect(nginx.accesses(for: "/file").map(\.bodyBytes) == [1_000_000])
        #expect(nginx.accesses().map(\.status) == [200, 200, 201])
    }

    @Test("a power cut keeps what was synced and loses what was not", .enabled(if: isRoot, "only root can mount"))
    func powerCut() async throws {
        let place = try TemporaryDirectory()
        let mountPoint = try place.makeDirectory("disk")
        try await Mount.makeExt4(image: place.file("image"), bytes: 64 * mebibyte)
        let disk = try await Mount.ext4(image: place.file("image"), at: mountPoint)
        let resource = Resource(size: 10_000)
        try resource.write(to: "\(mountPoint)/synced")
        #expect(try await run(["sync", "\(mountPoint)/synced", mountPoint]).succeeded)
        try resource.write(to: "\(mountPoint)/lost")
        try disk.cutPower()
        try await disk.unmount()
        let again = try await Mount.ext4(image: place.file("image"), at: mountPoint)
        #expect(resource.difference(fromFileAt: "\(mountPoint)/synced") == nil)
        #expect(resource.difference(fromFileAt: "\(mountPoint)/lost") != nil)
        try await again.unmount()
    }

    @Test("a small tmpfs fills up, and grows", .enabled(if: isRoot, "only root can mount"))
    func tmpfs() async throws {
        let place = try TemporaryDirectory()
        let mountPoint = try place.makeDirectory("disk")
        let disk = try await Mount.tmpfs(at: mountPoint, bytes: mebibyte)
        #expect(throws: SystemError.self) { try Resource(size: 2 * mebibyte).write(to: "\(mountPoint)/file") }
        try await disk.resize(bytes: 4 * mebibyte)
        try Resource(size: 2 * mebibyte).write(to: "\(mountPoint)/file")
        try await disk.unmount()
    }
}
