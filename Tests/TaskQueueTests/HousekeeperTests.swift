import Foundation
import TaskModel
import TaskStore
import TestSupport
import Testing
import Transfer

@testable import TaskQueue

@Suite("Letting go of the past, and following", .timeLimit(.minutes(1)))
struct HousekeeperTests {
    @Test("of tasks that ended as many are kept as is configured, the newest ends; their files stay")
    func count() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "x")], "/gone": [.status(404)]])
        let fixture = try await QueueFixture { $0.historyCount = 2 }
        for _ in 0..<4 {
            let id = try await fixture.add(server.url("/a"))
            _ = try await fixture.status(id, once: [.completed, .removed])
        }
        try await eventually(that: "two are left") {
            try await fixture.queue.counts(for: QueueFixture.administrator)[.completed] == 2
        }
        #expect(fixture.files.count == 4)
    }

    @Test("what a queue file names of the past is not fetched again, until the whole batch is removed")
    func queueFile() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "x")], "/b": [.status(200, body: "y")]])
        let fixture = try await QueueFixture { $0.historyCount = 1 }
        let entries = ["/a", "/b"].map { TaskSpecification(url: server.url($0)) }
        func apply() async throws -> StagedBatchChanges {
            let set = try await fixture.queue.beginStagedBatch(batch: "nightly", by: QueueFixture.me)
            _ = try await fixture.queue.put(set, entries, by: QueueFixture.me)
            return try await fixture.queue.commitStagedBatch(set, prune: false, dryRun: false, by: QueueFixture.me)
        }
        #expect(try await apply().added == 2)
        try await eventually(that: "one of two is let go of") {
            let counts = try await fixture.queue.counts(for: QueueFixture.administrator)
            return counts[.completed] == 1 && counts.values.reduce(0, +) == 1 && server.requests().count == 2
        }
        #expect(try await apply().unchanged == 2)
        _ = try await fixture.queue.remove(
            matching: TaskFilter(batch: "nightly"), deletesFiles: false, by: QueueFixture.me)
        #expect(try await apply().added == 2)
    }

    @Test("what is too old goes when the daemon's settings say so, with what was fetched of it")
    func age() async throws {
        let manual = ManualClock()
        let resource = Resource(size: 100_000)
        let server = try ScriptedServer(["/a": [.serveThenCut(resource, after: 50_000), .status(404)]])
        let fixture = try await QueueFixture(clock: manual.clock) {
            $0.historyAge = 10_000
            $0.eventAge = 5_000
            $0.retry = .init(attempts: 1, baseDelay: 1, maximumDelay: 1)
        }
        let id = try await fixture.add(server.url("/a"))
        _ = try await fixture.status(id, once: [.failed])
        #expect(try fixture.store.record(id, owner: nil) != nil)
        try await eventually(that: "it is gone", every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try fixture.store.record(id, owner: nil) == nil
        }
        try await eventually(that: "so is its part") { fixture.parts.isEmpty }
        try await eventually(that: "the journal is empty", every: .milliseconds(5)) {
            manual.advance(by: 1_000)
            return try fixture.store.oldestEvent() == nil
        }
    }

    @Test("what is kept for seconds is looked at by the second")
    func shortAge() async throws {
        let manual = ManualClock()
        let server = try ScriptedServer(["/a": [.status(200, body: "x")]])
        let fixture = try await QueueFixture(clock: manual.clock) { $0.historyAge = 5_000 }
        let id = try await fixture.completed(try await fixture.add(server.url("/a"))).id
        let end = manual.now
        try await eventually(that: "it is gone", every: .milliseconds(5)) {
            manual.advance(by: 500)
            return try fixture.store.record(id, owner: nil) == nil
        }
        #expect(manual.now - end < 30_000)
    }

    @Test("secrets of a task that is completed, or removed, are in none of the store's files soon after")
    func erasedSecrets() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "x")]])
        let fixture = try await QueueFixture()
        func isFound() throws -> Bool {
            let state = fixture.directory.path + "/state"
            return try ["dld.db", "dld.db-wal"].contains { name in
                let bytes = try Data(contentsOf: URL(filePath: "\(state)/\(name)"))
                return bytes.range(of: Data("canary".utf8)) != nil
            }
        }
        let ids = [
            try await fixture.add(server.url("/a")) { $0.headers = ["Authorization: canary"] },
            try await fixture.add(server.url("/a")) {
                $0.headers = ["Authorization: canary"]
                $0.paused = true
            },
        ]
        _ = try await fixture.completed(ids[0])
        #expect(try isFound())
        _ = try await fixture.queue.remove([ids[1]], deletesFiles: false, by: QueueFixture.me)
        try await eventually(that: "it is erased") { try !isFound() }
        // The completion of the erasure is recorded afterwards.
        try await eventually(that: "nothing is left to erase") { try !fixture.store.holdsErasedSecrets() }
    }

    @Test("a task starts when the one that it follows has completed, and fails when that fails")
    func following() async throws {
        let server = try ScriptedServer([
            "/a": [.status(200, body: "x")], "/b": [.status(200, body: "y")], "/gone": [.status(404)],
        ])
        let fixture = try await QueueFixture()
        let first = try await fixture.add(server.url("/a")) { $0.paused = true }
        let second = try await fixture.add(server.url("/b")) { $0.afterTask = first }
        #expect(try await fixture.status(second).reason == .dependency)
        _ = try await fixture.queue.apply(.resume, to: [first], by: QueueFixture.me)
        _ = try await fixture.completed(second)
        #expect(server.requests().map(\.path) == ["/a", "/b"])
        let gone = try await fixture.add(server.url("/gone")) { $0.paused = true }
        let after = try await fixture.add(server.url("/b")) { $0.afterTask = gone }
        _ = try await fixture.queue.apply(.resume, to: [gone], by: QueueFixture.me)
        let failed = try await fixture.status(after, once: [.failed])
        #expect(failed.error?.message == "task \(gone), which it depends on, is failed")
    }

    @Test("a task that there is not, or that is another's, cannot be followed")
    func unknown() async throws {
        let fixture = try await QueueFixture()
        let other = try await fixture.add("http://127.0.0.1:1/a", by: Caller(uid: 7, isAdministrator: false)) {
            $0.paused = true
        }
        for id in [other, TaskID(999)] {
            await #expect(throws: QueueError.self) {
                try await fixture.add("http://127.0.0.1:1/b") { $0.afterTask = id }
            }
        }
    }
}
