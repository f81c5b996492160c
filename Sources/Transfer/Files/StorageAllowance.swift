import Synchronization

/// Bytes that the files of several downloads may take up together, whatever file systems they lie on.
///
/// Each download has a ``StorageShare`` of it. The size that a server tells is taken before the first byte is; a file of
/// unknown size takes more as it grows, and its download ends where there is no more to take.
public final class StorageAllowance: Sendable {
    fileprivate struct State {
        var limit: Int64?
        /// Bytes that are there without a share.
        var kept: Int64
        /// Bytes of all shares together.
        var held: Int64 = 0

        var used: Int64 { max(0, kept.addingCapped(held)) }
        /// `nil`: there is no end to it.
        var room: Int64? { limit.map { max(0, $0.subtractingCapped(used)) } }
    }

    fileprivate let state: Mutex<State>

    /// - Parameters:
    ///   - limit: bytes; `nil`: any number.
    ///   - kept: bytes that are there without a share.
    public init(limit: Int64?, kept: Int64 = 0) { state = Mutex(State(limit: limit, kept: kept)) }

    /// Bytes that files may take up together; `nil`: any number. What was taken before it became less stays taken.
    public var limit: Int64? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// Bytes that are there without a share.
    public var kept: Int64 {
        get { state.withLock { $0.kept } }
        set { state.withLock { $0.kept = newValue } }
    }

    /// Bytes that are there, and those that downloads under way have taken beforehand.
    public var used: Int64 { state.withLock { $0.used } }

    /// Bytes that can still be taken; `nil`: any number.
    public var room: Int64? { state.withLock { $0.room } }

    /// Opens a share for one download.
    ///
    /// - Parameter bytes: that are there of its file, counted as ``kept`` so far.
    public func share(takingOver bytes: Int64 = 0) -> StorageShare {
        state.withLock { state in
            state.kept = state.kept.subtractingCapped(bytes)
            state.held = state.held.addingCapped(bytes)
        }
        return StorageShare(of: self, holding: bytes)
    }
}

/// The bytes that one download takes up of a ``StorageAllowance``; see ``DownloadTarget/share``.
public final class StorageShare: Sendable {
    private let allowance: StorageAllowance
    /// Written under the allowance's lock.
    private let bytes: Atomic<Int64>

    fileprivate init(of allowance: StorageAllowance, holding bytes: Int64) {
        self.allowance = allowance
        self.bytes = Atomic(bytes)
    }

    /// Bytes that the download may write without asking for more.
    public var held: Int64 { bytes.load(ordering: .acquiring) }

    /// Takes `wanted` bytes in all, more or fewer than before.
    ///
    /// - Throws: ``TransferError/Code/allowanceUsedUp`` where there are not so many; then it holds what it held.
    public func take(_ wanted: Int64) throws(TransferError) { _ = try change(to: wanted, ahead: 0, shrinks: true) }

    /// Takes at least `wanted` bytes in all, and up to `ahead` more.
    ///
    /// - Returns: how many it holds now.
    /// - Throws: as ``take(_:)``.
    func grow(to wanted: Int64, ahead: Int64) throws(TransferError) -> Int64 {
        try change(to: wanted, ahead: ahead, shrinks: false)
    }

    /// Ends the share with its download.
    ///
    /// - Parameter kept: bytes that stay there of it.
    public func end(keeping kept: Int64) {
        allowance.state.withLock { state in
            let held = bytes.exchange(0, ordering: .acquiringAndReleasing)
            state.held = state.held.subtractingCapped(held)
            state.kept = state.kept.addingCapped(kept)
        }
    }

    private func change(to wanted: Int64, ahead: Int64, shrinks: Bool) throws(TransferError) -> Int64 {
        let outcome = allowance.state.withLock { state -> Result<Int64, TransferError> in
            let held = bytes.load(ordering: .relaxed)
            let more = wanted.subtractingCapped(held)
            if more <= 0, !shrinks { return .success(held) }
            let room = state.room ?? .max
            guard more <= 0 || more <= room else {
                return .failure(Self.refusal(more, used: state.used, limit: state.limit ?? .max))
            }
            let added = more <= 0 ? more : min(more.addingCapped(ahead), room)
            state.held = state.held.addingCapped(added)
            bytes.store(held.addingCapped(added), ordering: .releasing)
            return .success(held.addingCapped(added))
        }
        return try outcome.get()
    }

    private static func refusal(_ more: Int64, used: Int64, limit: Int64) -> TransferError {
        TransferError(
            .allowanceUsedUp,
            "the file needs \(more) bytes more, and \(used) of the \(limit) bytes allowed are taken")
    }
}

extension Int64 {
    /// The sum, held within what there are numbers for: sizes that a server or a file tells may be any.
    fileprivate func addingCapped(_ other: Int64) -> Int64 {
        let (sum, isBeyond) = addingReportingOverflow(other)
        return isBeyond ? (other < 0 ? .min : .max) : sum
    }

    fileprivate func subtractingCapped(_ other: Int64) -> Int64 {
        let (difference, isBeyond) = subtractingReportingOverflow(other)
        return isBeyond ? (other < 0 ? .max : .min) : difference
    }
}
