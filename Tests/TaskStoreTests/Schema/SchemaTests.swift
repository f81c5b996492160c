import GRDB
import TaskModel
import TestSupport
import Testing

@testable import TaskStore

@Suite("Databases of earlier versions")
struct SchemaTests {
    @Test("tasks of the second schema keep what they are, their secrets, their order and their names in queue files")
    func fromSecond() async throws {
        let directory = try await Self.database(
            of: "v2",
            """
            INSERT INTO task (kind, url, url_mark, output, priority, batch, key, host, path, state, reason,
                owner, bytes_done, created_at) VALUES
            ('download', 'https://a.example/1', NULL, 'one', 1, 'b', NULL, 'https://a.example:443', '/d/one',
                'completed', NULL, 1000, 5, 1),
            ('download', 'https://a.example/2', NULL, NULL, 1, 'b', NULL, 'https://a.example:443', '/d/2',
                'queued', NULL, 1000, 0, 2),
            ('download', 'https://b.example/3', NULL, NULL, 2, NULL, 'k', 'https://b.example:443', '/d/3',
                'queued', NULL, 1000, 7, 3),
            ('download', 'https://b.example/4', NULL, NULL, 1, NULL, NULL, 'https://b.example:443', '/d/4',
                'paused', 'user', 1001, 0, 4);
            INSERT INTO task_secret (task_id, json) VALUES (2, '{"user":"u"}');
            INSERT INTO task_resume (task_id, data) VALUES (3, x'01');
            INSERT INTO event (at, type, task_id, owner, state) VALUES (1, 'added', 1, 1000, 'queued');
            INSERT INTO staged_set (owner, batch) VALUES (1000, 'b');
            """)

        let fixture = try StoreFixture(in: directory)
        let store = fixture.store
        let records = try store.page(PageQuery(limit: 10))
        #expect(records.map(\.specification.url).map { $0.suffix(1) } == ["1", "2", "3", "4"])
        #expect(records.map(\.specification.batch) == ["b", "b", nil, nil])
        #expect(records.map(\.owner) == [1000, 1000, 1000, 1001])
        #expect(records.map(\.bytesDone) == [5, 0, 7, 0])
        #expect(try store.counts(owner: nil) == [.completed: 1, .queued: 2, .paused: 1])
        #expect(
            try store.batches(owner: nil) == [
                BatchTotals(batch: "b", counts: [.completed: 1, .queued: 1], bytesDone: 5, bytesTotal: nil)
            ])
        #expect(try store.work(for: TaskID(2))?.secrets.user == "u")
        #expect(try store.work(for: TaskID(3))?.resumeData == [1])
        #expect(try store.events(after: 0, limit: 9).events.map(\.id) == [TaskID(1)])
        let fresh = try await fixture.add("https://b.example/5")
        let group = try #require(try store.readyGroups(of: 1000, limit: 9).first { $0.batch == nil })
        let ready = try store.readyTasks(of: group.id, limit: 9)
        #expect(ready.map(\.id) == [TaskID(3), fresh])
        #expect(ready[0].hostFingerprint == Fingerprint.ofHost("https://b.example:443"))

        while try await store.sweep() {}
        let set = try await store.beginStagedBatch(owner: 1000, batch: "b")
        let entries = [NewTask.sample("https://a.example/1", output: "one"), .sample("https://a.example/2")]
        _ = try await store.put(set, entries, now: 9)
        let outcome = try await store.commitStagedBatch(set, owner: 1000, prune: true, dryRun: true, now: 9)
        #expect(outcome.added == 0 && outcome.pruned == 0)
    }

    @Test("of the seventh schema, what there is of the past is counted for each owner, and what is gone stays known")
    func fromSeventh() async throws {
        let directory = try await Self.database(
            of: "v7",
            """
            INSERT INTO flow (id, owner, completed) VALUES (1, 1000, 1), (2, 1001, 1);
            INSERT INTO task (kind, url, priority, path, state, owner, created_at, finished_at, flow) VALUES
            ('download', 'https://a.example/1', 1, '/d/1', 'completed', 1000, 1, 5, 1),
            ('download', 'https://a.example/2', 1, '/d/2', 'completed', 1001, 1, 6, 2);
            INSERT INTO event (sequence, at, type, task_id, owner, state, count) VALUES
            (30, 1, 'added', 1, 1000, 'queued', 10), (31, 2, 'completed', 1, 1000, 'completed', 1),
            (32, 2, 'completed', 2, 1001, 'completed', 1);
            INSERT INTO past_entry (owner, batch, kind, url) VALUES
            (1000, 'b', 'download', 'https://a.example/0'), (1002, 'b', 'download', 'https://a.example/0');
            """)

        let fixture = try StoreFixture(in: directory)
        let store = fixture.store
        let totals = try store.read { database in
            try database.rows("SELECT owner, events, events_gone, past_entries FROM owner_total ORDER BY owner") {
                row in
                try (0...3).map { try row.integer($0) as Int64 }
            }
        }
        #expect(totals == [[-1, 0, 20, 0], [1000, 11, 0, 1], [1001, 1, 0, 0], [1002, 0, 0, 1]])
        #expect(try store.lastTrimmedEvent(owner: 1003) == 20 && store.firstEnd() == 5)
        #expect(try store.expired(KeptHistory(since: 6, count: 9), limit: 9) == [TaskID(1)])
        #expect(try store.events(after: 0, limit: 99, scope: 1001).events.map(\.sequence) == [32])
    }

    @Test("of the eighth schema, the bytes that are there of downloads are summed for each owner")
    func fromEighth() async throws {
        let directory = try await Self.database(
            of: "v8",
            """
            INSERT INTO flow (id, owner, completed) VALUES (1, 1000, 4), (2, 1001, 1);
            INSERT INTO task (kind, url, priority, state, owner, created_at, bytes_done, flow) VALUES
            ('download', 'https://a.example/1', 1, 'completed', 1000, 1, 5, 1),
            ('download', 'https://a.example/2', 1, 'completed', 1000, 1, \(Int64.max), 1),
            ('download', 'https://a.example/3', 1, 'completed', 1000, 1, \(Int64.max), 1),
            ('upload', 'https://a.example/4', 1, 'completed', 1000, 1, 7, 1),
            ('download', 'https://a.example/5', 1, 'completed', 1001, 1, 9, 2);
            INSERT INTO event (at, type, task_id, owner, state) VALUES (1, 'added', 1, 1000, 'queued');
            """)
        let fixture = try StoreFixture(in: directory)
        let store = fixture.store
        #expect(try store.keptBytes(of: 1000) == 2 * Schema.countedBytes + 5 && store.keptBytes(of: 1001) == 9)
        _ = try await store.remove([TaskID(2), TaskID(3), TaskID(4)], owner: nil, now: 9)
        #expect(try store.keptBytes(of: 1000) == 5)
    }

    @Test("of the ninth schema, the bytes of tasks' records are summed for each owner")
    func fromNinth() async throws {
        let directory = try await Self.database(
            of: "v9",
            """
            INSERT INTO flow (id, owner, failed) VALUES (1, 1000, 2), (2, 1001, 1);
            INSERT INTO task (kind, url, output, path, priority, state, owner, created_at, flow) VALUES
            ('download', 'https://a.example/1', 'ä', '/ä', 1, 'failed', 1000, 1, 1),
            ('download', 'https://a.example/2', NULL, NULL, 1, 'failed', 1000, 1, 1),
            ('download', 'https://a.example/3', NULL, NULL, 1, 'failed', 1001, 1, 2);
            INSERT INTO task_secret (task_id, json) VALUES (2, '{"user":"u"}');
            INSERT INTO task_resume (task_id, data) VALUES (2, x'7B7D');
            INSERT INTO event (at, type, task_id, owner, state) VALUES (1, 'added', 1, 1000, 'queued');
            """)
        let fixture = try StoreFixture(in: directory)
        let store = fixture.store
        #expect(try store.recordBytes(of: 1000) == 19 + 2 + 3 + 19 + 12 + 2)
        #expect(try store.recordBytes(of: 1001) == 19)
        _ = try await store.remove([TaskID(2)], owner: nil, now: 9)
        #expect(try store.recordBytes(of: 1000) == 19 + 2 + 3)
    }

    @Test("of the sixteenth schema, a host's request to wait is that of the tasks that met it")
    func fromSixteenth() async throws {
        let host = Fingerprint.ofHost("https://a.example:443")
        let directory = try await Self.database(
            of: "v16",
            """
            INSERT INTO flow (id, owner, waiting, queued) VALUES (1, 1000, 2, 1);
            INSERT INTO task (kind, url, priority, state, reason, not_before, http_status, owner, created_at, flow,
                host_mark) VALUES
            ('download', 'https://a.example/1', 1, 'waiting', 'retry', 9000, 503, 1000, 1, 1, \(host)),
            ('download', 'https://a.example/2', 1, 'waiting', 'scheduled', 9000, NULL, 1000, 1, 1, \(host)),
            ('download', 'https://a.example/3', 1, 'queued', NULL, NULL, NULL, 1000, 1, 1, \(host));
            INSERT INTO event (at, type, task_id, owner, state) VALUES (1, 'added', 1, 1000, 'queued');
            INSERT INTO host_hold (mark, host, held_until) VALUES (\(host), 'https://a.example:443', 8000), (5, 'x', 8000);
            """)
        let fixture = try StoreFixture(in: directory)
        #expect(
            try fixture.store.holds(now: 7_000) == [
                StoredHold(
                    task: TaskID(1), owner: 1000, fingerprint: host, host: "https://a.example:443", until: 8_000)
            ])
        _ = try await fixture.store.remove([TaskID(1)], owner: nil, now: 7_000)
        #expect(try fixture.number("SELECT count(*) FROM task_hold") == 0)
    }

    @Test("of the tenth schema, the bytes of what is known of past entries are summed for each owner")
    func fromTenth() async throws {
        let directory = try await Self.database(
            of: "v10",
            """
            INSERT INTO past_entry (owner, batch, key, kind, url, output) VALUES
            (1000, 'b', NULL, 'download', 'https://a.example/1', 'ä'),
            (1000, 'b', 'key', 'download', 'https://a.example/2', NULL),
            (1001, 'b', NULL, 'download', 'https://a.example/3', NULL);
            """)
        let fixture = try StoreFixture(in: directory)
        let store = fixture.store
        #expect(try store.read { try $0.pastBytes(of: 1000) } == 20 + 2 + 20 + 3)
        #expect(try store.read { try $0.pastBytes(of: 1001) } == 20)
        try await store.forgetPastEntries(batch: "b", owner: 1000)
        #expect(try store.read { try $0.pastBytes(of: 1000) } == 0)
    }

    @Test("of the fourteenth schema, the events that a webhook was not sent stay so, and journals keep their origins")
    func fromFourteenth() async throws {
        let directory = try await Self.database(
            of: "v14",
            """
            INSERT INTO event (sequence, at, type, task_id, owner, state, count) VALUES
            (10, 1, 'added', 1, 1000, 'queued', 10), (11, 2, 'completed', 1, 1000, 'completed', 1),
            (14, 2, 'added', 2, 1000, 'queued', 3), (15, 2, 'completed', 2, 1000, 'completed', 1);
            INSERT INTO webhook (name, position) VALUES ('a', 8), ('b', 12), ('c', 4);
            INSERT INTO webhook_done (webhook, sequence) VALUES
            ('a', 9), ('a', 11), ('a', 13), ('b', 15);
            INSERT INTO journal_origin (name, last) VALUES ('0123456789abcdef', 4);
            """)
        let fixture = try StoreFixture(in: directory)
        let records = try await fixture.store.openWebhooks(["a", "b", "c"])
        #expect(records["a"]?.position == 13 && records["a"]?.pending == [10, 12])
        #expect(records["b"]?.position == 15 && records["b"]?.pending == [13, 14])
        #expect(records["c"] == WebhookRecord(position: 4))
        #expect(fixture.store.journal.key(of: 4) == "0123456789abcdef-4")
        #expect(fixture.store.journal.key(of: 5) == "\(fixture.store.journal.name)-5")
    }

    /// Creates a database of an earlier version with the rows that `sql` inserts.
    private static func database(of version: String, _ sql: String) async throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let pool = try DatabasePool(path: directory.file("dld.db"))
        try Schema.migrator.migrate(pool, upTo: version)
        try await pool.write { database in try database.execute(sql: sql) }
        try pool.close()
        return directory
    }
}
