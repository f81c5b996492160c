import FoundationEssentials
import GRDB
import TaskModel

extension TaskRecord {
    /// The columns of ``GroupSQL/tasks``, in the order of ``init(_:)``.
    static let columns =
        "\(StoredEntry.columnsWithBatch), task.id, path, state, reason, not_before, task.owner, bytes_done, "
        + "bytes_total, bytes_fetched, attempts, failures, created_at, started_at, finished_at, error_code, "
        + "error_message, http_status, verified, found_checksum, round"
    static let columnCount = StoredEntry.columnCount + 20

    init(_ row: RowReader) throws(StoreError) {
        let entry = try StoredEntry(row, at: 0)
        let first = StoredEntry.columnCount
        self.init(
            id: try row.id(first), specification: try entry.decoded(), owner: try row.owner(first + 5),
            lifecycle: try row.lifecycle(first + 2), createdAt: try row.integer(first + 11))
        path = try row.textOrNil(first + 1)
        bytesDone = try row.integer(first + 6)
        bytesTotal = try row.integerOrNil(first + 7)
        bytesFetched = try row.integer(first + 8)
        attempts = try row.int(first + 9)
        failures = try row.int(first + 10)
        startedAt = try row.integerOrNil(first + 12)
        finishedAt = try row.integerOrNil(first + 13)
        error = try row.failure(first + 14)
        verified = try row.integer(first + 17) != 0
        foundChecksum = try row.textOrNil(first + 18)
        round = try row.int(first + 19)
    }
}

/// The properties of a task that a command needs before it changes the task.
struct TaskHead {
    var id: TaskID
    var owner: UInt32
    var lifecycle: TaskLifecycle

    /// The columns of ``GroupSQL/tasks``.
    static let columns = "task.id, task.owner, state, reason, not_before"

    init(id: TaskID, owner: UInt32, lifecycle: TaskLifecycle) {
        self.id = id
        self.owner = owner
        self.lifecycle = lifecycle
    }

    init(_ row: RowReader) throws(StoreError) {
        id = try row.id(0)
        owner = try row.owner(1)
        lifecycle = try row.lifecycle(2)
    }
}

extension Database {
    /// Returns the largest number ever assigned in `table`; 0 if there is none.
    func newestNumber(in table: String) throws -> Int64 {
        let newest =
            try firstRow("SELECT seq FROM sqlite_sequence WHERE name = ?", [table]) { try $0.integer(0) } ?? 0
        // The number is used in calculations from here on; positions exist for numbers below 2^43.
        guard newest >= 0, newest < 1 << 43 else {
            throw StoreError.corrupt("the last number of the table \(table) is out of range")
        }
        return newest
    }

    /// Returns the head of a task.
    ///
    /// - Parameter owner: the user whose task is returned; `nil` for all users.
    func head(of id: TaskID, owner: UInt32?) throws -> TaskHead? {
        let head = try firstRow(
            "SELECT \(TaskHead.columns) FROM \(GroupSQL.tasks) WHERE task.id = ?", [id.rawValue], TaskHead.init)
        return owner == nil || head?.owner == owner ? head : nil
    }

    func setLifecycle(of id: TaskID, to lifecycle: TaskLifecycle) throws {
        try run(
            "UPDATE task SET state = ?, reason = ?, not_before = ? WHERE id = ?",
            StatementArguments(lifecycle.arguments + [id.rawValue]))
    }

    /// Resets a task's byte counts and removes its resume data.
    func forgetBytes(of id: TaskID) throws {
        try run("UPDATE task SET bytes_done = 0, bytes_total = NULL WHERE id = ?", [id.rawValue])
        try setResumeData(of: id, to: nil)
    }

    /// Stores a task's secrets.
    ///
    /// - Parameter json: `nil` removes them.
    func setSecrets(of id: TaskID, to json: String?) throws {
        if let json {
            try run(
                """
                INSERT INTO task_secret (task_id, json) VALUES (?, ?)
                ON CONFLICT (task_id) DO UPDATE SET json = excluded.json
                """, [id.rawValue, json])
        } else {
            try run("DELETE FROM task_secret WHERE task_id = ?", [id.rawValue])
        }
    }

    /// Stores a task's resume data.
    ///
    /// - Parameter bytes: `nil` removes it.
    func setResumeData(of id: TaskID, to bytes: [UInt8]?) throws {
        if let bytes {
            try run(
                """
                INSERT INTO task_resume (task_id, data) VALUES (?, ?)
                ON CONFLICT (task_id) DO UPDATE SET data = excluded.data
                """, [id.rawValue, Data(bytes)])
        } else {
            try run("DELETE FROM task_resume WHERE task_id = ?", [id.rawValue])
        }
    }
}
