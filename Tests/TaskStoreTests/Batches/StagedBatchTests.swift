import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Queue files")
struct StagedBatchTests {
    @discardableResult
    private func apply(
        _ entries: [NewTask], to fixture: StoreFixture, batch: String? = "nightly", owner: UInt32 = 1000,
        prune: Bool = false, dryRun: Bool = false
    ) async throws -> StagedBatchOutcome {
        let stagedBatch = try await fixture.store.beginStagedBatch(owner: owner, batch: batch)
        #expect(try await fixture.store.put(stagedBatch, entries, now: 1_000) == entries.count)
        return try await fixture.store.commitStagedBatch(
            stagedBatch, owner: owner, prune: prune, dryRun: dryRun, now: 5_000)
    }

    private func records(_ fixture: StoreFixture) throws -> [TaskRecord] {
        try fixture.store.page(PageQuery(limit: 10_000))
    }

    private let three = (1...3).map { NewTask.sample("https://example.org/\($0)", output: "\($0)") }

    @Test("a second application adds nothing, writes nothing and tells no one")
    func twice() async throws {
        let fixture = try StoreFixture()
        let first = try await apply(three, to: fixture)
        #expect(first == StagedBatchOutcome(added: 3, idRanges: [1...3]))
        let before = try records(fixture)
        #expect(before.map(\.specification.batch) == ["nightly", "nightly", "nightly"])
        #expect(try await apply(three, to: fixture, prune: true) == StagedBatchOutcome(unchanged: 3))
        #expect(try records(fixture) == before)
        #expect(try fixture.store.lastEvent() == 3)
    }

    @Test("a dry run names what would be added, updated with what differs, and pruned; a commit names nothing")
    func planned() async throws {
        let fixture = try StoreFixture()
        #expect(
            try await apply(three, to: fixture, dryRun: true).plannedChanges?.map(\.url)
                == three.map(\.specification.url))
        try await apply(three, to: fixture)
        var changed = three[0]
        changed.specification.priority = .high
        changed.specification.limit = 2_048
        changed.secrets.password = "secret"
        let fresh = NewTask.sample("https://example.org/new", kind: .upload)
        let entries = [changed, three[1], fresh]
        let outcome = try await apply(entries, to: fixture, prune: true, dryRun: true)
        let planned = try #require(outcome.plannedChanges)
        #expect(planned.map(\.action) == [.update, .add, .prune])
        #expect(planned.map(\.id) == [TaskID(1), nil, TaskID(3)])
        #expect(planned[1].kind == "upload" && planned[1].url == "https://example.org/new")
        #expect(
            Set(planned[0].fields.map { "\($0.field) \($0.from ?? "-") \($0.to ?? "-")" }) == [
                "priority normal high", "limit - 2048", "password-file - -",
            ])
        #expect(try records(fixture).map(\.specification.priority) == [.normal, .normal, .normal])
        #expect(try await apply(entries, to: fixture, prune: true).plannedChanges == nil)
    }

    @Test("a dry run of many entries names the first thousand")
    func plannedMany() async throws {
        let fixture = try StoreFixture()
        let many = (0..<1_500).map { NewTask.sample("https://example.org/\($0)") }
        let outcome = try await apply(many, to: fixture, dryRun: true)
        #expect(outcome.added == 1_500 && outcome.plannedChanges?.count == 1_000)
    }

    @Test("entries may come in parts; the count grows")
    func parts() async throws {
        let fixture = try StoreFixture()
        let stagedBatch = try await fixture.store.beginStagedBatch(owner: 1000, batch: nil)
        #expect(try await fixture.store.put(stagedBatch, [three[0]], now: 1_000) == 1)
        #expect(try await fixture.store.put(stagedBatch, [three[1], three[2]], now: 1_000) == 3)
        #expect(try records(fixture).isEmpty)
        let outcome = try await fixture.store.commitStagedBatch(
            stagedBatch, owner: 1000, prune: false, dryRun: false, now: 1)
        #expect(outcome.idRanges == [1...3])
        #expect(try records(fixture).map(\.specification.output) == ["1", "2", "3"])
        await #expect(throws: StoreError.unknownStagedBatch(stagedBatch)) {
            try await fixture.store.commitStagedBatch(stagedBatch, owner: 1000, prune: false, dryRun: false, now: 1)
        }
    }

    @Test("1,200 entries, more than are read at once, are all applied and all known again")
    func many() async throws {
        let fixture = try StoreFixture()
        let entries = (0..<1_200).map { NewTask.sample("https://example.org/\($0)") }
        #expect(try await apply(entries, to: fixture) == StagedBatchOutcome(added: 1_200, idRanges: [1...1_200]))
        #expect(try await apply(entries, to: fixture, prune: true) == StagedBatchOutcome(unchanged: 1_200))
    }

    @Test("a changed entry updates its task, which keeps its state and its bytes")
    func update() async throws {
        let fixture = try StoreFixture()
        try await apply(three, to: fixture)
        try await fixture.conclude(TaskID(1), .inState(.paused), resumeData: [1])
        var entries = three
        entries[0].specification.priority = .high
        entries[0].specification.checksum = "md5:00112233445566778899aabbccddeeff"
        let before = try fixture.store.work(for: TaskID(1))?.hostFingerprint
        entries[0].host = "https://example.org:8443"
        entries[1].secrets.password = "new"
        let outcome = try await apply(entries, to: fixture)
        #expect(outcome == StagedBatchOutcome(updated: 2, unchanged: 1, changed: [TaskID(1), TaskID(2)]))
        let work = try #require(try fixture.store.work(for: TaskID(1)))
        #expect(work.record.specification.priority == .high)
        #expect(work.record.specification.checksum == "md5:00112233445566778899aabbccddeeff")
        #expect(work.hostFingerprint != before)
        #expect(work.record.lifecycle.state == .paused)
        #expect(work.record.bytesDone == 10)
        #expect(work.resumeData == [1])
        #expect(try fixture.store.work(for: TaskID(2))?.secrets.password == "new")
        #expect(try fixture.store.events(after: 4, limit: 10).events.map(\.type) == [.updated, .updated])
        #expect(try await apply(entries, to: fixture) == StagedBatchOutcome(unchanged: 3))
    }

    @Test("an upload that waits for a word on its source sends it as it is then once its entry changed; others do not")
    func source() async throws {
        for (reason, isForgotten) in [(TaskReason.sourceChanged, true), (.auth, false)] {
            let fixture = try StoreFixture()
            var entry = NewTask.sample(kind: .upload, key: "k")
            try await apply([entry], to: fixture)
            var lifecycle = TaskLifecycle()
            try lifecycle.apply(.start)
            try lifecycle.apply(.block(reason))
            try await fixture.conclude(TaskID(1), lifecycle, resumeData: [1])
            entry.specification.priority = .high
            try await apply([entry], to: fixture)
            let work = try #require(try fixture.store.work(for: TaskID(1)))
            #expect(work.record.lifecycle.state == .queued && (work.resumeData == nil) == isForgotten)
        }
    }

    @Test(
        "ended tasks: a completed one is unchanged, a cancelled one takes what the entry says, a failed one is tried",
        arguments: [TaskState.completed, .failed, .cancelled])
    func ended(state: TaskState) async throws {
        let fixture = try StoreFixture()
        try await apply([three[0].with(password: "p")], to: fixture)
        try await fixture.conclude(TaskID(1), .inState(state))
        var entry = three[0].with(password: "p")
        #expect(try await apply([entry], to: fixture) == StagedBatchOutcome(unchanged: 1))
        entry.specification.priority = .low
        let outcome = try await apply([entry], to: fixture, prune: true)
        #expect(
            outcome
                == (state == .completed
                    ? StagedBatchOutcome(unchanged: 1) : StagedBatchOutcome(updated: 1, changed: [TaskID(1)])))
        #expect(try fixture.states([TaskID(1)]) == [state == .failed ? .queued : state])
        let record = try #require(try fixture.store.record(TaskID(1), owner: nil))
        #expect((record.finishedAt == nil) == (state == .failed))
    }

    @Test("a start that counts from now is put off by no second application, and by a change of its words alone")
    func startThatCountsFromNow() async throws {
        let fixture = try StoreFixture()
        func entry(_ startAt: Milliseconds, _ text: String?, priority: TaskPriority = .normal) -> NewTask {
            var entry = three[0]
            entry.specification.startAt = startAt
            entry.specification.startAtText = text
            entry.specification.priority = priority
            entry.lifecycle = TaskLifecycle(startAt: startAt, now: 1)
            return entry
        }
        func start() throws -> [Milliseconds?] {
            let record = try #require(try fixture.store.record(TaskID(1), owner: nil))
            return [record.lifecycle.notBefore, record.specification.startAt]
        }
        try await apply([entry(9_000, "+2h")], to: fixture)
        #expect(try await apply([entry(9_500, "+2h")], to: fixture) == StagedBatchOutcome(unchanged: 1))
        #expect(try await apply([entry(9_600, "+2h", priority: .low)], to: fixture).updated == 1)
        #expect(try start() == [9_000, 9_000])
        #expect(try await apply([entry(9_700, "+3h", priority: .low)], to: fixture).updated == 1)
        #expect(try start() == [9_700, 9_700])
        #expect(try await apply([entry(9_800, nil, priority: .low)], to: fixture).updated == 1)
        #expect(try start() == [9_800, 9_800])
        #expect(try await apply([entry(9_900, nil, priority: .low)], to: fixture).updated == 1)
    }

    @Test("what history let go of is not fetched again by a file that still names it, until its batch is removed")
    func past() async throws {
        let fixture = try StoreFixture()
        var keyed = three[2]
        keyed.specification.key = "k"
        let entries = [three[0], three[1], keyed]
        try await apply(entries, to: fixture)
        for id in 1...3 {
            try await fixture.conclude(TaskID(Int64(id)), .inState(id == 2 ? .failed : .completed))
        }
        _ = try await fixture.store.remove((1...3).map { TaskID($0) }, owner: nil, keepsEntries: true, now: 6_000)
        let outcome = try await apply(entries, to: fixture, prune: true)
        #expect(outcome.unchanged == 2)
        #expect(outcome.idRanges == [4...4])
        #expect(try records(fixture).map(\.specification.url) == [three[1].specification.url])
        // The entries of another batch or another owner were not fetched.
        #expect(try await apply([three[0]], to: fixture, batch: "weekly").added == 1)
        #expect(try await apply([three[0]], to: fixture, owner: 1001).added == 1)
        try await fixture.store.forgetPastEntries(batch: "nightly", owner: 1001)
        #expect(try await apply(entries, to: fixture, dryRun: true).unchanged == 3)
        try await fixture.store.forgetPastEntries(batch: "nightly", owner: nil)
        #expect(try await apply(entries, to: fixture).added == 2)
    }

    @Test("a batch that its last unfinished task leaves for another one is finished")
    func leftBatch() async throws {
        let fixture = try StoreFixture()
        let keyed = NewTask.sample("https://example.org/1", key: "k")
        try await apply([keyed, .sample("https://example.org/2")], to: fixture, batch: "first")
        try await fixture.conclude(TaskID(2), .inState(.completed))
        let last = try fixture.store.lastEvent()
        #expect(try await apply([keyed], to: fixture, batch: "second").updated == 1)
        let events = try fixture.store.events(after: last, limit: 9).events
        #expect(events.map(\.type) == [.updated, .batchFinished])
        #expect(events.map(\.batch) == ["second", "first"])
        #expect(events.last?.totals == BatchResult(completed: 1, failed: 0, cancelled: 0, bytesDone: 10))
    }

    @Test("an entry that is an update runs its completed or failed task again, which counts from the beginning")
    func rechecked() async throws {
        let fixture = try StoreFixture()
        var entries = three
        for index in entries.indices { entries[index].specification.update = true }
        entries[0].secrets.password = "p"
        try await apply(entries, to: fixture)
        try await fixture.conclude(
            TaskID(1), #require(TaskLifecycle(state: .completed, reason: .unchanged, notBefore: nil)))
        try await fixture.conclude(TaskID(2), .inState(.failed))
        try await fixture.conclude(TaskID(3), .inState(.cancelled))
        let last = try fixture.store.lastEvent()
        let outcome = try await apply(entries, to: fixture)
        #expect(outcome == StagedBatchOutcome(unchanged: 1, rechecked: [TaskID(1), TaskID(2)]))
        #expect(try fixture.states([1, 2, 3].map { TaskID($0) }) == [.queued, .queued, .cancelled])
        let work = try #require(try fixture.store.work(for: TaskID(1)))
        #expect(work.secrets.password == "p" && work.record.bytesDone == 0 && work.record.bytesFetched == 0)
        #expect(work.record.attempts == 0 && work.record.startedAt == nil && work.record.finishedAt == nil)
        let events = try fixture.store.events(after: last, limit: 9).events
        #expect(events.filter { $0.type == .retried }.map(\.id) == [TaskID(1), TaskID(2)])
        // A task that runs is not disturbed.
        #expect(try await apply(entries, to: fixture) == StagedBatchOutcome(unchanged: 3))
    }

    @Test("an entry that is an update is added again once history has removed its task")
    func recheckedPast() async throws {
        let fixture = try StoreFixture()
        for isUpdate in [false, true] {
            var entry = three[isUpdate ? 0 : 1]
            entry.specification.update = isUpdate
            let added = try await apply([entry], to: fixture)
            let id = TaskID(try #require(added.idRanges.first).lowerBound)
            try await fixture.conclude(id, .inState(.completed))
            _ = try await fixture.store.remove([id], owner: nil, keepsEntries: true, now: 6_000)
            #expect(try await apply([entry], to: fixture).added == (isUpdate ? 1 : 0))
        }
    }

    @Test("pruning removes completed updates, and no other completed task")
    func prunedUpdates() async throws {
        let fixture = try StoreFixture()
        var entries = three
        for index in 0...1 { entries[index].specification.update = true }
        try await apply(entries, to: fixture)
        for id in 1...3 { try await fixture.conclude(TaskID(Int64(id)), .inState(.completed)) }
        let planned = try await apply([entries[0]], to: fixture, prune: true, dryRun: true).plannedChanges
        #expect(planned?.map(\.id) == [TaskID(2)])
        let outcome = try await apply([entries[0]], to: fixture, prune: true)
        #expect(outcome == StagedBatchOutcome(pruned: 1, rechecked: [TaskID(1)]))
        #expect(try records(fixture).map(\.id) == [TaskID(1), TaskID(3)])
        #expect(try await apply(entries, to: fixture).added == 1, "an entry that comes back is compared again")
    }

    @Test("what a person removes, a file that names it fetches again")
    func removed() async throws {
        let fixture = try StoreFixture()
        try await apply([three[0]], to: fixture)
        try await fixture.conclude(TaskID(1), .inState(.completed))
        _ = try await fixture.store.remove([TaskID(1)], owner: nil, now: 6_000)
        #expect(try await apply([three[0]], to: fixture).added == 1)
    }

    @Test(
        "when a task runs follows its entry: paused or not, and the time to start until it has started",
        arguments: [
            (false, true, nil, nil, false, TaskState.paused), (true, false, nil, nil, false, .queued),
            (true, false, nil, 9_000, false, .waiting), (false, false, nil, 9_000, false, .waiting),
            (false, false, 9_000, nil, false, .queued), (false, false, nil, 9_000, true, .queued),
            (true, true, nil, 9_000, false, .paused),
        ] as [(Bool, Bool, Milliseconds?, Milliseconds?, Bool, TaskState)])
    func lifecycle(
        wasPaused: Bool, isPaused: Bool, before: Milliseconds?, after: Milliseconds?, hasStarted: Bool,
        state: TaskState
    ) async throws {
        let fixture = try StoreFixture()
        func entry(_ paused: Bool, _ startAt: Milliseconds?) -> NewTask {
            var entry = three[0]
            entry.specification.paused = paused
            entry.specification.startAt = startAt
            entry.lifecycle = TaskLifecycle(paused: paused, startAt: startAt, now: 1)
            return entry
        }
        try await apply([entry(wasPaused, before)], to: fixture)
        if hasStarted {
            let progress = TaskProgress(bytesDone: 1, bytesTotal: nil, bytesFetched: 1, startedAt: 1)
            _ = try await fixture.store.write([.checkpoint(TaskID(1), progress)], now: 1)
        }
        #expect(try await apply([entry(isPaused, after)], to: fixture).updated == 1)
        let record = try #require(try fixture.store.record(TaskID(1), owner: nil))
        #expect(record.lifecycle.state == state)
        #expect(record.lifecycle.notBefore == (state == .waiting ? after : nil))
        #expect(try fixture.store.events(after: 1, limit: 9).events.map(\.state) == [state])
    }

    @Test("what waits for a person is tried with what the entry says now; what a person paused stays paused")
    func blocked() async throws {
        let fixture = try StoreFixture()
        try await apply([three[0], three[1]], to: fixture)
        let progress = TaskProgress(bytesDone: 0, bytesTotal: nil, bytesFetched: 0)
        for (id, reason) in [(TaskID(1), TaskReason.auth), (TaskID(2), .user)] {
            _ = try await fixture.store.write(
                [
                    .concluded(
                        id, progress,
                        TaskConclusion(
                            lifecycle: try #require(TaskLifecycle(state: .paused, reason: reason, notBefore: nil)),
                            attempts: 1, failures: 0))
                ], now: 1)
        }
        try await apply([three[0].with(password: "new"), three[1].with(password: "new")], to: fixture)
        #expect(try fixture.states([TaskID(1), TaskID(2)]) == [.queued, .paused])
    }

    @Test("a completed entry with a secret in its URL is known again, though the secret is erased")
    func completedWithSecret() async throws {
        let fixture = try StoreFixture()
        let entries = [1, 2].map {
            NewTask.sample("https://example.org/a?token=REDACTED").with(
                secretURL: "https://example.org/a?token=\($0)")
        }
        #expect(try await apply(entries, to: fixture).added == 2)
        try await fixture.conclude(TaskID(1), .inState(.completed))
        #expect(try await apply(entries, to: fixture, prune: true) == StagedBatchOutcome(unchanged: 2))
    }

    @Test("an entry is known by its key, wherever it points now; without one by kind, URL and output")
    func identity() async throws {
        let fixture = try StoreFixture()
        try await apply([.sample("https://example.org/1", key: "k"), .sample("https://example.org/2")], to: fixture)
        let outcome = try await apply(
            [
                .sample("https://mirror.example/1", key: "k"), .sample("https://example.org/1"),
                .sample("https://example.org/2", output: "other"), .sample("https://example.org/2", kind: .upload),
            ], to: fixture)
        #expect(outcome == StagedBatchOutcome(added: 3, updated: 1, idRanges: [3...5], changed: [TaskID(1)]))
        #expect(try fixture.store.record(TaskID(1), owner: nil)?.specification.url == "https://mirror.example/1")
    }

    @Test("an entry that stands twice in a file is one task")
    func twiceInOneFile() async throws {
        let fixture = try StoreFixture()
        #expect(
            try await apply([three[0], three[0]], to: fixture)
                == StagedBatchOutcome(added: 1, unchanged: 1, idRanges: [1...1]))
    }

    @Test("A31: the entries of one staged batch that are compared with tasks take up no more than allowed")
    func large() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let quota = Quota(entriesPerStagedBatch: 900)
        let entries = try store.prepare([.sample("https://example.org/" + String(repeating: "a", count: 480))])
        let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: "b")
        _ = try await store.put(stagedBatch, entries, quota: quota, now: 1)
        do {
            _ = try await store.put(stagedBatch, entries, quota: quota, now: 1)
            Issue.record("a second was taken")
        } catch {
            guard case .quota(let message) = error else { throw error }
            #expect(message.contains("900 bytes") && message.contains("divide it"), "\(message)")
        }
        // Entries that are applied at once are compared with no task.
        let free = try await store.beginStagedBatch(owner: 1000, batch: nil)
        for _ in 0..<3 { _ = try await store.put(free, entries, quota: quota, now: 1) }
    }

    @Test("A31: an entry that stands three times in a staged batch is one task, whatever stands between")
    func threeTimes() async throws {
        let fixture = try StoreFixture()
        let (r, p) = ("https://example.org/r", "https://example.org/p")
        #expect(
            try await apply([three[0], three[0], three[0]], to: fixture, prune: true)
                == StagedBatchOutcome(added: 1, unchanged: 2, idRanges: [1...1]))
        let keyed = [NewTask.sample(r, key: "k"), .sample(p, key: "k"), .sample(r, key: "k")]
        #expect(
            try await apply(keyed, to: fixture)
                == StagedBatchOutcome(added: 1, updated: 2, idRanges: [2...2], changed: [TaskID(2), TaskID(2)]))
        #expect(try fixture.store.record(TaskID(2), owner: nil)?.specification.url == r)
        let alike = Array(repeating: NewTask.sample(r, key: "l"), count: 4)
        #expect(try await apply(alike, to: fixture) == StagedBatchOutcome(added: 1, unchanged: 3, idRanges: [3...3]))
        let free = Array(repeating: NewTask.sample(r, key: "m"), count: 4)
        #expect(
            try await apply(free, to: fixture, batch: nil)
                == StagedBatchOutcome(added: 1, unchanged: 3, idRanges: [4...4]))
        // Large entries are not read together.
        let large = NewTask.sample(r, output: "o").with(password: String(repeating: "p", count: 700_000))
        #expect(
            try await apply(Array(repeating: large, count: 5), to: fixture, prune: true).added == 1)
        #expect(try fixture.store.counts(owner: nil) == [.queued: 2, .cancelled: 3])
    }

    @Test("other owners' and other batches' tasks are neither known nor pruned")
    func strangers() async throws {
        let fixture = try StoreFixture()
        try await apply([three[0]], to: fixture, owner: 7)
        try await apply([three[0]], to: fixture, batch: "weekly")
        _ = try await fixture.add(three[0])
        #expect(
            try await apply([three[0]], to: fixture, prune: true) == StagedBatchOutcome(added: 1, idRanges: [4...4]))
        #expect(try fixture.store.counts(owner: nil) == [.queued: 4])
    }

    @Test("prune cancels what is no longer named and has not ended; without it nothing is cancelled")
    func prune() async throws {
        let fixture = try StoreFixture()
        try await apply(three + [.sample("https://example.org/4")], to: fixture)
        try await fixture.conclude(TaskID(3), .inState(.failed))
        try await fixture.conclude(TaskID(4), .inState(.waiting))
        #expect(try await apply([three[0]], to: fixture) == StagedBatchOutcome(unchanged: 1))
        let outcome = try await apply([three[0]], to: fixture, prune: true)
        #expect(outcome == StagedBatchOutcome(unchanged: 1, pruned: 2, cancelled: [TaskID(2), TaskID(4)]))
        #expect(try fixture.states([1, 2, 3, 4].map { TaskID($0) }) == [.queued, .cancelled, .failed, .cancelled])
        #expect(try fixture.store.record(TaskID(2), owner: nil)?.finishedAt == 5_000)
        #expect(try fixture.store.events(after: 6, limit: 10).events.map(\.type) == [.cancelled, .cancelled])
    }

    @Test("a dry run tells the same and changes nothing; the staged batch can still be applied")
    func dryRun() async throws {
        let fixture = try StoreFixture()
        try await apply(three, to: fixture)
        let before = try records(fixture)
        var changed = three[0]
        changed.specification.priority = .high
        let stagedBatch = try await fixture.store.beginStagedBatch(owner: 1000, batch: "nightly")
        _ = try await fixture.store.put(stagedBatch, [changed, .sample("https://example.org/new")], now: 1_000)
        let told = try await fixture.store.commitStagedBatch(
            stagedBatch, owner: 1000, prune: true, dryRun: true, now: 5_000)
        #expect(try records(fixture) == before)
        #expect(try fixture.store.lastEvent() == 3)
        var done = try await fixture.store.commitStagedBatch(
            stagedBatch, owner: 1000, prune: true, dryRun: false, now: 5_000)
        #expect(done.idRanges == [4...4])
        done.idRanges = []
        var unlisted = told
        unlisted.planned = nil
        #expect(unlisted == done)
        #expect(
            unlisted
                == StagedBatchOutcome(
                    added: 1, updated: 1, pruned: 2, cancelled: [TaskID(2), TaskID(3)], changed: [TaskID(1)]))
    }

    @Test("without a batch every entry is a new task, save one whose key is taken")
    func withoutBatch() async throws {
        let fixture = try StoreFixture()
        let entries = [three[0], .sample("https://example.org/k", key: "k"), three[1]]
        #expect(try await apply(entries, to: fixture, batch: nil).idRanges == [1...3])
        let again = try await apply(entries, to: fixture, batch: nil, prune: true)
        #expect(again == StagedBatchOutcome(added: 2, unchanged: 1, idRanges: [4...5]))
        #expect(try fixture.store.counts(owner: nil) == [.queued: 5])
    }

    @Test("the path follows the place that was asked for, and otherwise stays where the bytes are")
    func path() async throws {
        let fixture = try StoreFixture()
        var entry = NewTask.sample(key: "k", output: "a", path: "/d/a")
        try await apply([entry], to: fixture)
        _ = try await fixture.store.write(
            [.checkpoint(TaskID(1), TaskProgress(bytesDone: 1, bytesTotal: 2, bytesFetched: 1, path: "/d/a (1)"))],
            now: 1)
        entry.specification.priority = .high
        try await apply([entry], to: fixture)
        #expect(try fixture.store.record(TaskID(1), owner: nil)?.path == "/d/a (1)")
        entry.specification.directory = "e"
        entry.path = "/d/e/a"
        try await apply([entry], to: fixture)
        #expect(try fixture.store.record(TaskID(1), owner: nil)?.path == "/d/e/a")
    }

    @Test("another owner can neither add to a staged batch nor commit nor abort it; an aborted one is gone")
    func ownership() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: "b")
        await #expect(throws: StoreError.unknownStagedBatch(stagedBatch)) {
            try await store.put(stagedBatch, three, owner: 7, now: 1_000)
        }
        await #expect(throws: StoreError.unknownStagedBatch(stagedBatch)) {
            try await store.commitStagedBatch(stagedBatch, owner: 7, prune: true, dryRun: false, now: 1)
        }
        await #expect(throws: StoreError.unknownStagedBatch(stagedBatch)) {
            try await store.abortStagedBatch(stagedBatch, owner: 7)
        }
        try await store.abortStagedBatch(stagedBatch, owner: 1000)
        await #expect(throws: StoreError.unknownStagedBatch(stagedBatch)) {
            try await store.put(stagedBatch, three, now: 1_000)
        }
        #expect(try records(fixture).isEmpty)
    }

    @Test("a staged batch that was begun before the store was opened again is gone, with its entries")
    func leftovers() async throws {
        let directory = try TemporaryDirectory()
        let first = try TaskStore(directory: directory.path)
        let stagedBatch = try await first.beginStagedBatch(owner: 1000, batch: "b")
        _ = try await first.put(stagedBatch, three, now: 1_000)
        try first.close()
        let second = try StoreFixture(in: directory)
        await #expect(throws: StoreError.unknownStagedBatch(stagedBatch)) {
            try await second.store.put(stagedBatch, three, now: 1_000)
        }
        while try await second.store.sweep() {}
        #expect(try Self.rows("staged_entry", second) == 0)
        #expect(try Self.rows("staged_batch", second) == 0)
        #expect(try await second.store.beginStagedBatch(owner: 1000, batch: "b") != stagedBatch)
    }

    private static func rows(_ table: String, _ fixture: StoreFixture) throws -> Int64? {
        try fixture.store.read { database in
            try database.firstRow("SELECT count(*) FROM \(table)") { try $0.integer(0) }
        }
    }

    @Test("sets that nobody commits are forgotten when their owner has begun some others")
    func abandoned() async throws {
        let fixture = try StoreFixture()
        let first = try await fixture.store.beginStagedBatch(owner: 1000, batch: nil)
        _ = try await fixture.store.put(first, three, now: 1_000)
        let foreign = try await fixture.store.beginStagedBatch(owner: 1001, batch: nil)
        for _ in 1..<TaskStore.stagedBatchesPerOwner {
            _ = try await fixture.store.beginStagedBatch(owner: 1000, batch: nil)
        }
        #expect(try await fixture.store.put(first, three, now: 1_000) == 6)
        _ = try await fixture.store.beginStagedBatch(owner: 1000, batch: nil)
        await #expect(throws: StoreError.unknownStagedBatch(first)) {
            try await fixture.store.put(first, three, now: 1_000)
        }
        #expect(try await fixture.store.put(foreign, three, now: 1_000) == 3)
        while try await fixture.store.sweep() {}
        #expect(try Self.rows("task", fixture) == 3)
        #expect(try Self.rows("staged_batch", fixture) == Int64(TaskStore.stagedBatchesPerOwner + 1))
    }

    @Test("entries without batch and key are in their places before the commit, and nobody sees them")
    func hidden() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: nil)
        let entries = (0..<100).map { NewTask.sample("https://example.org/\($0)", batch: $0 < 50 ? "own" : nil) }
        _ = try await store.put(stagedBatch, entries, now: 1_000)
        let other = try await fixture.add("https://example.org/other")
        _ = try await store.put(stagedBatch, entries, now: 1_000)
        #expect(try Self.rows("task", fixture) == 201)

        #expect(try records(fixture).map(\.id) == [other])
        #expect(try store.record(TaskID(1), owner: nil) == nil)
        #expect(try store.work(for: TaskID(1)) == nil)
        #expect(try store.counts(owner: nil) == [.queued: 1])
        #expect(try store.batches(owner: nil).isEmpty)
        #expect(try store.readyGroups(of: 1000, limit: 10).count == 1)
        #expect(try store.ids(matching: TaskFilter(), owner: nil, running: [], after: nil, limit: 500) == [other])
        #expect(try await store.apply(.pause, to: [TaskID(1)], owner: nil, now: 1).unknown == [TaskID(1)])
        #expect(try await store.remove([TaskID(1)], owner: nil, now: 1).ids.isEmpty)
        #expect(try store.lastEvent() == 1)

        let outcome = try await store.commitStagedBatch(
            stagedBatch, owner: 1000, prune: false, dryRun: false, now: 5_000)
        #expect(outcome == StagedBatchOutcome(added: 200, idRanges: [1...100, 102...201]))
        #expect(try records(fixture).count == 201)
        #expect(try records(fixture)[49].specification.batch == "own")
        #expect(try store.counts(owner: nil) == [.queued: 201])
        #expect(
            try store.batches(owner: nil) == [
                BatchTotals(batch: "own", counts: [.queued: 100], bytesDone: 0, bytesTotal: nil)
            ])
        let events = try store.events(after: 0, limit: 1_000).events
        #expect(events.map(\.sequence) == Array(1...201))
        #expect(events.map(\.id) == [other] + (1...100).map { TaskID($0) } + (102...201).map { TaskID($0) })
        #expect(try store.events(after: 150, limit: 2).events.map(\.id) == [TaskID(151), TaskID(152)])
        while try await store.sweep() {}
        #expect(try records(fixture).count == 201)
        #expect(try Self.rows("staged_batch", fixture) == 0)
    }

    @Test("a dropped staged batch's hidden tasks are deleted a part at a time, and its groups with them")
    func sweep() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let stagedBatch = try await store.beginStagedBatch(owner: 1000, batch: nil)
        for _ in 0..<3 {
            _ = try await store.put(
                stagedBatch, Array(repeating: .sample(lifecycle: TaskLifecycle(paused: true)), count: 4_000), now: 1)
        }
        _ = try await store.put(stagedBatch, [.sample(key: "k"), .sample()], now: 1)
        try await store.abortStagedBatch(stagedBatch)
        var parts = 0
        while try await store.sweep() { parts += 1 }
        #expect(parts == 3, "5,000 rows at most in each")
        for table in ["task", "fair_share_group", "staged_batch", "staged_task_range", "staged_entry"] {
            #expect(try Self.rows(table, fixture) == 0, "\(table)")
        }
        #expect(try await store.add([.sample(key: "k")], now: 1) == [.added(TaskID(12_001))])
    }

    @Test("behind an entry with a key all keep their order")
    func keysAmong() async throws {
        let fixture = try StoreFixture()
        let stagedBatch = try await fixture.store.beginStagedBatch(owner: 1000, batch: nil)
        let names = (0..<6).map { "https://example.org/\($0)" }
        _ = try await fixture.store.put(
            stagedBatch, [.sample(names[0]), .sample(names[1]), .sample(names[2], key: "k"), .sample(names[3])], now: 1)
        _ = try await fixture.store.put(stagedBatch, [.sample(names[4]), .sample(names[5])], now: 1)
        let outcome = try await fixture.store.commitStagedBatch(
            stagedBatch, owner: 1000, prune: false, dryRun: false, now: 1)
        #expect(outcome == StagedBatchOutcome(added: 6, idRanges: [1...6]))
        #expect(try records(fixture).map(\.specification.url) == names)
    }
}
