import ControlClient
import ControlProtocol
import TaskFiles
import TaskModel

/// Brings the entries of a file to the daemon: all of them or none.
struct QueueSubmission {
    let client: ControlClient
    /// The file, for what the daemon has to say about an entry.
    let file: String
    let entries: [QueueEntry]

    private enum Limit {
        /// Leaves room in a line for the call around the entries.
        static let bytes = MessageLimits.lineLength - 128 * 1024
        static let entries = QueuePutParameters.maximumEntries
    }

    /// As new tasks, each entry one.
    ///
    /// - Returns: their ids, in order.
    func add() throws(Failure) -> [TaskID] {
        let chunks = Self.chunks(entries.map(\.specification), limit: Limit.bytes, count: Limit.entries)
        guard chunks.count > 1 else {
            guard !entries.isEmpty else { return [] }
            return try naming(from: 0) { () throws(ClientError) in try client.add(entries.map(\.specification)) }
        }
        return Self.ids(of: try commit(batch: nil, chunks: chunks, prune: false, dryRun: false))
    }

    /// As the content of a batch: what is there already is not added again.
    func apply(batch: String, prune: Bool, dryRun: Bool) throws(Failure) -> QueueCommitResult {
        let chunks = Self.chunks(entries.map(\.specification), limit: Limit.bytes, count: Limit.entries)
        return try commit(batch: batch, chunks: chunks, prune: prune, dryRun: dryRun)
    }

    private func commit(
        batch: String?, chunks: [Range<Int>], prune: Bool, dryRun: Bool
    ) throws(Failure) -> QueueCommitResult {
        let queue = try naming(from: 0) { () throws(ClientError) in try client.beginQueue(batch: batch) }
        do throws(Failure) {
            let parts = chunks.lazy.map { entries[$0].map(\.specification) }
            try client.put(parts, into: queue) { error, part in failure(error, from: chunks[part].lowerBound) }
            return try naming(from: 0) { () throws(ClientError) in
                try client.commit(queue: queue, prune: prune, dryRun: dryRun)
            }
        } catch {
            // Else it would lie in the daemon's database until some others have been begun.
            try? client.abort(queue: queue)
            throw error
        }
    }

    /// Turns a complaint about the n-th entry of a call into one about its line in the file.
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
            case (let index?, let name) = FieldNames.split(field), entries.indices.contains(first + index)
        else { return Failure(error) }
        let plain =
            answer.message.hasPrefix(field + ": ")
            ? name + ": " + answer.message.dropFirst(field.count + 2) : answer.message
        return TaskFileReader.failure(
            plain, file: file, entry: entries[first + index], code: answer.data?.code ?? .invalid)
    }

    /// Ranges of `tasks` that fit into one call each.
    ///
    /// - Parameters:
    ///   - limit: bytes of JSON, by an estimate that errs upwards: every character might need an escape.
    ///   - count: tasks a call.
    static func chunks(_ tasks: [TaskSpecification], limit: Int, count: Int) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        var start = 0
        var bytes = 0
        for (index, task) in tasks.enumerated() {
            let size = task.estimatedSize
            if index > start, bytes + size > limit || index - start == count {
                ranges.append(start..<index)
                start = index
                bytes = 0
            }
            bytes += size
        }
        if start < tasks.count { ranges.append(start..<tasks.count) }
        return ranges
    }

    /// The ids of the added tasks, the ranges spelt out.
    static func ids(of result: QueueCommitResult) -> [TaskID] {
        result.ids.flatMap { range -> [TaskID] in
            guard let first = range.first?.rawValue, let last = range.last?.rawValue, first <= last else { return [] }
            return (first...last).map { TaskID($0) }
        }
    }
}

extension TaskSpecification {
    fileprivate var estimatedSize: Int {
        if isURLAlone { return 2 * url.utf8.count + 400 }
        let texts = [
            url, output, directory, file, method, contentType, checksum, checksumURL, user, password, userAgent,
            referer, proxy, caCertificates, batch, key,
        ]
        let bytes =
            texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) } + (headers + mirrors).reduce(0) { $0 + $1.utf8.count + 2 }
        // Base64 needs no escapes.
        let base64 = pieceHashes.map { $0.hashes.count / 3 * 4 + 100 } ?? 0
        return 2 * bytes + base64 + 400
    }
}
