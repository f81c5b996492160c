import GRDB
package import TaskModel

/// The result of applying a staged batch.
package struct StagedBatchOutcome: Sendable, Equatable {
    package var added = 0
    package var updated = 0
    package var unchanged = 0
    /// The tasks that the entries cancelled, and the completed ones of an update that they removed.
    package var pruned = 0
    /// The ended tasks whose file is fetched again if it changed.
    package var rechecked: [TaskID] = []
    /// The ids of the added tasks, in the order of their entries.
    package var idRanges: [ClosedRange<Int64>] = []
    /// The pruned tasks; the caller must stop those that are running.
    package var cancelled: [TaskID] = []
    /// The updated tasks; those that are running still use their previous specification.
    package var changed: [TaskID] = []
    /// The updated tasks whose directory changed, with their previous kind and directory. Their part files are in the
    /// previous directory.
    package var moved: [TaskID: TaskSpecification] = [:]
    /// The changes of a dry run; `nil` if they are not listed.
    var planned: PlannedChanges?
    /// See ``Database/setDependency(of:after:steps:)``.
    fileprivate(set) var dependencySteps = Self.mostDependencySteps
    static let mostDependencySteps = 1_000_000

    /// The first changes of a dry run; `nil` for a commit.
    package var plannedChanges: [PlannedChange]? { planned?.list }

    mutating func add(_ ids: ClosedRange<Int64>) {
        added += ids.count
        if let last = idRanges.last, last.upperBound + 1 == ids.lowerBound {
            idRanges[idRanges.count - 1] = last.lowerBound...ids.upperBound
        } else {
            idRanges.append(ids)
        }
    }
}

/// The application of one staged batch to the existing tasks.
struct StagedBatchMerge {
    /// The maximum number of entries read at once, and their approximate number of bytes, so that the memory use of a
    /// commit does not grow with the staged batch.
    private static let (chunk, chunkBytes) = (500, 1 << 20 as Int64)

    let stagedBatch: Int64
    let owner: UInt32
    let batch: String?
    let now: Milliseconds

    private struct Entry {
        var id: Int64
        var stored: StoredEntry
        var path: String?
        var lifecycle: TaskLifecycle
        var secrets: String?
        var hasPieceHashes: Bool
        /// The task that the entry named when the entry was read.
        var task: TaskID?

        var bytes: Int64 { stored.bytes.addingClamped(Int64(secrets?.utf8.count ?? 0)) }

        /// The SQL expression for the task that an entry names, for the owner ?1 and the batch ?2. A task with a key
        /// matches only the entry with that key, not other entries with the same URL.
        private static let named = """
            CASE WHEN staged.key IS NULL THEN (
                SELECT task.id FROM \(GroupSQL.tasks)
                WHERE task.group_id IN (SELECT id FROM fair_share_group WHERE owner = ?1 AND batch = ?2)
                    AND task.entry_fingerprint = staged.entry_fingerprint AND task.url = staged.url
                    AND task.kind = staged.kind AND task.output IS staged.output
                    AND task.url_fingerprint IS staged.url_fingerprint AND task.key IS NULL
                ORDER BY task.id LIMIT 1)
            ELSE (SELECT task.id FROM \(GroupSQL.tasks) WHERE task.owner = ?1 AND task.key = staged.key) END
            """
        /// The query for the task that the entry ?3 names.
        static let namedByOne = "SELECT \(named) FROM staged_entry AS staged WHERE id = ?3"
        /// The query for up to ?5 entries of the staged batch ?3 after the entry ?4.
        static let query = """
            SELECT \(StoredEntry.columnsWithBatch), id, path, state, reason, not_before, secrets,
                EXISTS (SELECT 1 FROM staged_piece_hashes WHERE entry_id = staged.id), \(named)
            FROM staged_entry AS staged WHERE staged_batch_id = ?3 AND id > ?4 ORDER BY id LIMIT ?5
            """

        init(_ row: RowReader) throws(StoreError) {
            stored = try StoredEntry(row, at: 0)
            let first = StoredEntry.columnCount
            id = try row.integer(first)
            path = try row.textOrNil(first + 1)
            lifecycle = try row.lifecycle(first + 2)
            secrets = try row.textOrNil(first + 5)
            hasPieceHashes = try row.integer(first + 6) != 0
            task = try row.integerOrNil(first + 7).map { TaskID($0) }
        }
    }

    /// An existing task that an entry names.
    private struct Known {
        var stored: StoredEntry
        var head: TaskHead
        var secrets: String?
        var startedAt: Milliseconds?
        var hasPieceHashes: Bool

        var bytes: Int64 { stored.bytes.addingClamped(Int64(secrets?.utf8.count ?? 0)) }

        static let query = """
            SELECT \(StoredEntry.columnsWithBatch), task.id, task.owner, state, reason, not_before, json, started_at,
                EXISTS (SELECT 1 FROM task_piece_hashes WHERE task_piece_hashes.task_id = task.id)
            FROM \(GroupSQL.tasks) LEFT JOIN task_secret ON task_secret.task_id = task.id
            """

        init(_ row: RowReader) throws(StoreError) {
            stored = try StoredEntry(row, at: 0)
            let first = StoredEntry.columnCount
            head = TaskHead(
                id: try row.id(first), owner: try row.owner(first + 1), lifecycle: try row.lifecycle(first + 2))
            secrets = try row.textOrNil(first + 5)
            startedAt = try row.integerOrNil(first + 6)
            hasPieceHashes = try row.integer(first + 7) != 0
        }
    }

    /// - Parameter plans: whether to list the changes.
    func run(in database: Database, prune: Bool, plans: Bool = false) throws -> StagedBatchOutcome {
        var outcome = StagedBatchOutcome()
        if plans { outcome.planned = PlannedChanges() }
        try publishInserted(in: database, to: &outcome)
        var additions: [Entry] = []
        // Most owners have no past entries, which makes a query per entry unnecessary.
        let past = try database.hasPastEntries(owner: owner) ? batch : nil
        var last: Int64 = 0
        while true {
            let entries = try database.rows(
                Entry.query, [owner, batch, stagedBatch, last, Self.chunk], within: Self.chunkBytes, \.bytes, Entry.init
            )
            guard let newest = entries.last else { break }
            last = newest.id
            var tasks = try self.known(entries.compactMap(\.task), in: database)
            var fresh = Names()
            for entry in entries {
                let known: Known?
                if fresh.mayHold(entry.stored) {
                    // The entry may name a task that was added after the entry was read.
                    try add(&additions, in: database, to: &outcome, notes: prune)
                    known = try self.known(entry, in: database)
                } else if let id = entry.task {
                    // A task that a previous entry of the chunk has changed is read again.
                    known = try tasks.removeValue(forKey: id) ?? self.known(entry, in: database)
                } else {
                    known = nil
                }
                if let known {
                    try apply(entry, to: known, in: database, &outcome)
                    if prune { try database.setTask(known.head.id.rawValue, ofEntry: entry.id) }
                } else if let past, try !entry.stored.isUpdate(),
                    try database.isPast(entry.stored, owner: owner, batch: past)
                {
                    outcome.unchanged += 1
                } else {
                    additions.append(entry)
                    fresh.insert(entry.stored)
                }
            }
            try add(&additions, in: database, to: &outcome, notes: prune)
        }
        if prune, let batch { try self.prune(batch, in: database, to: &outcome) }
        return outcome
    }

    /// Makes the tasks visible that were already inserted, and records their events.
    private func publishInserted(in database: Database, to outcome: inout StagedBatchOutcome) throws {
        let ranges = try database.rows(
            "SELECT first, last, state, reason FROM staged_task_range WHERE staged_batch_id = ? ORDER BY first",
            [stagedBatch]
        ) { row in
            let (first, last) = (try row.integer(0), try row.integer(1))
            guard first <= last else { throw StoreError.corrupt("a staged batch has an invalid range of tasks") }
            return TaskRange(ids: first...last, state: try row.word(2), reason: try row.wordOrNil(3))
        }
        guard !ranges.isEmpty else { return }
        try database.run("UPDATE fair_share_group SET staged_batch_id = NULL WHERE staged_batch_id = ?", [stagedBatch])
        for range in ranges {
            try database.journalAdded(range, owner: owner, at: now)
            outcome.add(range.ids)
            try plan(range.ids, .add, in: database, to: &outcome)
        }
    }

    /// Lists changes of stored tasks.
    private func plan(
        _ ids: ClosedRange<Int64>, _ action: PlannedChange.Action, in database: Database,
        to outcome: inout StagedBatchOutcome
    ) throws {
        guard let room = outcome.planned?.room, room > 0 else { return }
        let tasks = try database.rows(
            "SELECT id, kind, url, output FROM task WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
            [ids.lowerBound, ids.upperBound, room]
        ) { row in
            PlannedChange(
                action: action, id: action == .add ? nil : try row.id(0), kind: try row.text(1), url: try row.text(2),
                output: try row.textOrNil(3))
        }
        for task in tasks { outcome.planned?.append(task) }
    }

    private static func difference(_ entry: Entry, _ known: Known) throws -> PlannedChange {
        var fields = try known.stored.decoded().differences(to: entry.stored.decoded())
        let secrets = { (json: String?) in
            try json.map { try StoredJSON.decode(TaskSecrets.self, from: $0) } ?? TaskSecrets()
        }
        let named = Set(fields.map(\.field))
        fields += try secrets(known.secrets).differences(to: secrets(entry.secrets)).filter { !named.contains($0) }
            .map { FieldDifference(field: $0, from: nil, to: nil) }
        return PlannedChange(
            action: .update, id: known.head.id, kind: entry.stored.kind, url: entry.stored.url,
            output: entry.stored.output, fields: fields)
    }

    private func apply(
        _ entry: Entry, to known: Known, in database: Database, _ outcome: inout StagedBatchOutcome
    ) throws {
        var entry = entry
        try entry.stored.keepStart(of: known.stored)
        let state = known.head.lifecycle.state
        let isSame = try isSame(known, entry, in: database)
        if batch != nil, state == .completed || (state == .failed && isSame), try entry.stored.isUpdate() {
            if let before = try update(known, to: entry, in: database, &outcome) {
                outcome.moved[known.head.id] = before
            }
            outcome.rechecked.append(known.head.id)
        } else if batch == nil || state == .completed || isSame {
            outcome.unchanged += 1
        } else {
            try outcome.planned?.append(try Self.difference(entry, known))
            let before = try update(known, to: entry, in: database, &outcome)
            outcome.updated += 1
            outcome.changed.append(known.head.id)
            if let before { outcome.moved[known.head.id] = before }
        }
    }

    private func isSame(_ known: Known, _ entry: Entry, in database: Database) throws -> Bool {
        guard known.stored == entry.stored, known.secrets == entry.secrets,
            known.hasPieceHashes == entry.hasPieceHashes
        else { return false }
        return try !known.hasPieceHashes || database.hasPieceHashes(known.head.id, ofEntry: entry.id)
    }

    private func known(_ ids: [TaskID], in database: Database) throws -> [TaskID: Known] {
        if ids.isEmpty { return [:] }
        // Tasks beyond the byte limit are read one by one later.
        let found = try database.rows(
            Known.query + " WHERE task.id IN (SELECT value FROM json_each(?))", [TaskStore.list(Set(ids))],
            within: Self.chunkBytes, \.bytes, Known.init)
        return Dictionary(found.map { ($0.head.id, $0) }) { first, _ in first }
    }

    private func known(_ entry: Entry, in database: Database) throws -> Known? {
        let id = try database.firstRow(Entry.namedByOne, [owner, batch, entry.id]) { try $0.integerOrNil(0) } ?? nil
        guard let id = id.map({ TaskID($0) }) else { return nil }
        return try known([id], in: database)[id]
    }

    /// The keys and fingerprints of a chunk's entries that become new tasks.
    private struct Names {
        private var fingerprints: Set<Int64> = []
        private var keys: Set<String> = []

        /// Returns whether an entry may name the same task as one of the recorded entries.
        func mayHold(_ entry: StoredEntry) -> Bool {
            if let key = entry.key { return keys.contains(key) }
            return entry.entryFingerprint.map(fingerprints.contains) ?? false
        }

        mutating func insert(_ entry: StoredEntry) {
            if let key = entry.key { keys.insert(key) }
            if let fingerprint = entry.entryFingerprint { fingerprints.insert(fingerprint) }
        }
    }

    /// Inserts the new tasks.
    ///
    /// - Parameter notes: whether to record in each staged entry the task that was created from it.
    private func add(
        _ additions: inout [Entry], in database: Database, to outcome: inout StagedBatchOutcome, notes: Bool
    ) throws {
        let entries = additions
        additions = []
        let tasks = try entries.map {
            try FreshTask(entry: $0.stored, path: $0.path, lifecycle: $0.lifecycle, secrets: $0.secrets)
        }
        var next = entries.startIndex
        for range in try database.insert(tasks[...], owner: owner, now: now) {
            try database.journalAdded(range, owner: owner, at: now)
            outcome.add(range.ids)
            try plan(range.ids, .add, in: database, to: &outcome)
            for id in range.ids where entries.indices.contains(next) {
                if entries[next].hasPieceHashes {
                    try database.movePieceHashes(of: TaskID(id), fromEntry: entries[next].id)
                }
                if notes { try database.setTask(id, ofEntry: entries[next].id) }
                next += 1
            }
        }
    }

    /// Updates a task to match an entry.
    ///
    /// - Returns: the previous kind and directory, if the directory for the task's part file has changed.
    private func update(
        _ known: Known, to entry: Entry, in database: Database, _ outcome: inout StagedBatchOutcome
    ) throws -> TaskSpecification? {
        let id = known.head.id
        // The path is the location of the task's bytes and therefore changes only with the requested location.
        let before = try known.stored.decoded()
        let after = try entry.stored.decoded()
        let leavesDirectory = before.kind != after.kind || before.directory != after.directory
        let isMoved = leavesDirectory || before.output != after.output || before.file != after.file
        try database.run(
            "UPDATE task SET \(StoredEntry.assignments), found_checksum = NULL WHERE id = ?",
            StatementArguments(entry.stored.arguments + [id.rawValue]))
        let batchLeft = known.stored.batch != entry.stored.batch ? try database.batch(of: id) : nil
        if known.stored.batch != entry.stored.batch {
            try database.move(id, toBatch: entry.stored.batch, of: owner)
        }
        if isMoved { try database.run("UPDATE task SET path = ? WHERE id = ?", [entry.path, id.rawValue]) }
        if leavesDirectory { try database.forgetBytes(of: id) }
        try database.setSecrets(of: id, to: entry.secrets)
        if known.hasPieceHashes || entry.hasPieceHashes {
            try database.movePieceHashes(of: id, fromEntry: entry.id)
        }
        var head = known.head
        if let lifecycle = lifecycle(of: known, before, after, asNew: entry.lifecycle) {
            if head.lifecycle.state.isEnded {
                try database.apply(head.lifecycle.state == .completed ? .recheck : .retry, to: head, now: now)
            }
            if head.lifecycle.reason == .sourceChanged { try database.forgetSource(of: id) }
            head.lifecycle = lifecycle
            try database.setLifecycle(of: id, to: lifecycle)
        }
        if before.afterTask != after.afterTask {
            try database.setDependency(of: id, after: after.afterTask, steps: &outcome.dependencySteps)
        } else if let after = after.afterTask, head.lifecycle.reason == .dependency {
            try database.setUncheckedDependency(of: id, after: after)
        }
        try database.journal(.updated, of: head, at: now)
        if let batchLeft { try database.journalEnd(of: batchLeft, at: now) }
        guard leavesDirectory else { return nil }
        // The result contains only the needed fields, because there may be a million results.
        var left = TaskSpecification(kind: before.kind, url: "")
        left.directory = before.directory
        return left
    }

    /// Returns the new lifecycle of an updated task; `nil` to keep the current one.
    ///
    /// A task that failed or waits for the user is retried with the new specification, as is a completed one whose file
    /// is to be fetched again if it changed; a cancelled task stays cancelled. A start time has no effect on a task that has already started. A pause by the user is ended only by a
    /// change of the entry's own `paused`.
    private func lifecycle(
        of known: Known, _ before: TaskSpecification, _ after: TaskSpecification, asNew: TaskLifecycle
    ) -> TaskLifecycle? {
        let current = known.head.lifecycle
        switch current.state {
        case .completed: return after.update ? asNew : nil
        case .cancelled: return nil
        case .failed: return asNew
        case _ where before.paused != after.paused: return asNew
        case .paused: return current.reason == .user ? nil : asNew
        case .waiting where current.reason == .dependency: return before.afterTask == after.afterTask ? nil : asNew
        case .waiting where current.reason == .scheduled, .queued where known.startedAt == nil:
            return before.startAt == after.startAt && before.afterTask == after.afterTask ? nil : asNew
        case .waiting, .queued, .active: return nil
        }
    }

    private func prune(_ batch: String, in database: Database, to outcome: inout StagedBatchOutcome) throws {
        let unnamed = try database.rows(
            """
            SELECT \(TaskHead.columns) FROM \(GroupSQL.tasks)
            WHERE task.group_id IN (SELECT id FROM fair_share_group WHERE owner = ? AND batch = ?)
                AND (state NOT IN ('completed', 'failed', 'cancelled')
                    OR (state = 'completed' AND json_extract(specification, '$.update')))
                AND task.id NOT IN (SELECT task_id FROM staged_entry WHERE staged_batch_id = ? AND task_id IS NOT NULL)
            ORDER BY task.id
            """, [owner, batch, stagedBatch], TaskHead.init)
        for head in unnamed {
            try plan(head.id.rawValue...head.id.rawValue, .prune, in: database, to: &outcome)
            outcome.pruned += 1
            if head.lifecycle.state == .completed {
                // Such an entry has no past: it is compared whenever it comes back.
                _ = try database.removeTask(head, at: now)  // a completed task keeps no batch open
            } else {
                try database.apply(.cancel, to: head, now: now)
                outcome.cancelled.append(head.id)
            }
        }
    }
}

extension Database {
    fileprivate func setTask(_ task: Int64, ofEntry entry: Int64) throws {
        try run("UPDATE staged_entry SET task_id = ? WHERE id = ?", [task, entry])
    }
}
