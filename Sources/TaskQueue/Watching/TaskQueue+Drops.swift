import TaskModel
import TaskStore

// Sets that may be asked for twice: by one who cannot know whether the first time there was a commit.
extension TaskQueue {
    /// Entries of a call, as on the control socket.
    private static let entriesInPart = 1_000

    /// Applies entries whole, and writes a receipt of it in the same commit.
    ///
    /// - Parameters:
    ///   - batch: as of ``beginSet(batch:by:)``.
    ///   - receipt: the name to write it under.
    /// - Throws: ``QueueError``; a field's error names it as `entries[3].url`.
    package func apply(
        _ entries: [TaskSpecification], batch: String?, receipt: String, by caller: Caller
    ) async throws(QueueError) -> SetReceipt {
        guard !entries.isEmpty else { return SetReceipt() }
        let set = try await beginSet(batch: batch, by: caller)
        do throws(QueueError) {
            for start in stride(from: 0, to: entries.count, by: Self.entriesInPart) {
                let part = Array(entries[start..<min(start + Self.entriesInPart, entries.count)])
                do throws(QueueError) {
                    _ = try await put(set, part, by: caller)
                } catch {
                    throw error.movingEntries(by: start)
                }
            }
            _ = try await commitSet(set, prune: false, dryRun: false, receipt: receipt, by: caller)
        } catch {
            try? await abortSet(set, by: caller)
            throw error
        }
        return try self.receipt(receipt) ?? SetReceipt()
    }

    func receipt(_ name: String) throws(QueueError) -> SetReceipt? {
        try stored { () throws(StoreError) in try store.receipt(name) }
    }

    func receipts(beginningWith prefix: String) throws(QueueError) -> [String] {
        try stored { () throws(StoreError) in try store.receipts(beginningWith: prefix) }
    }

    func forgetReceipts(_ names: [String]) async throws(QueueError) {
        try await stored { () async throws(StoreError) in try await store.removeReceipts(names) }
    }
}

extension QueueError {
    /// The index and the name of the field in `entries[3].url`.
    var entry: (index: Int, field: String, message: String, code: ErrorCode)? {
        guard case .field(let error) = self, error.field.hasPrefix("entries["),
            let close = error.field.firstIndex(of: "]"),
            let index = Int(error.field[..<close].dropFirst("entries[".count))
        else { return nil }
        return (index, String(error.field[close...].dropFirst(2)), error.message, error.code)
    }

    fileprivate func movingEntries(by count: Int) -> QueueError {
        guard let entry else { return self }
        return .field(
            FieldError(
                field: "entries[\(entry.index + count)].\(entry.field)", code: entry.code, message: entry.message))
    }

    /// Whether it may be otherwise in a while, without anybody changing what was asked for.
    var isPassing: Bool {
        switch self {
        case .field: false
        case .refused(let code, _): code == .quota || code == .diskFull
        case .store: true
        }
    }
}
