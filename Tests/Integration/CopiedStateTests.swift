import Glibc
import TaskModel
import TestSupport
import Testing

/// Two daemons whose state directories are copies of each other.
@Suite("A copied state directory", .serialized, .timeLimit(.minutes(3)))
struct CopiedStateTests {
    private static let resource = Resource(size: 4 * mebibyte, seed: 10)

    @Test("one fetches the file, the other says who does, asks no server, and knows the file once it is there")
    func copies() async throws {
        let server = try ScriptedServer([
            "/f": [
                .drip(Self.resource, after: mebibyte, bytesPerSecond: 50_000),
                .drip(Self.resource, bytesPerSecond: 400_000),
            ]
        ])
        let configuration = quickRetries.replacing("200ms", with: "1s") + oneConnection
        let first = try await DaemonProcess.started(configuration)
        let id = try await first.add(server.url("/f"))
        try await first.state(of: id, "to begin") { $0.bytesDone > mebibyte }
        #expect(try await first.terminate() == .exited(0))
        let elsewhere = try TemporaryDirectory()
        let state = elsewhere.file("state")
        #expect(try await run(["cp", "-a", first.stateDirectory, state]).succeeded)
        try await first.start()
        try await first.state(of: id, "to go on") { ($0.rate ?? 0) > 0 }
        let second = try DaemonProcess(
            configuration: configuration, stateDirectory: state, downloadDirectory: first.downloads)
        try await second.start()
        let pid = try #require(first.pid)
        let waiting = try await second.state(of: id, "to wait") { $0.error?.code == .partInUse }
        #expect(waiting.state == .waiting || waiting.state == .active)
        #expect(waiting.error?.message.contains("process \(pid) ") == true, "\(String(describing: waiting.error))")
        #expect(waiting.bytesDone > mebibyte / 2 && waiting.attempts <= 1)
        let removed = try await second.dlctl("add", "--paused", "http://127.0.0.1:9/x")
        #expect(removed.succeeded, "it works on whatever else there is")

        #expect(try await first.settled(id).state == .completed)
        #expect(try await second.settled(id).state == .completed)
        #expect(Self.resource.difference(fromFileAt: first.path("f")) == nil)
        #expect(TemporaryDirectory.names(beneath: first.downloads) == ["f"])
        #expect(server.requests(for: "/f").count == 2, "one before the copy, one after it")
    }
}
