import CoreMetrics
import GRDB
import Synchronization

/// A queue for group commits: callers that want to write while a commit is being made durable share the next one, as
/// far as ``CommitLimit`` permits.
///
/// All writes are performed by the pool's single writer connection on its own dispatch queue, so that no thread of
/// Swift's concurrency runtime waits for the disk. Callers that share a commit have no savepoints at first: within one,
/// SQLite keeps a copy of every changed page. If one of the callers fails, the transaction is undone and repeated with a
/// savepoint for each caller. Writes are not acknowledged while the database's paths do not refer to the open files.
final class WriteQueue: Sendable {
    /// The work of one caller. `run` may be called several times; at most one of the calls is committed.
    private struct Job: Sendable {
        let weight: Int
        let isLasting: Bool
        /// Performs the work and returns a closure that resumes the caller, to be called once the work is durable.
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
    /// Whether the writer connection syncs each commit. Accessed only on the connection's queue.
    private let syncs = Mutex(true)
    /// The number of shared commits that are still to have savepoints, since a caller failed. A caller whose calls fail
    /// all the time does not cost the others a repetition each time. Accessed only on the connection's queue.
    private let cautiousCommits = Mutex(0)
    /// The number of shared commits with savepoints after the failure of a caller.
    private static let caution = 100
    private let commitTime = CoreMetrics.Timer(label: "dld_commit_seconds")

    init(pool: DatabasePool, watch: StoreWatch) {
        self.pool = pool
        self.watch = watch
    }

    /// The number of callers whose work has not been dequeued yet.
    var waitingCount: Int { state.withLock { $0.jobs.count } }

    /// Runs `body` within a transaction and returns once the transaction is on disk.
    ///
    /// - Parameters:
    ///   - weight: the approximate number of rows that `body` writes.
    ///   - isLasting: whether the change must be durable. If `false`, a power failure may undo it until a later durable
    ///     change is written (SQLite syncs its log as a whole).
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

    /// Runs `body` on the writer connection outside of any transaction, between commits.
    func performAlone<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(StoreError) -> Value {
        let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            // The lock ensures that nothing is enqueued after the last write once the queue is closed.
            state.withLock { state in
                guard !state.isClosed else { return continuation.resume(returning: .failure(.closed)) }
                pool.asyncWriteWithoutTransaction { [watch] database in
                    if let refusal = watch.refusal(database) {
                        return continuation.resume(returning: .failure(refusal))
                    }
                    let result = Result { try body(database) }.mapError { StoreError($0) }
                    if let refusal = watch.refusal(database, isAfterChange: true) {
                        return continuation.resume(returning: .failure(refusal))
                    }
                    continuation.resume(returning: result)
                }
            }
        }
        return try result.get()
    }

    /// Closes the queue to new work; work that was already enqueued is still performed.
    ///
    /// - Returns: whether the queue was open before.
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
                while let batch = self.dequeueJobs() {
                    var rest = batch[...]
                    while !rest.isEmpty { rest = rest.dropFirst(self.commit(rest, in: database)) }
                }
            }
        }
    }

    private func dequeueJobs() -> [Job]? {
        state.withLock { state in
            guard !state.jobs.isEmpty else {
                state.isDraining = false
                return nil
            }
            var weight = 0
            var count = 0
            for job in state.jobs {
                weight += job.weight
                if count > 0, weight > CommitLimit.rowsInCommit { break }
                count += 1
            }
            let batch = Array(state.jobs.prefix(count))
            state.jobs.removeFirst(count)
            return batch
        }
    }

    /// Commits the callers' work in one transaction. If the transaction as a whole fails, for example on a full disk,
    /// each caller's work is retried separately, so that one caller's failure does not affect the others.
    ///
    /// - Returns: the number of callers resumed; the others did not fit into the commit.
    private func commit(_ batch: ArraySlice<Job>, in database: Database) -> Int {
        do {
            // The work of a single caller needs no savepoint: if it fails, the transaction is rolled back.
            if batch.count == 1 { return try commit(batch, savepoints: false, in: database) }
            if !isCautious() {
                do {
                    return try commit(batch, savepoints: false, in: database)
                } catch {
                    cautiousCommits.withLock { $0 = Self.caution }
                }
            }
            return try commit(batch, savepoints: true, in: database)
        } catch {
            guard batch.count > 1 else { return refuse(batch, StoreError(error)) }
            return batch.indices.reduce(0) { $0 + commit(batch[$1...$1], in: database) }
        }
    }

    private func isCautious() -> Bool {
        cautiousCommits.withLock { count in
            defer { count = max(0, count - 1) }
            return count > 0
        }
    }

    /// Commits the callers' work in one transaction, or leaves none of it.
    ///
    /// - Parameter savepoints: whether a caller that fails is refused while the others' work is committed; otherwise the
    ///   failure is thrown.
    /// - Returns: the number of callers resumed; the others did not fit into the commit.
    private func commit(_ batch: ArraySlice<Job>, savepoints: Bool, in database: Database) throws -> Int {
        // A failing disk may have left a transaction open.
        if database.isInsideTransaction { try database.rollback() }
        if let refusal = watch.refusal(database) { return refuse(batch, refusal) }
        var answers: [@Sendable () -> Void] = []
        do {
            let budget = CommitBudget(in: database)
            try setSync(batch.contains(where: \.isLasting), in: database)
            let began = ContinuousClock.now
            try database.run("BEGIN IMMEDIATE")
            answers.reserveCapacity(batch.count)
            for job in batch {
                answers.append(savepoints ? try Self.answer(to: job, in: database) : try job.run(database))
                // Some errors end the transaction (SQLITE_FULL, SQLITE_IOERR). What follows would be committed by itself.
                guard database.isInsideTransaction else { throw DatabaseError(resultCode: .SQLITE_ABORT) }
                if budget.isSpent(in: database) { break }
            }
            try database.run("COMMIT")
            commitTime.record(since: began)
        } catch {
            try? database.rollback()
            // A large transaction was written to the log in part.
            if let refusal = watch.refusal(database, isAfterChange: true) { throw refusal }
            throw error
        }
        // Only this check after the commit ensures that the committed data is in a file that still has its path.
        if let refusal = watch.refusal(database, isAfterChange: true) {
            return refuse(batch.prefix(answers.count), refusal)
        }
        for answer in answers { answer() }
        return answers.count
    }

    private func refuse(_ batch: ArraySlice<Job>, _ reason: StoreError) -> Int {
        for job in batch { job.refuse(reason) }
        return batch.count
    }

    /// In WAL mode, NORMAL omits only the sync of each commit; the database stays consistent.
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
