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
    private let complete: (inout QueueEntry) throws(FileError) -> Void

    enum Limit {
        /// The maximum size of a part in bytes. It leaves room on the line for the call around the entries.
        static let bytes = MessageLimits.lineLength - 128 * 1024
        static let entries = QueuePutParameters.maximumEntries
    }

    /// - Parameter complete: adds the options of the call to an entry and validates it.
    init(
        _ content: TaskFileReader.Content, completing complete: @escaping (inout QueueEntry) throws(FileError) -> Void
    ) throws(Failure) {
        self.complete = complete
        switch content {
        case .list(let reader):
            list = reader
            entries = []
        case .file(let file):
            entries = file.entries
            var faults = FileFaults()
            for index in entries.indices {
                do throws(FileError) {
                    try complete(&entries[index])
                } catch {
                    faults.add(error)
                }
            }
            if let error = faults.error { throw TaskFileReader.failure(error) }
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

    /// The maximum number of repeated entries that are named.
    private static let namedRepeats = 20

    /// Returns the number of entries read that are the same task of a batch as an earlier one, with notes on the first of
    /// them. A queue file with such entries is refused before.
    ///
    /// - Parameter file: the name of the file.
    func repeated(in file: String) -> (count: Int, notes: [FileNote]) {
        var lines: [QueueEntry.Identity: Int] = [:]
        var count = 0
        var notes: [FileNote] = []
        for entry in entries {
            guard let line = lines[entry.identity] else {
                lines[entry.identity] = entry.line
                continue
            }
            count += 1
            if count > Self.namedRepeats { continue }
            let message = "this is the same task as the one at line \(line); it is queued once"
            notes.append(FileNote(file: file, line: entry.line, column: entry.column, message: message))
        }
        return (count, notes)
    }

    private func holds(_ index: Int) throws(Failure) -> Bool {
        while index >= entries.count {
            guard let entry = try nextOrFaults() else { return false }
            entries.append(entry)
        }
        return true
    }

    /// Returns the next entry of the list.
    ///
    /// - Throws: a failure that also lists the faults in the remainder of the list, which is read for it.
    private func nextOrFaults() throws(Failure) -> QueueEntry? {
        var faults = FileFaults()
        while true {
            do throws(FileError) {
                let entry = try readNext()
                if faults.isEmpty { return entry }
                if entry == nil { break }
            } catch {
                faults.add(error)
            }
        }
        throw faults.error.map(TaskFileReader.failure) ?? .usage("the list cannot be read")
    }

    private func readNext() throws(FileError) -> QueueEntry? {
        guard var entry = try list?.next() else { return nil }
        try complete(&entry)
        return entry
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
