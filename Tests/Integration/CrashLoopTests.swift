import Glibc
import TaskModel
import TestSupport
import Testing

@Suite("Crashes", .serialized, .timeLimit(.minutes(4)))
struct CrashLoopTests {
    @Test("40 files of mixed sizes survive 25 kills at random moments", arguments: [20_240_607])
    func crashLoop(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let nginx = try await Nginx([.limited("/slow/", bytesPerSecond: Int(3 * mebibyte))])
        let fixed: [Int64] = [0, 1, 2, 4095, 4096, 4097, 65_536, 262_144]
        let resources = (0..<40).map { index in
            let size: Int64 =
                switch index {
                case 0..<8: fixed[index]
                case 8..<28: Int64.random(in: 1...mebibyte, using: &random)
                default: Int64.random(in: 4 * mebibyte...16 * mebibyte, using: &random)
                }
            return Resource(size: size, seed: UInt64(index))
        }
        for (index, resource) in resources.enumerated() { try nginx.publish(resource, as: "f\(index)") }

        let daemon = try await DaemonProcess.started(
            quickRetries + "limits: {active-tasks: 6, connections-per-task: 1}\n")
        let urls = resources.indices.map { nginx.url("/slow/f\($0)") }
        let added = try await daemon.dlctl(["add"] + urls)
        #expect(added.succeeded, "\(added.error)")
        let ids = added.lines.compactMap { Int64($0) }.map { TaskID($0) }
        try #require(ids.count == 40)

        var killsAtWork = 0
        for round in 1...25 {
            let pause = Int.random(in: 20...(round.isMultiple(of: 3) ? 3200 : 900), using: &random)
            try await Task.sleep(for: .milliseconds(pause))
            for (index, resource) in resources.enumerated() {
                let final = daemon.path("f\(index)")
                if exists(final) { #expect(size(of: final) == resource.size, "seed \(seed), round \(round)") }
            }
            if try daemon.tasks().contains(where: { $0.state == .active }) { killsAtWork += 1 }
            try await daemon.kill()
            try await daemon.start()
        }
        // Otherwise the files were too small, or the line too fast, for the test to be meaningful.
        #expect(killsAtWork >= 20, "seed \(seed)")

        for (id, resource) in zip(ids, resources.indices) {
            let task = try await daemon.settled(id, within: .seconds(120))
            #expect(task.state == .completed, "seed \(seed): \(task)")
            #expect(task.attempts <= 1, "seed \(seed): a daemon's end burnt an attempt of \(task)")
            #expect(task.path == daemon.path("f\(resource)"), "seed \(seed)")
            #expect(
                resources[resource].difference(fromFileAt: daemon.path("f\(resource)")) == nil, "seed \(seed)")
        }
        #expect(try daemon.tasks().map(\.id) == ids)
        #expect(
            TemporaryDirectory.names(beneath: daemon.downloads).sorted()
                == resources.indices.map { "f\($0)" }.sorted(), "seed \(seed)")
        daemon.expectTidy()
    }

    @Test("an id that add printed exists after SIGKILL in the same instant")
    func killAfterAdd() async throws {
        let server = try ScriptedServer(["/hang": [.hang]])
        defer { server.stop() }
        let daemon = try await DaemonProcess.started()
        var ids: [TaskID] = []
        for _ in 0..<8 {
            ids.append(try await daemon.add(server.url("/hang")))
            try await daemon.kill()
            try await daemon.start()
            #expect(try daemon.tasks().map(\.id) == ids)
        }
    }
}
