import Glibc
import TaskFiles
import TaskModel
import TaskQueue

/// A run of `dld --queue FILE`: applies a queue file and, with `--exit-when-done`, waits until each of its tasks has
/// ended.
struct BatchRun: Sendable {
    let batch: String
    private let path: String
    private let entries: [QueueEntry]
    /// The notes on the parts of the file that were ignored.
    let notes: [FileNote]
    let caller: Caller

    /// - Parameter waits: as for ``SmallFile/read(_:limit:waits:)``.
    /// - Throws: ``FileError`` with the position of the error in the file.
    init(file path: String, uid: UInt32, waits: Bool = false) throws {
        let text = try SmallFile.read(path, waits: waits)
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "/"
        let file = try InputFile.parse(
            text, file: path, baseDirectory: directory.isEmpty ? "/" : directory, now: QueueClock.system.now(),
            utcOffset: { LocalClock.utcOffset(at: $0) }, readFile: Self.read)
        batch = file.batch ?? QueueFile.batch(ofPath: path)
        self.path = path
        entries = file.entries
        notes = file.notes
        caller = Caller(uid: uid, isAdministrator: true)
    }

    /// Reads a file that an entry refers to.
    static func read(_ path: String, limit: Int) throws(UnreadableFile) -> [UInt8] {
        do throws(SmallFile.Failure) {
            return try SmallFile.read(path, limit: limit)
        } catch {
            throw UnreadableFile("\(error)")
        }
    }

    /// - Parameters:
    ///   - prune: whether to prune the batch, unless the file has no entry.
    ///   - validatesPlaces: as for ``TaskQueue/apply(_:batch:prune:receipt:validatesPlaces:by:)``.
    /// - Throws: ``FileError`` for an entry that the queue refuses, otherwise ``QueueError``.
    func apply(to queue: TaskQueue, prune: Bool = false, validatesPlaces: Bool = false) async throws
        -> StagedBatchChanges
    {
        do throws(QueueError) {
            return try await queue.apply(
                entries.map(\.specification), batch: batch, prune: prune && !entries.isEmpty,
                validatesPlaces: validatesPlaces, by: caller)
        } catch {
            if let fault = error.fault(in: entries, of: path) { throw fault }
            throw error
        }
    }

    /// Retries the tasks that failed in an earlier run of the file.
    func retryFailed(on queue: TaskQueue) async throws {
        _ = try await queue.apply(.retry, toTasksMatching: filter([.failed]), by: caller)
    }

    /// Waits until every task of the batch has ended or needs a user's action.
    func wait(on queue: TaskQueue) async throws {
        // The subscription precedes the first query, so that no event between the two is missed.
        let (_, pages) = try queue.events(after: nil, for: caller)
        var iterator = pages.makeAsyncIterator()
        while true {
            if try await !hasUnsettled(queue) { break }
            guard await iterator.next() != nil else { break }
        }
    }

    /// Calls `body` with every task of the batch that did not complete.
    func forEachIncomplete(on queue: TaskQueue, _ body: (TaskStatus) -> Void) async throws {
        _ = try await contains(queue, states: [.failed, .cancelled, .paused]) { task in
            body(task)
            return false
        }
    }

    private func hasUnsettled(_ queue: TaskQueue) async throws -> Bool {
        let open = try await queue.page(
            filter([.queued, .active, .waiting]), after: nil, limit: 1, newest: nil,
            for: caller)
        if !open.isEmpty { return true }
        // A task that a user has paused may still be resumed.
        return try await contains(queue, states: [.paused]) { !$0.isSettled }
    }

    /// Returns whether `predicate` holds for a task in one of the states. The tasks are read page by page.
    private func contains(
        _ queue: TaskQueue, states: [TaskState], where predicate: (TaskStatus) -> Bool
    ) async throws -> Bool {
        var last: TaskID?
        while true {
            let page = try await queue.page(filter(states), after: last, limit: 1_000, newest: nil, for: caller)
            if page.contains(where: predicate) { return true }
            guard page.count == 1_000, let end = page.last else { return false }
            last = end.id
        }
    }

    private func filter(_ states: [TaskState]) -> TaskFilter {
        TaskFilter(states: states, batch: batch, owner: caller.uid)
    }
}
