import ControlProtocol
import TaskFiles
import TaskModel

/// The entries of a task file, split into the parts in which they are sent to the daemon. A long list is read while
/// earlier parts are being sent.
final class EntryFeed {
    /// The entries read so far.
    private(set) var entries: [QueueEntry]
    /// The index of the first entry of each part taken so far.
    private(set) var starts: [Int] = []
    /// The error in the remainder of the file, set when ``next()`` ends early.
    private(set) var failure: Failure?
    private var list: URLList.Reader?
    private var end = 0
    private let complete: (inout QueueEntry) throws(Failure) -> Void

    enum Limit {
        /// The maximum size of a part in bytes. It leaves room on the line for the call around the entries.
        static let bytes = MessageLimits.lineLength - 128 * 1024
        static let entries = QueuePutParameters.maximumEntries
    }

    /// - Parameter complete: adds the options of the call to an entry and validates it.
    init(
        _ content: TaskFileReader.Content, completing complete: @escaping (inout QueueEntry) throws(Failure) -> Void
    ) throws(Failure) {
        self.complete = complete
        switch content {
        case .list(let reader):
            list = reader
            entries = []
        case .file(let file):
            entries = file.entries
            for index in entries.indices { try complete(&entries[index]) }
        }
    }

    /// Returns whether entries remain.
    func hasMore() throws(Failure) -> Bool { try holds(end) }

    /// Takes the next part.
    ///
    /// - Parameters:
    ///   - bytes: the maximum size of the part as JSON. Sizes are estimated from above: every character may need an
    ///     escape.
    ///   - count: the maximum number of entries in the part.
    /// - Returns: the indices of the part's entries, or `nil` at the end of the file.
    func nextPart(bytes: Int = Limit.bytes, count: Int = Limit.entries) throws(Failure) -> Range<Int>? {
        let start = end
        var size = 0
        while end - start < count, try holds(end) {
            size += entries[end].specification.estimatedSize
            if size > bytes, end > start { break }
            end += 1
        }
        guard end > start else { return nil }
        starts.append(start)
        return start..<end
    }

    private func holds(_ index: Int) throws(Failure) -> Bool {
        while index >= entries.count {
            guard var entry = try readNext() else { return false }
            try complete(&entry)
            entries.append(entry)
        }
        return true
    }

    private func readNext() throws(Failure) -> QueueEntry? {
        do throws(FileError) {
            return try list?.next()
        } catch {
            throw TaskFileReader.failure(error)
        }
    }
}

extension EntryFeed: Sequence, IteratorProtocol {
    /// Returns the next part. An error ends the sequence and is stored in ``failure``.
    func next() -> [TaskSpecification]? {
        do throws(Failure) {
            return try nextPart().map { part in entries[part].map(\.specification) }
        } catch {
            failure = error
            return nil
        }
    }
}
