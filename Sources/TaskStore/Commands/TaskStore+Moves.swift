import GRDB
package import TaskModel

/// The outcome of a move.
package enum MoveOutcome: Sendable, Equatable {
    case moved
    /// The id without a task that the caller may see.
    case unknown(TaskID)
    /// The named task that has ended.
    case ended(TaskID, TaskState)
    case wrong(FieldError)
}

extension TaskStore {
    /// Moves a task among the tasks of the same owner and priority, and records an event.
    ///
    /// - Parameter owner: the user whose tasks can be moved; `nil` for all users.
    package func move(
        _ id: TaskID, _ placement: TaskPlacement, owner: UInt32?, now: Milliseconds
    ) async throws(StoreError) -> MoveOutcome {
        try await writes.perform { database in
            guard let task = try database.place(of: id, owner: owner) else { return .unknown(id) }
            let state = task.head.lifecycle.state
            guard !state.isEnded else { return .ended(id, state) }
            let position: Int64
            switch placement {
            case .first: position = try database.firstPosition()
            case .last: position = try database.lastPosition()
            case .before(let other):
                guard let next = try database.place(of: other, owner: owner) else { return .unknown(other) }
                let state = next.head.lifecycle.state
                guard other == id || !state.isEnded else { return .ended(other, state) }
                switch try database.position(of: task, before: next) {
                case .success(let found): position = found
                case .failure(let error): return .wrong(error)
                }
            }
            try database.run("UPDATE task SET position = ? WHERE id = ?", [position, id.rawValue])
            try database.journal(.updated, of: task.head, at: now)
            return .moved
        }
    }
}

/// The position of a task in the order.
private struct Place {
    var head: TaskHead
    var group: Int64
    var priority: Int
    var position: Int64
}

extension Database {
    fileprivate func place(of id: TaskID, owner: UInt32?) throws -> Place? {
        let place = try firstRow(
            "SELECT \(TaskHead.columns), group_id, priority, position FROM \(GroupSQL.tasks) WHERE task.id = ?",
            [id.rawValue]
        ) { row in
            Place(
                head: try TaskHead(row), group: try row.integer(5), priority: try row.int(6),
                position: try row.integer(7))
        }
        return owner == nil || place?.head.owner == owner ? place : nil
    }

    /// Returns a position before all tasks that are or were in any group.
    fileprivate func firstPosition() throws -> Int64 {
        let last = try meta("first-position") ?? 0
        let position = last.subtractingClamped(1 << QueuePosition.shift)
        try setMeta("first-position", to: position)
        return position
    }

    /// Returns a position behind all tasks in any group, and before tasks that are added later.
    fileprivate func lastPosition() throws -> Int64 {
        let newest = try newestNumber(in: "task")
        let position = max(QueuePosition.ofNew(newest), try meta("last-position") ?? 0).addingClamped(1)
        if position >= QueuePosition.ofNew(newest + 1) - 1 {
            // About a million moves took place since the last task was added: one task id is skipped.
            try run("UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'task'")
        }
        try setMeta("last-position", to: position)
        return position
    }

    fileprivate func position(of task: Place, before next: Place) throws -> Result<Int64, FieldError> {
        let (id, other) = (task.head.id, next.head.id)
        func wrong(_ message: String) -> Result<Int64, FieldError> {
            .failure(FieldError(field: "before", message: message))
        }
        guard other != id else { return wrong("a task cannot be moved before itself") }
        guard next.head.owner == task.head.owner else { return wrong("task \(other) has another owner") }
        guard next.priority == task.priority else {
            return wrong(
                "task \(other) has another priority; tasks move within one priority (see dlctl set --priority)"
            )
        }
        if let room = try room(before: next, leavingOut: id) { return .success(room) }
        for limit in Self.spreadSizes {
            try spread(before: next, leavingOut: id, limit: limit)
            if let room = try room(before: next, leavingOut: id) { return .success(room) }
        }
        return wrong(
            "there is no position left before task \(other); move task \(other) elsewhere and back, then try again")
    }

    /// Returns a position between `next` and its predecessor in the group; `nil` if there is no gap.
    private func room(before next: Place, leavingOut id: TaskID) throws -> Int64? {
        guard let previous = try positions(before: next, leavingOut: id, limit: 1).first else {
            return next.position.subtractingClamped(1 << QueuePosition.shift)
        }
        let middle = previous.position.addingClamped(next.position.subtractingClamped(previous.position) / 2)
        return middle > previous.position && middle < next.position ? middle : nil
    }

    /// Returns the positions of up to `limit` tasks before `next`, nearest first.
    private func positions(
        before next: Place, leavingOut id: TaskID, limit: Int
    ) throws -> [(id: Int64, position: Int64)] {
        try rows(
            """
            SELECT id, position FROM task INDEXED BY task_ready
            WHERE state = 'queued' AND group_id = ? AND priority = ? AND position < ? AND id <> ?
            ORDER BY position DESC LIMIT ?
            """, [next.group, next.priority, next.position, id.rawValue, limit]
        ) { (try $0.integer(0), try $0.integer(1)) }
    }

    /// Spreads out tasks that are close together before `next`.
    private func spread(before next: Place, leavingOut id: TaskID, limit: Int) throws {
        let preceding = try positions(before: next, leavingOut: id, limit: limit)
        guard let farthest = preceding.last, preceding.count > 1 else { return }
        let end =
            preceding.count == limit
            ? farthest.position : next.position.subtractingClamped(Int64(preceding.count) << QueuePosition.shift)
        let step = next.position.subtractingClamped(end) / Int64(preceding.count)
        guard step > 1 else { return }
        for (index, entry) in preceding.enumerated() {
            try run(
                "UPDATE task SET position = ? WHERE id = ?",
                [next.position.subtractingClamped(Int64(index + 1).multipliedClamped(by: step)), entry.id])
        }
    }

    /// The numbers of tasks to spread out: the larger number is used if the smaller one yields no gap.
    private static let spreadSizes = [64, 4_096]
}
