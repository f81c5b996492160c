import GRDB
import Synchronization

/// Group commit: whoever wants to write while a commit is being made durable shares the next one, as far as ``CommitLimit``
/// has room for them.
///
/// All writing is done by the pool's one writer connection, on its own dispatch queue, so that no thread of
/// Swift's concurrency waits for the disk. Each caller's part stands in a savepoint of its own. Nothing is acknowledged
/// while the names of the database do not lead to what is open.
final class WriteQueue: Sendable {
    /// One caller's part. `run` may be called twice, of which one call at most is committed.
    private struct Job: Sendable {
        let weight: Int
        let isLasting: Bool
        /// Does the work and gives back what answers the caller, to be called once the work is durable.
        let run: @Sendable (Database) throws -> @Sendable () -> Void
        let refuse: @Sendable (StoreError) -> Void
    }

    private struct State {
        var jobs: [Job] = []
        var isDraining = false
        var isClosed = false
    }

    private let pool: DatabasePool
    private let watch: StoreWatch
    private let state = Mutex(State())
    /// Whether the writer connection syncs each commit. Only its own queue looks.
    private let syncs = Mutex(true)

    init(pool: DatabasePool, watch: StoreWatch) {
        self.pool = pool
        self.watch = watch
    }

    /// Callers whose part has not been taken up yet.
    var waitingCount: Int { state.withLock { $0.jobs.count } }

    /// Runs `body` within a transaction; returns when it is on disk.
    ///
    /// - Parameters:
    ///   - weight: about how many rows `body` writes.
    ///   - isLasting: `false` where nobody is promised anything yet: a power cut may take it, until something that lasts
    ///     is written after it (SQLite syncs its log as a whole).
    func perform<Value: Sendable>(
        weight: Int = 1, isLasting: Bool = true, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            enqueue(
                Job(
                    weight: weight,
                    isLasting: isLasting,
                    run: { database in
                        let value = try body(database)
                        return { continuation.resume(returning: .success(value)) }
                    },
                    refuse: { continuation.resume(returning: .failure($0)) }))
        }
        return try result.get()
    }

    /// Runs `body` on the writer connection outside of any transaction, between the commits.
    func performAlone<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            // Under the lock: once the queue is closed, nothing comes after the last write.
            state.withLock { state in
                guard !state.isClosed else { return continuation.resume(returning: .failure(.closed)) }
                pool.asyncWriteWithoutTransaction { [watch] database in
                    if let refusal = watch.refusal(database) {
                        return continuation.resume(returning: .failure(refusal))
                    }
                    continuation.resume(returning: Result { try body(database) }.mapError { StoreError($0) })
                }
            }
        }
        return try result.get()
    }

    /// Takes no more work; what was taken before is still done.
    ///
    /// - Returns: whether it was open until now.
    func close() -> Bool {
        state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
    }

    private func enqueue(_ job: Job) {
        enum Next { case nothing, drain, refuse }
        let next = state.withLock { state -> Next in
            if state.isClosed { return .refuse }
            state.jobs.append(job)
            if state.isDraining { return .nothing }
            state.isDraining = true
            return .drain
        }
        switch next {
        case .nothing: break
        case .refuse: job.refuse(.closed)
        case .drain:
            pool.asyncWriteWithoutTransaction { database in
                while let batch = self.takeBatch() {
                    var rest = batch[...]
                    while !rest.isEmpty { rest = rest.dropFirst(self.commit(rest, in: database)) }
                }
            }
        }
    }

    private func takeBatch() -> [Job]? {
        state.withLock { state in
            guard !state.jobs.isEmpty else {
                state.isDraining = false
                return nil
            }
            var weight = 0
            var count = 0
            for job in state.jobs {
                weight += job.weight
                if count > 0, weight > TaskStore.rowsInCommit { break }
                count += 1
            }
            let batch = Array(state.jobs.prefix(count))
            state.jobs.removeFirst(count)
            return batch
        }
    }

    /// Where the transaction as a whole fails (a full disk ends it, whoever caused that), each caller's part is
    /// tried by itself, so that nobody pays for another.
    ///
    /// - Returns: how many of them were answered; what they wrote left no room for the others.
    private func commit(_ batch: ArraySlice<Job>, in database: Database) -> Int {
        do {
            // A transaction that a failing disk left open.
            if database.isInsideTransaction { try database.rollback() }
            if let refusal = watch.refusal(database) { return refuse(batch, refusal) }
            let budget = CommitBudget(in: database)
            try setSync(batch.contains(where: \.isLasting), in: database)
            try database.beginTransaction(.immediate)
            var answers: [@Sendable () -> Void] = []
            answers.reserveCapacity(batch.count)
            for job in batch {
                answers.append(try Self.answer(to: job, in: database))
                if budget.isSpent(in: database) { break }
            }
            try database.commit()
            // Only now is it certain that what was committed has a name.
            if let refusal = watch.refusal(database) { return refuse(batch.prefix(answers.count), refusal) }
            for answer in answers { answer() }
            return answers.count
        } catch {
            try? database.rollback()
            guard batch.count > 1 else { return refuse(batch, StoreError(error)) }
            return batch.indices.reduce(0) { $0 + commit(batch[$1...$1], in: database) }
        }
    }

    private func refuse(_ batch: ArraySlice<Job>, _ reason: StoreError) -> Int {
        for job in batch { job.refuse(reason) }
        return batch.count
    }

    /// In WAL mode NORMAL leaves out the sync of each commit and no other: the database stays whole.
    private func setSync(_ isWanted: Bool, in database: Database) throws {
        try syncs.withLock { syncs in
            guard syncs != isWanted else { return }
            try database.execute(sql: "PRAGMA synchronous = \(isWanted ? "FULL" : "NORMAL")")
            syncs = isWanted
        }
    }

    private static func answer(to job: Job, in database: Database) throws -> @Sendable () -> Void {
        try database.run("SAVEPOINT part")
        do {
            let answer = try job.run(database)
            try database.run("RELEASE part")
            return answer
        } catch {
            guard database.isInsideTransaction else { throw error }
            try database.run("ROLLBACK TO part")
            try database.run("RELEASE part")
            let reason = StoreError(error)
            return { job.refuse(reason) }
        }
    }
}

extension Database {
    /// Executes one statement, which stays prepared for the next time.
    func run(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    /// Undoes what `body` wrote.
    func undoing<Value>(_ body: () throws -> Value) throws -> Value {
        try run("SAVEPOINT undone")
        // Where `body` fails, the caller's own savepoint undoes it.
        let value = try body()
        try run("ROLLBACK TO undone")
        try run("RELEASE undone")
        return value
    }
}
