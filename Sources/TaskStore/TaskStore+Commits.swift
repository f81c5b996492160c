import GRDB

extension TaskStore {
    /// Performs `step` for each of `items`, in as many commits as needed. If a commit fails, the previous ones remain
    /// in effect.
    ///
    /// - Parameters:
    ///   - finish: performed at the end of each commit.
    ///   - step: returns the number of bytes processed in addition to those written.
    func inParts<Item: Sendable, Outcome: Sendable>(
        _ items: [Item], _ outcome: Outcome,
        finish: @escaping @Sendable (Database, inout Outcome) throws -> Void = { _, _ in },
        _ step: @escaping @Sendable (Database, Item, inout Outcome) throws -> Int64
    ) async throws(StoreError) -> Outcome {
        var (outcome, rest) = (outcome, items[...])
        var limit = CommitLimit()
        while !rest.isEmpty {
            let (part, before) = (rest.prefix(limit.rows), outcome)
            let after = try await withinRoom(&limit) { limit, database in
                var (outcome, done) = (before, 0)
                var budget = CommitBudget(limit, in: database)
                repeat {
                    budget.spend(bytes: try step(database, part[part.startIndex + done], &outcome))
                    done += 1
                } while done < part.count && !budget.isSpent(in: database)
                try finish(database, &outcome)
                return (outcome, done)
            }
            outcome = after.0
            rest = rest.dropFirst(after.1)
        }
        return outcome
    }

    /// Runs a statement for as many rows as fit into one commit.
    ///
    /// - Returns: the number of rows, and whether no rows are left.
    func inSteps(
        _ body: @escaping @Sendable (_ database: Database, _ rows: Int) throws -> Int
    ) async throws(StoreError) -> (rows: Int, isAll: Bool) {
        try await inCommit { limit, database in
            try database.inSteps(within: limit) { try body(database, $0) }
        }
    }

    /// Performs `body` in one commit; `body` must observe the given limit.
    func inCommit<Value: Sendable>(
        _ body: @escaping @Sendable (CommitLimit, Database) throws -> Value
    ) async throws(StoreError) -> Value {
        var limit = CommitLimit()
        return try await withinRoom(&limit, body)
    }

    /// Performs `body` in one commit. If the disk is full, the log is shortened and `body` is retried with half the
    /// limit.
    private func withinRoom<Value: Sendable>(
        _ limit: inout CommitLimit, _ body: @escaping @Sendable (CommitLimit, Database) throws -> Value
    ) async throws(StoreError) -> Value {
        while true {
            let current = limit
            do throws(StoreError) {
                let value = try await writes.perform(weight: current.rows) { try body(current, $0) }
                limit.grow()
                return value
            } catch {
                guard error == .full, limit.halve() else { throw error }
                _ = try await shortenLog()
            }
        }
    }
}
