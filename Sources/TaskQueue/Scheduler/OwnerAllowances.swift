import TaskModel
import TaskStore
import Transfer

/// The storage quotas of the owners of running downloads.
///
/// The stored size of an owner's tasks is a single number in the store, read when the owner's first download starts.
/// The additional bytes of running downloads are counted here.
struct OwnerAllowances {
    private final class Account {
        let allowance: StorageAllowance
        var shares: [TaskID: StorageShare] = [:]
        /// Whether the number in the store may have changed.
        var isStale = false

        init(_ allowance: StorageAllowance) { self.allowance = allowance }
    }

    private let store: TaskStore
    private var accounts: [UInt32: Account] = [:]
    /// The quota in bytes; `nil` for unlimited.
    var limit: Int64? {
        didSet {
            for account in accounts.values { account.allowance.limit = limit }
            invalidate()
        }
    }

    init(store: TaskStore, limit: Int64?) {
        self.store = store
        self.limit = limit
    }

    /// Marks the stored numbers as outdated, after tasks were removed or changed.
    func invalidate() { for account in accounts.values { account.isStale = true } }

    /// Opens a download's share of its owner's quota. Reserves the whole size in advance where it is known.
    ///
    /// - Returns: `nil` where the download does not count towards a quota.
    /// - Throws: ``TransferError/Code/allowanceUsedUp`` where the owner's quota is used up.
    mutating func open(_ record: TaskRecord) throws(TransferError) -> StorageShare? {
        guard limit != nil, record.specification.kind == .download else { return nil }
        let account = try account(of: record.owner)
        if let share = account.shares[record.id] { return share }
        let share = account.allowance.share(takingOver: TaskStore.counted(record.bytesDone))
        account.shares[record.id] = share
        if let total = record.bytesTotal ?? record.specification.size {
            try share.reserve(max(total, share.held))
        } else if let room = account.allowance.room, room == 0 {
            let (used, limit) = (account.allowance.used, limit ?? .max)
            throw TransferError(.allowanceUsedUp, "\(used) of the \(limit) bytes allowed are used")
        }
        return share
    }

    private mutating func account(of owner: UInt32) throws(TransferError) -> Account {
        do throws(StoreError) {
            if let account = accounts[owner] {
                if account.isStale { try refresh(account, of: owner) }
                return account
            }
            let account = Account(StorageAllowance(limit: limit, kept: try store.keptBytes(of: owner)))
            accounts[owner] = account
            return account
        } catch {
            throw TransferError(.io, "the store cannot be read: \(error)")
        }
    }

    private func refresh(_ account: Account, of owner: UInt32) throws(StoreError) {
        account.allowance.kept = try store.keptBytes(of: owner, besides: account.shares.keys)
        account.isStale = false
    }

    /// Closes the share of a download that is no longer running.
    ///
    /// - Parameter bytes: the size of the download recorded in the store.
    mutating func close(_ id: TaskID, of owner: UInt32, keeping bytes: Int64) {
        guard let account = accounts[owner] else { return }
        if let share = account.shares.removeValue(forKey: id) {
            share.end(keeping: TaskStore.counted(bytes))
        } else {
            account.isStale = true
        }
        if account.shares.isEmpty { accounts[owner] = nil }
    }

    /// Returns the bytes left of an owner's quota; `nil` for unlimited.
    func room(of owner: UInt32) throws(StoreError) -> Int64? {
        guard let limit else { return nil }
        return max(0, limit.subtractingClamped(try used(by: owner)))
    }

    /// Returns the bytes used by an owner's downloads, including those reserved in advance for running downloads.
    func used(by owner: UInt32) throws(StoreError) -> Int64 {
        guard let account = accounts[owner] else { return try store.keptBytes(of: owner) }
        if account.isStale { try refresh(account, of: owner) }
        return account.allowance.used
    }
}
