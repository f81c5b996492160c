import FoundationEssentials
import Synchronization
import TaskModel
import TaskStore
import TestSupport
import Testing

@testable import TaskQueue

@Suite("Sets")
struct TaskQueueStagedBatchesTests {
    private static func apply(
        _ entries: [TaskSpecification], batch: String? = "b", prune: Bool = false, dryRun: Bool = false,
        _ fixture: QueueFixture
    ) async throws -> StagedBatchChanges {
        let stagedBatch = try await fixture.queue.beginStagedBatch(batch: batch, by: QueueFixture.me)
        #expect(try await fixture.queue.put(stagedBatch, entries, by: QueueFixture.me) == entries.count)
        return try await fixture.queue.commitStagedBatch(stagedBatch, prune: prune, dryRun: dryRun, by: QueueFixture.me)
    }

    /// Applies a staged batch with one new entry.
    private static func add(_ entry: TaskSpecification, _ fixture: QueueFixture) async throws -> TaskID {
        TaskID(try #require(try await apply([entry], fixture).ids.first).lowerBound)
    }

    private static func entry(_ url: String, _ change: (inout TaskSpecification) -> Void = { _ in })
        -> TaskSpecification
    {
        var entry = TaskSpecification(url: url)
        change(&entry)
        return entry
    }

    @Test("a staged batch is nothing until it is committed, and adds nothing a second time")
    func commit() async throws {
        let server = try ScriptedServer(["/a": [.status(200, body: "a")], "/b": [.status(200, body: "b")]])
        let fixture = try await QueueFixture()
        let entries = [Self.entry(server.url("/a")), Self.entry(server.url("/b"))]
        let dry = try await Self.apply(entries, dryRun: true, fixture)
        #expect((dry.added, dry.ids) == (2, []))
        #expect(try await fixture.queue.counts(for: QueueFixture.me).values.reduce(0, +) == 0)
        let changes = try await Self.apply(entries, fixture)
        #expect((changes.added, changes.updated, changes.unchanged, changes.pruned) == (2, 0, 0, 0))
        let ids = changes.ids.flatMap { Array($0) }.map { TaskID($0) }
        for id in ids { #expect(try await fixture.completed(id).batch == "b") }
        let again = try await Self.apply(entries, prune: true, fixture)
        #expect((again.added, again.updated, again.unchanged, again.pruned) == (0, 0, 2, 0))
        #expect(try await fixture.queue.batches(for: QueueFixture.me).map(\.batch) == ["b"])
        #expect(server.requests().count == 2)
    }

    @Test("a batch counts its running tasks as active")
    func activeTasks() async throws {
        let server = try ScriptedServer(["/a": [.hang], "/b": [.hang]])
        let fixture = try await QueueFixture()
        let changes = try await Self.apply([Self.entry(server.url("/a")), Self.entry(server.url("/b"))], fixture)
        for id in changes.ids.flatMap({ Array($0) }) { _ = try await fixture.status(TaskID(id), once: [.started]) }
        let batch = try #require(try await fixture.queue.batches(for: QueueFixture.me).first)
        #expect(batch.counts.filter { $0.value > 0 } == [.active: 2])
        #expect(batch.outcome == nil)
    }

    @Test("prune ends what the staged batch no longer names, even while it runs")
    func prune() async throws {
        let server = try ScriptedServer(["/a": [.hang], "/b": [.hang]])
        let fixture = try await QueueFixture()
        let first = try await Self.apply(["/a", "/b"].map { Self.entry(server.url($0)) }, fixture)
        let ids = first.ids.flatMap { Array($0) }.map { TaskID($0) }
        for id in ids { try await fixture.running(id, bytes: 0) }
        let changes = try await Self.apply([Self.entry(server.url("/a"))], prune: true, fixture)
        #expect((changes.unchanged, changes.pruned) == (1, 1))
        #expect(try await fixture.status(ids[0]).state == .active)
        let pruned = try await fixture.status(ids[1])
        #expect(pruned.state == .cancelled && pruned.finishedAt != nil)
        let events = try fixture.store.events(after: 0, limit: 99).events.filter { $0.id == ids[1] }
        #expect(events.map(\.type).filter { $0 != .started } == [.added, .cancelled], "told once")
    }

    @Test("a changed entry restarts its task with what it says now, and keeps its bytes")
    func changed() async throws {
        let body = Resource(size: 16_000_000)
        let server = try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await Self.add(Self.entry(server.url("/a")), fixture)
        try await fixture.running(id, bytes: 500_000)
        let changes = try await Self.apply([Self.entry(server.url("/a")) { $0.headers = ["X-New: 1"] }], fixture)
        #expect((changes.added, changes.updated) == (0, 1))
        let status = try await fixture.completed(id)
        #expect(server.requests().map { $0.header("x-new") } == [nil, "1"])
        #expect(status.bytesFetched - body.size < 200_000 && status.attempts == 1)
        #expect(body.difference(fromFileAt: fixture.downloads + "/a") == nil)
    }

    @Test("an entry that changes while its file gets its name finds its task completed as what it was")
    func changedAtTheEnd() async throws {
        let server = try ScriptedServer([
            "/hang": [.hang], "/old": [.status(200, body: "old")], "/new": [.status(200, body: "new")],
        ])
        let fixture = try await QueueFixture()
        // While another task runs, a finished file waits a moment for others before it is synced and named.
        _ = try await fixture.add(server.url("/hang"))
        for number in 0..<5 {
            func entry(_ path: String) -> TaskSpecification {
                Self.entry(server.url(path)) {
                    $0.key = "\(number)"
                    $0.output = "f\(number)"
                }
            }
            let id = try await Self.add(entry("/old"), fixture)
            try await eventually(that: "every byte is here", every: .milliseconds(1)) {
                let status = try await fixture.status(id)
                return status.phase == .publishing || status.state == .completed
            }
            let changes = try await Self.apply([entry("/new")], fixture)
            let status = try await fixture.completed(id)
            let isNew = changes.updated == 1
            #expect(changes.unchanged == (isNew ? 0 : 1))
            #expect(status.url == server.url(isNew ? "/new" : "/old") && status.bytesDone == 3)
            let text = try String(contentsOfFile: fixture.downloads + "/f\(number)", encoding: .utf8)
            #expect(text == (isNew ? "new" : "old"))
        }
    }

    @Test("an entry that names another directory takes its task there, and leaves no part behind")
    func moved() async throws {
        let body = Resource(size: 16_000_000)
        let server = try ScriptedServer(["/a": [.drip(body, after: 1_000_000, bytesPerSecond: 100_000), .serve(body)]])
        let fixture = try await QueueFixture()
        let id = try await Self.add(Self.entry(server.url("/a")), fixture)
        try await fixture.running(id, bytes: 500_000)
        #expect(try await fixture.queue.apply(.pause, to: [id], by: QueueFixture.me).changed == 1)
        let changes = try await Self.apply([Self.entry(server.url("/a")) { $0.directory = "moved" }], fixture)
        #expect(changes.updated == 1)
        let paused = try await fixture.status(id)
        #expect(paused.state == .paused && paused.bytesDone == 0 && fixture.parts.isEmpty)
        #expect(paused.path == fixture.downloads + "/moved/a")
        #expect(try await fixture.queue.apply(.resume, to: [id], by: QueueFixture.me).changed == 1)
        let status = try await fixture.completed(id)
        #expect(status.path == fixture.downloads + "/moved/a" && fixture.parts.isEmpty)
        #expect(body.difference(fromFileAt: fixture.downloads + "/moved/a") == nil)
    }

    @Test("a staged batch belongs to who began it, and is gone once it was aborted or committed")
    func ownership() async throws {
        let fixture = try await QueueFixture()
        let other = Caller(uid: 1001, isAdministrator: false)
        let stagedBatch = try await fixture.queue.beginStagedBatch(batch: nil, by: QueueFixture.me)
        func isUnknown(_ error: any Error) -> Bool {
            guard case .field(let error)? = error as? QueueError else { return false }
            return error.field == "queue"
        }
        await #expect { try await fixture.queue.put(stagedBatch, [Self.entry("http://h/a")], by: other) } throws: {
            isUnknown($0)
        }
        await #expect { try await fixture.queue.abortStagedBatch(stagedBatch, by: other) } throws: { isUnknown($0) }
        try await fixture.queue.abortStagedBatch(stagedBatch, by: QueueFixture.me)
        await #expect {
            try await fixture.queue.commitStagedBatch(stagedBatch, prune: false, dryRun: false, by: QueueFixture.me)
        } throws: {
            isUnknown($0)
        }
    }

    @Test("a wrong entry or batch is named")
    func wrong() async throws {
        let fixture = try await QueueFixture()
        let stagedBatch = try await fixture.queue.beginStagedBatch(batch: "b", by: QueueFixture.me)
        await #expect {
            try await fixture.queue.put(stagedBatch, [Self.entry("http://h/a"), Self.entry("h")], by: QueueFixture.me)
        } throws: { error in
            guard case .field(let error)? = error as? QueueError else { return false }
            return error.field == "entries[1].url"
        }
        await #expect {
            try await fixture.queue.beginStagedBatch(batch: "", by: QueueFixture.me)
        } throws: { error in
            guard case .field(let error)? = error as? QueueError else { return false }
            return error.field == "batch"
        }
    }

    @Test("a staged batch that the quota refuses is not there to be committed")
    func quota() async throws {
        let fixture = try await QueueFixture { $0.quota.tasksPerOwner = 3 }
        let entries = ["a", "b"].map { name in
            var task = TaskSpecification(url: "http://127.0.0.1:9/\(name)")
            task.paused = true
            return task
        }
        let stagedBatch = try await fixture.queue.beginStagedBatch(batch: nil, by: QueueFixture.me)
        #expect(try await fixture.queue.put(stagedBatch, entries, by: QueueFixture.me) == 2)
        await #expect {
            try await fixture.queue.put(stagedBatch, entries, by: QueueFixture.me)
        } throws: {
            ($0 as? QueueError)?.refusal?.code == .quota
        }
        await #expect(throws: QueueError.self) {
            try await fixture.queue.commitStagedBatch(stagedBatch, prune: false, dryRun: false, by: QueueFixture.me)
        }
        #expect(try await fixture.queue.counts(for: QueueFixture.me)[.paused] == 0)
    }

    @Test(
        "batches that grow side by side come to no more tasks than allowed together, and a known one adds none"
    )
    func quotaOfSets() async throws {
        let fixture = try await QueueFixture { $0.quota = Quota(tasksPerOwner: 4, tasksPerBatch: 3) }
        func entries(_ names: String...) -> [TaskSpecification] {
            names.map { name in
                var task = TaskSpecification(url: "http://127.0.0.1:9/\(name)")
                task.paused = true
                return task
            }
        }
        func apply(_ entries: [TaskSpecification], batch: String?) async throws -> StagedBatchChanges {
            let stagedBatch = try await fixture.queue.beginStagedBatch(batch: batch, by: QueueFixture.me)
            _ = try await fixture.queue.put(stagedBatch, entries, by: QueueFixture.me)
            return try await fixture.queue.commitStagedBatch(
                stagedBatch, prune: false, dryRun: false, by: QueueFixture.me)
        }
        func isQuota(_ error: any Error) -> Bool { (error as? QueueError)?.refusal?.code == .quota }
        let stagedBatches = [
            try await fixture.queue.beginStagedBatch(batch: nil, by: QueueFixture.me),
            try await fixture.queue.beginStagedBatch(batch: nil, by: QueueFixture.me),
        ]
        _ = try await fixture.queue.put(stagedBatches[0], entries("a", "b"), by: QueueFixture.me)
        await #expect(throws: QueueError.self) {
            try await fixture.queue.put(stagedBatches[1], entries("c", "d", "e"), by: QueueFixture.me)
        }
        try await fixture.queue.abortStagedBatch(stagedBatches[0], by: QueueFixture.me)
        #expect(try await apply(entries("a", "b", "c"), batch: "x").added == 3)
        // The same entries again add no tasks.
        #expect(try await apply(entries("a", "b", "c"), batch: "x").unchanged == 3)
        await #expect { try await apply(entries("a", "b", "c", "d"), batch: "x") } throws: { isQuota($0) }
        #expect(try await fixture.queue.counts(for: QueueFixture.me)[.paused] == 3)
        var other = entries("d", "e")
        for index in other.indices { other[index].batch = "y" }
        await #expect { try await fixture.queue.add(other, by: QueueFixture.me) } throws: { isQuota($0) }
        #expect(try await fixture.queue.add([other[0]], by: QueueFixture.me).count == 1)
    }

    @Test("a staged batch of which nothing is lastCall is forgotten with all that is in it; one that grows is not")
    func goneClient() async throws {
        let manual = ManualClock()
        let fixture = try await QueueFixture(clock: manual.clock)
        let entries = [TaskSpecification(url: "http://localhost:1/a")]
        let gone = try await fixture.queue.beginStagedBatch(batch: nil, by: QueueFixture.me)
        let grows = try await fixture.queue.beginStagedBatch(batch: nil, by: QueueFixture.me)
        for stagedBatch in [gone, grows] { _ = try await fixture.queue.put(stagedBatch, entries, by: QueueFixture.me) }
        manual.advance(by: TaskQueue.stagedBatchTimeout - 1_000)
        #expect(try await fixture.queue.put(grows, entries, by: QueueFixture.me) == 2)
        try await eventually(that: "the staged batch is forgotten", every: .milliseconds(5)) {
            manual.advance(by: 100)
            return fixture.queue.stagedBatches.withLock { Array($0.lastCalls.keys) } == [grows]
        }
        try await eventually(that: "nothing can be put into it", every: .milliseconds(5)) {
            (try? await fixture.queue.put(gone, entries, by: QueueFixture.me)) == nil
        }
        #expect(try await fixture.queue.put(grows, entries, by: QueueFixture.me) == 3)
    }
}
