import TaskModel
import TaskStore

// Sets that may be asked for twice: by one who cannot know whether the first time there was a commit.
extension TaskQueue {
    /// Applies entries whole, and writes a receipt of it in the same commit.
    ///
    /// - Parameters: as of ``apply(_:batch:receipt:by:)``.
    func applyOnce(
        _ entries: [TaskSpecification], batch: String?, receipt: String, by caller: Caller
    ) async throws(QueueError) -> SetReceipt {
        guard !entries.isEmpty else { return SetReceipt() }
        _ = try await apply(entries, batch: batch, receipt: receipt, by: caller)
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
    /// Whether it may be otherwise in a while, without anybody changing what was asked for.
    var isPassing: Bool {
        switch self {
        case .field: false
        case .refused(let code, _): code == .quota || code == .diskFull
        case .store: true
        }
    }
}
