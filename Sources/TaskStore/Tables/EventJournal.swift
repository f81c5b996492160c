import GRDB
package import TaskModel

/// A part of the journal.
package struct EventPage: Sendable {
    /// The selected events, in order.
    package var events: [TaskEvent] = []
    /// The sequence number up to which the journal was read.
    package var position: Int64
    /// The largest sequence number of the events that were removed from the journal before it was read; 0 if there is
    /// none.
    package var trimmed: Int64 = 0
}

/// A batch of one owner.
struct OwnedBatch: Hashable {
    var owner: UInt32
    var name: String
}

/// The facts about a task that its events tell beside its state.
struct TaskFacts {
    var owner: UInt32
    var kind: TaskKind
    var batch: String?
    var key: String?
    var url: String
    var path: String?

    /// The columns of ``GroupSQL/tasks`` and of `removed_task`, in the order of ``init(_:)``.
    static let columns = "kind, batch, key, url, path"

    init(_ row: RowReader) throws(StoreError) {
        owner = try row.owner(0)
        kind = try row.word(1)
        batch = try row.textOrNil(2)
        key = try row.textOrNil(3)
        url = try row.text(4)
        path = try row.textOrNil(5)
    }
}

extension Database {
    /// Records a task's event in the transaction that makes the change.
    func journal(
        _ type: TaskEvent.Kind, of task: TaskHead, error: TaskFailure? = nil, at now: Milliseconds
    ) throws {
        let lifecycle = task.lifecycle
        try run(
            """
            INSERT INTO event (
                at, type, task_id, owner, state, reason, error_code, error_message, http_status, bytes_done,
                bytes_total)
            SELECT ?1, ?2, id, owner, ?4, ?5, ?6, ?7, ?8, bytes_done, bytes_total FROM task WHERE id = ?3
            """,
            StatementArguments(
                [now, type.rawValue, task.id.rawValue, lifecycle.storedState.rawValue, lifecycle.reason?.rawValue]
                    + error.arguments))
        switch type {
        case .completed, .failed, .cancelled:
            if let batch = try batch(of: task.id) { try journalEnd(of: batch, at: now) }
        default: break
        }
    }

    /// Removes a task, and records the removal together with the task's facts.
    ///
    /// - Returns: the batch that may have ended with it, for ``journalEnd(of:at:)``.
    func removeTask(_ task: TaskHead, at now: Milliseconds) throws -> OwnedBatch? {
        try journal(.removed, of: task, at: now)
        try run(
            """
            INSERT INTO removed_task (task_id, owner, \(TaskFacts.columns))
            SELECT task.id, task.owner, \(TaskFacts.columns) FROM \(GroupSQL.tasks) WHERE task.id = ?
            """, [task.id.rawValue])
        let batch = try task.lifecycle.state.isEnded ? nil : batch(of: task.id)
        try run("DELETE FROM task WHERE id = ?", [task.id.rawValue])
        return batch
    }

    /// Records the addition of tasks like ``journal(_:of:error:at:)``, in one row that stands for one sequence
    /// number per task.
    func journalAdded(_ tasks: TaskRange, owner: UInt32, at now: Milliseconds) throws {
        try run(
            """
            INSERT INTO event (sequence, at, type, task_id, owner, state, reason, count, bytes_done)
            VALUES (
                ?7 + coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0), ?1, ?2, ?3, ?4, ?5, ?6, ?7,
                0)
            """,
            [
                now, TaskEvent.Kind.added.rawValue, tasks.ids.lowerBound, owner, tasks.state.rawValue,
                tasks.reason?.rawValue, tasks.ids.count,
            ])
    }

    // MARK: Batches

    /// Returns the batch of a task; `nil` if it has none.
    func batch(of id: TaskID) throws -> OwnedBatch? {
        try firstRow("SELECT task.owner, batch FROM \(GroupSQL.tasks) WHERE task.id = ?", [id.rawValue]) { row in
            let owner = try row.owner(0)
            return try row.textOrNil(1).map { OwnedBatch(owner: owner, name: $0) }
        } ?? nil
    }

    /// Records the end of a batch if all of its tasks have ended.
    func journalEnd(of ended: OwnedBatch, at now: Milliseconds) throws {
        if let totals = try totals(ofEnded: ended) { try journalEnd(of: ended, totals, at: now) }
    }

    /// Returns the totals of a batch if all of its tasks have ended; `nil` otherwise, or if it has no tasks.
    func totals(ofEnded ended: OwnedBatch) throws -> BatchResult? {
        let (owner, batch) = (ended.owner, ended.name)
        let unfinished = TaskState.stored.filter { !$0.isEnded }.map(\.rawValue).joined(separator: " + ")
        let found = try firstRow(
            """
            SELECT total(\(unfinished)), total(completed), total(failed), total(cancelled),
                CAST(min(total(bytes_sum), \(Int64.max / 2)) AS INTEGER)
            FROM fair_share_group INDEXED BY fair_share_group_owner
            WHERE owner = ? AND batch = ? AND \(GroupSQL.visible)
            """, [owner, batch]
        ) { row in
            (
                unfinished: try row.whole(0),
                totals: BatchResult(
                    completed: try row.whole(1), failed: try row.whole(2), cancelled: try row.whole(3),
                    bytesDone: try row.integer(4))
            )
        }
        guard let found, found.unfinished == 0 else { return nil }
        let totals = found.totals
        return totals.completed + totals.failed + totals.cancelled > 0 ? totals : nil
    }

    /// Records the end of a batch.
    func journalEnd(of ended: OwnedBatch, _ totals: BatchResult, at now: Milliseconds) throws {
        let (owner, batch) = (ended.owner, ended.name)
        try run(
            """
            INSERT INTO event (at, type, task_id, owner, state, batch, totals, bytes_done)
            VALUES (?, ?, 0, ?, ?, ?, ?, ?)
            """,
            [
                now, TaskEvent.Kind.batchFinished.rawValue, owner, totals.outcome.rawValue, batch,
                try StoredJSON.encode(totals), totals.bytesDone,
            ])
    }
}

/// The events of runs that a commit adds, of which there may be thousands. They are inserted several at a time.
struct RunEvents {
    private struct Event {
        var at: Milliseconds
        var type: TaskEvent.Kind
        var task: TaskID
        var owner: UInt32
        var state: TaskState
        var reason: TaskReason?
        var error: TaskFailure?
        var bytesDone: Int64
        var bytesTotal: Int64?
    }

    private let runner: StatementRunner
    /// The events that are not inserted yet, in order.
    private var events: [Event] = []

    init(_ runner: StatementRunner) { self.runner = runner }

    /// Adds the start of a run if the task is still queued.
    mutating func addStart(of id: TaskID, at now: Milliseconds) throws {
        let found = try runner.firstRow(Self.queuedSQL, bind: { $0.bind(id.rawValue) }) { row in
            (owner: try row.owner(0), bytesDone: try row.integer(1), bytesTotal: try row.integerOrNil(2))
        }
        guard let found else { return }
        events.append(
            Event(
                at: now, type: .started, task: id, owner: found.owner, state: .active, bytesDone: found.bytesDone,
                bytesTotal: found.bytesTotal))
    }

    private static let queuedSQL = """
        SELECT owner, bytes_done, bytes_total FROM task WHERE id = ? AND state = '\(TaskState.queued.rawValue)'
        """

    /// Adds the event of a run's end with the byte counts that the task has now.
    mutating func addEnd(
        _ type: TaskEvent.Kind, of task: TaskHead, bytesDone: Int64, bytesTotal: Int64?, error: TaskFailure?,
        at now: Milliseconds
    ) {
        events.append(
            Event(
                at: now, type: type, task: task.id, owner: task.owner, state: task.lifecycle.state,
                reason: task.lifecycle.reason, error: error, bytesDone: bytesDone, bytesTotal: bytesTotal))
    }

    /// Inserts the events. No other event may be recorded before.
    mutating func insert() throws {
        if events.isEmpty { return }
        try runner.insert(events, Self.insertion, columns: 11) { event, row in
            row.bind(event.at)
            row.bind(event.type.rawValue)
            row.bind(event.task.rawValue)
            row.bind(Int64(event.owner))
            row.bind(event.state.rawValue)
            row.bind(event.reason?.rawValue)
            row.bind(event.error)
            row.bind(event.bytesDone)
            row.bind(event.bytesTotal)
        }
        events.removeAll(keepingCapacity: true)
    }

    private static let insertion = """
        INSERT INTO event (
            at, type, task_id, owner, state, reason, error_code, error_message, http_status, bytes_done, bytes_total)
        VALUES
        """
}

extension TaskStore {
    /// The size in bytes of the tasks' facts from which on a page is not extended.
    private static let pageBytes = 64 << 10
    /// The maximum number of journal rows that a page with conditions on events passes over.
    static let examinedRows = 10_000

    /// Returns the sequence number of the newest event ever recorded; 0 if there is none.
    package func lastEvent() throws(StoreError) -> Int64 {
        try read { try $0.newestNumber(in: "event") }
    }

    /// Returns the sequence number of the oldest event that is still in the journal.
    package func oldestEvent() throws(StoreError) -> Int64? {
        try read { database in
            try database.firstRow("SELECT sequence - count + 1 FROM event ORDER BY sequence LIMIT 1") {
                try $0.integer(0)
            }
        }
    }

    /// Returns the sequence number of the last event before a time; 0 if there is none.
    package func lastEvent(before time: Milliseconds) throws(StoreError) -> Int64 {
        try read { database in
            // The times of the journal are in the order of the numbers, unless the system clock was set. So a binary
            // search finds the first event from that time on.
            guard var low = try database.oldestNumber(after: 0) else { return try database.newestNumber(in: "event") }
            var high = try database.newestNumber(in: "event")
            while low < high {
                let middle = low + (high - low) / 2
                guard let row = try database.eventRow(from: middle), row.at < time else {
                    high = middle
                    continue
                }
                low = row.last + 1
            }
            guard let found = try database.eventRow(from: low), found.at >= time else { return high }
            return found.before
        }
    }

    /// Returns events with larger sequence numbers than `sequence`, in order. The page may be empty although there are
    /// more: it ends with the rows examined.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of journal rows to read and of events to return.
    ///   - filter: selects the events.
    ///   - scope: the user whose tasks' events are returned, including those of removed tasks; `nil` for all users.
    package func events(
        after sequence: Int64, limit: Int, filter: EventFilter = EventFilter(), scope: UInt32? = nil
    ) throws(StoreError) -> EventPage {
        let types = try filter.types.map { types throws(StoreError) in try StoredJSON.encode(types.map(\.rawValue)) }
        let states = try filter.states.map { states throws(StoreError) in
            try StoredJSON.encode(states.map(\.rawValue))
        }
        let (first, last) = (filter.ids?.min(), filter.ids?.max())
        var page = EventPage(position: sequence)
        guard limit > 0, scope == nil || filter.owner == nil || scope == filter.owner else {
            try read { database in
                page.position = try database.newestNumber(in: "event")
                page.trimmed = try database.lastTrimmedEvent(owner: scope)
            }
            return page
        }
        let owner = scope ?? filter.owner
        try read(within: .asked) { database in
            page.trimmed = try database.lastTrimmedEvent(owner: scope)
            let newest = try database.newestNumber(in: "event")
            let index = owner == nil ? "NOT INDEXED" : "INDEXED BY event_owner"
            // A row stands for one or more sequence numbers.
            let end =
                newest - max(sequence, 0) < Self.examinedRows || types == nil && states == nil && first == nil
                ? nil
                : try database.firstRow(
                    """
                    SELECT sequence FROM event \(index)
                    WHERE sequence > ?1 AND \(owner == nil ? "?2 IS NULL" : "owner = ?2")
                    ORDER BY sequence LIMIT 1 OFFSET ?3
                    """, [sequence, owner, Self.examinedRows - 1]
                ) { try $0.integer(0) as Int64 }
            let rows = try database.rows(
                """
                SELECT sequence, at, type, task_id, owner, state, reason, error_code, error_message, http_status,
                    count, bytes_done, bytes_total, batch, totals
                FROM event \(index)
                WHERE sequence > ?1 AND sequence <= ?8 AND \(owner == nil ? "?2 IS NULL" : "owner = ?2")
                    AND (?3 IS NULL OR type IN (SELECT value FROM json_each(?3)))
                    AND (?4 IS NULL OR state IN (SELECT value FROM json_each(?4)))
                    AND (?5 IS NULL OR (task_id + count > ?5 AND task_id <= ?6))
                ORDER BY sequence LIMIT ?7
                """,
                [sequence, owner, types, states, first?.rawValue, last?.rawValue, limit, end ?? .max],
                EventRow.init)
            var facts: [TaskID: TaskFacts] = [:]
            let runner = StatementRunner(database)
            var (bytes, isFull) = (0, false)
            scan: for row in rows {
                // The row's first sequence number may precede the requested ones.
                for number in max(row.before, sequence)..<row.last.sequence {
                    var event = row.event(number + 1)
                    guard page.events.count < limit, bytes < Self.pageBytes else {
                        isFull = true
                        break scan
                    }
                    page.position = event.sequence
                    if let ids = filter.ids { guard let id = event.id, ids.contains(id) else { continue } }
                    if let id = event.id {
                        if facts[id] == nil, let found = try runner.facts(of: id) { facts[id] = found }
                        if let known = facts[id] { event.set(known) }
                    }
                    guard filter.selects(event) else { continue }
                    page.events.append(event)
                    bytes += event.textBytes
                }
            }
            // Fewer rows than asked for were the last ones of those examined.
            if !isFull, rows.count < limit { page.position = max(page.position, end ?? newest) }
        }
        return page
    }
}

/// A row of the journal, which stands for one or more events.
private struct EventRow {
    /// The last of the events.
    var last: TaskEvent
    /// The sequence number before the first of them.
    var before: Int64

    init(_ row: RowReader) throws {
        let count: Int64 = try row.integer(10)
        last = TaskEvent(
            sequence: try row.integer(0), at: try row.integer(1), type: try row.word(2), id: try row.id(3),
            state: try row.word(5), reason: try row.wordOrNil(6), error: try row.failure(7))
        guard count >= 1, count <= last.sequence else {
            throw StoreError.corrupt("an event has an invalid range of sequence numbers")
        }
        before = last.sequence - count
        last.owner = try row.owner(4)
        last.bytesDone = try row.integerOrNil(11)
        last.bytesTotal = try row.integerOrNil(12)
        last.batch = try row.textOrNil(13)
        if last.type == .batchFinished {
            last.id = nil
            last.totals = try row.textOrNil(14).map { try StoredJSON.decode(BatchResult.self, from: $0) }
        }
    }

    func event(_ sequence: Int64) -> TaskEvent {
        var event = last
        event.sequence = sequence
        event.id = last.id.map { TaskID($0.rawValue &+ (sequence &- before &- 1)) }
        return event
    }
}

extension Database {
    /// Returns the sequence number of the first event after `sequence`.
    fileprivate func oldestNumber(after sequence: Int64) throws -> Int64? {
        try firstRow("SELECT sequence - count + 1 FROM event WHERE sequence > ? ORDER BY sequence LIMIT 1", [sequence])
        {
            try $0.integer(0)
        }
    }

    /// Returns the time of the first row with the event `sequence` or later ones, and the numbers of its last event and
    /// of the event before its first.
    fileprivate func eventRow(
        from sequence: Int64
    ) throws -> (at: Milliseconds, last: Int64, before: Int64)? {
        try firstRow(
            "SELECT at, sequence, sequence - count FROM event WHERE sequence >= ? ORDER BY sequence LIMIT 1",
            [
                sequence
            ]
        ) { (at: try $0.integer(0), last: try $0.integer(1), before: try $0.integer(2)) }
    }
}

extension StatementRunner {
    private static let factsSQL = "SELECT task.owner, \(TaskFacts.columns) FROM \(GroupSQL.tasks) WHERE task.id = ?"
    private static let removedFactsSQL = "SELECT owner, \(TaskFacts.columns) FROM removed_task WHERE task_id = ?"

    /// Returns the facts of a task, which may have been removed.
    fileprivate func facts(of id: TaskID) throws -> TaskFacts? {
        try firstRow(Self.factsSQL, bind: { $0.bind(id.rawValue) }, TaskFacts.init)
            ?? firstRow(Self.removedFactsSQL, bind: { $0.bind(id.rawValue) }, TaskFacts.init)
    }
}

extension TaskEvent {
    /// The number of bytes of the texts.
    fileprivate var textBytes: Int {
        [url, batch, key, path, error?.message].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    }

    fileprivate mutating func set(_ facts: TaskFacts) {
        owner = facts.owner
        kind = facts.kind
        batch = facts.batch
        key = facts.key
        url = facts.url
        path = facts.path
    }
}
