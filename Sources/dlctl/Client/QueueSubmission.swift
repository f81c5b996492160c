import ControlClient
import ControlProtocol
import TaskFiles
import TaskModel

/// A submission of a file's entries to the daemon: either all entries are added or none.
struct QueueSubmission {
    let client: ControlClient
    /// The name of the file, for error messages about its entries.
    let file: String
    let feed: EntryFeed

    /// Adds each entry as a task, without a batch.
    func add() throws(Failure) -> AddedTasks {
        guard let first = try feed.nextPart() else { return AddedTasks(TaskAddResult(ids: [])) }
        let tasks = feed.entries[first].map(\.specification)
        guard try feed.hasMore() else {
            let result = try naming(from: first.lowerBound) { () throws(ClientError) in try client.addOrFind(tasks) }
            return AddedTasks(result)
        }
        return AddedTasks(try commit(batch: nil, first: tasks, prune: false, dryRun: false))
    }

    /// Applies the entries to a batch: those that match an existing task do not add another.
    func apply(batch: String, prune: Bool, dryRun: Bool) throws(Failure) -> QueueCommitResult {
        let first = try feed.nextPart().map { part in feed.entries[part].map(\.specification) }
        return try commit(batch: batch, first: first, prune: prune, dryRun: dryRun)
    }

    /// - Parameter first: the part already taken from the feed.
    private func commit(
        batch: String?, first: [TaskSpecification]?, prune: Bool, dryRun: Bool
    ) throws(Failure) -> QueueCommitResult {
        let queue = try naming(from: 0) { () throws(ClientError) in try client.beginQueue(batch: batch) }
        do throws(Failure) {
            var first = first
            let parts = sequence(state: ()) { _ in
                defer { first = nil }
                return first ?? feed.next()
            }
            try client.put(parts, into: queue) { error, part in failure(error, from: feed.starts[part]) }
            if let failure = feed.failure { throw failure }
            let result = try naming(from: 0) { () throws(ClientError) in
                try client.commit(queue: queue, prune: prune, dryRun: dryRun)
            }
            // A dry run leaves the queue open, which counts against the user's limits until it is dropped.
            if dryRun { try? client.abort(queue: queue) }
            return result
        } catch {
            // Without this the queue stays in the daemon's database until several others have been begun.
            try? client.abort(queue: queue)
            throw error
        }
    }

    /// Calls `call` and converts an error about the n-th entry of the call into one about its line in the file.
    private func naming<Value>(
        from first: Int, _ call: () throws(ClientError) -> Value
    ) throws(Failure) -> Value {
        do throws(ClientError) {
            return try call()
        } catch {
            throw failure(error, from: first)
        }
    }

    private func failure(_ error: ClientError, from first: Int) -> Failure {
        guard case .rpc(let answer) = error, let field = answer.data?.field,
            case (let index?, let name) = FieldNames.split(field), feed.entries.indices.contains(first + index)
        else { return Failure(error) }
        let plain =
            answer.message.hasPrefix(field + ": ")
            ? "\"\(QueueFile.key(ofField: name))\": \(answer.message.dropFirst(field.count + 2))" : answer.message
        let code = answer.data?.code ?? .invalid
        return TaskFileReader.failure(
            TaskFileReader.error(plain, file: file, entry: feed.entries[first + index], code: code))
    }
}
