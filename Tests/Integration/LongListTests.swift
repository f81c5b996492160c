import FoundationEssentials
import TaskModel
import TestSupport
import Testing

@Suite("Lists of many URLs", .timeLimit(.minutes(4)))
struct LongListTests {
    private static let count = 10_000

    private func list(_ server: ScriptedServer) -> String {
        (0..<Self.count).map { server.url("/hang?\($0)") + "\n" }.joined()
    }

    private struct Status: Decodable {
        var tasks: [String: Int]
    }

    private func total(_ daemon: DaemonProcess) async throws -> Int {
        let status = try await daemon.dlctl("status", "--json")
        return try JSONDecoder().decode(Status.self, from: Data(status.output.utf8)).tasks.values.reduce(0, +)
    }

    @Test("a daemon that is killed while it takes in a list has all of it or nothing, and goes on as if nothing was")
    func killed() async throws {
        let server = try ScriptedServer(["/hang": [.hang]])
        defer { server.stop() }
        let list = list(server)
        let daemon = try await DaemonProcess.started()
        let clock = ContinuousClock()
        let start = clock.now
        #expect(try await daemon.dlctl(["add", "--input", "-"], input: list).succeeded)
        let whole = clock.now - start
        var expected = Self.count
        var cut = 0
        for round in 1...5 {
            async let adding = daemon.dlctl(["add", "--input", "-"], input: list)
            try await Task.sleep(for: whole * round / 6)
            try await daemon.kill()
            let outcome = try await adding
            try await daemon.start()
            let now = try await total(daemon)
            if outcome.succeeded || now == expected + Self.count {
                // The list was committed, though the response may have been lost.
                expected += Self.count
            } else {
                cut += 1
            }
            #expect(now == expected, "round \(round)")
        }
        #expect(cut > 0)
        let outcome = try await daemon.dlctl(["add", "--input", "-"], input: list)
        let ids = outcome.lines.compactMap { Int64($0) }
        #expect(ids.count == Self.count && zip(ids, ids.dropFirst()).allSatisfy { $0 < $1 })
        #expect(try await total(daemon) == expected + Self.count)
        let first = try await daemon.dlctl("show", "\(ids[0])", "--json")
        #expect(first.output.contains(server.url("/hang?0")))
    }
}
