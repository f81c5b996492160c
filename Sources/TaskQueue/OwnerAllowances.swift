import TaskModel
import TaskStore
import Transfer

/// The bytes that each owner's downloads may take up, for the owners of those that run.
///
/// The bytes that are written down of an owner's tasks are one number of the store's, read when her first download starts;
/// the bytes that those that run take up beside it are counted here.
struct OwnerAllowances {
    private final class Account {
        let allowance: StorageAllowance
        var shares: [TaskID: StorageShare] = [:]
        /// Whether the store may have another number by now.
        var isStale = false

        init(_ allowance: StorageAllowance) { self.allowance = allowance }
    }

    private let store: TaskStore
    private var accounts: [UInt32: Account] = [:]
    /// Bytes; `nil`: any number.
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

    /// Takes in that tasks were removed, or changed.
    func invalidate() { for account in accounts.values { account.isStale = true } }

    /// Opens a download's share; where its size is known, takes all of that beforehand.
    ///
    /// - Returns: `nil` where nobody counts it.
    /// - Throws: ``TransferError/Code/allowanceUsedUp`` where its owner's downloads take up too much already.
    mutating func open(_ record: TaskRecord) throws(TransferError) -> StorageShare? {
        guard limit != nil, record.specification.kind == .download else { return nil }
        let account = try account(of: record.owner)
        if let share = account.shares[record.id] { return share }
        let share = account.allowance.share(takingOver: TaskStore.counted(record.bytesDone))
        account.shares[record.id] = share
        if let total = record.bytesTotal ?? record.specification.size {
            try share.take(max(total, share.held))
        } else if let room = account.allowance.room, room == 0 {
            let (used, limit) = (account.allowance.used, limit ?? .max)
            throw TransferError(.allowanceUsedUp, "\(used) of the \(limit) bytes allowed are taken")
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

    /// Takes in that a download runs no longer.
    ///
    /// - Parameter bytes: that are written down of it.
    mutating func close(_ id: TaskID, of owner: UInt32, keeping bytes: Int64) {
        guard let account = accounts[owner] else { return }
        if let share = account.shares.removeValue(forKey: id) {
            share.end(keeping: TaskStore.counted(bytes))
        } else {
            account.isStale = true
        }
        if account.shares.isEmpty { accounts[owner] = nil }
    }

    /// Bytes that an owner's downloads can still take up; `nil`: any number.
    func room(of owner: UInt32) throws(StoreError) -> Int64? {
        guard let limit else { return nil }
        return max(0, limit.subtractingClamped(try used(by: owner)))
    }

    /// Bytes that an owner's downloads take up, and those that have been taken beforehand for some that run.
    func used(by owner: UInt32) throws(StoreError) -> Int64 {
        guard let account = accounts[owner] else { return try store.keptBytes(of: owner) }
        if account.isStale { try refresh(account, of: owner) }
        return account.allowance.used
    }
}
