import TaskModel
import TaskStore

// Idempotent application of staged batches, for callers that cannot know whether an earlier attempt was committed.
extension TaskQueue {
    /// Applies entries atomically, and writes a receipt in the same commit.
    ///
    /// - Parameters: as for ``apply(_:batch:receipt:by:)``.
    func applyOnce(
        _ entries: [TaskSpecification], batch: String?, receipt: String, by caller: Caller
    ) async throws(QueueError) -> StagedBatchReceipt {
        guard !entries.isEmpty else { return StagedBatchReceipt() }
        _ = try await apply(entries, batch: batch, receipt: receipt, by: caller)
        return try self.receipt(receipt) ?? StagedBatchReceipt()
    }

    func receipt(_ name: String) throws(QueueError) -> StagedBatchReceipt? {
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
    /// Whether the error may disappear by itself, without a change of the request.
    var isPassing: Bool {
        switch self {
        case .field: false
        case .refused(let code, _): code == .quota || code == .diskFull
        case .store: true
        }
    }
}
