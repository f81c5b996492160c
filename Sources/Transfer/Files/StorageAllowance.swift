import Synchronization

/// A limit on the bytes that the files of several downloads may occupy together, on whatever file systems.
///
/// Each download has a ``StorageShare`` of it. A size stated by the server is reserved before the first byte is
/// received. A file of unknown size reserves more as it grows; its download ends when nothing is left.
public final class StorageAllowance: Sendable {
    fileprivate struct State {
        var limit: Int64?
        /// Bytes in files without a share.
        var kept: Int64
        /// Bytes reserved by all shares together.
        var held: Int64 = 0

        var used: Int64 { max(0, kept.addingCapped(held)) }
        /// The bytes that can still be reserved; `nil` without a limit.
        var room: Int64? { limit.map { max(0, $0.subtractingCapped(used)) } }
    }

    fileprivate let state: Mutex<State>

    /// Creates an allowance.
    ///
    /// - Parameters:
    ///   - limit: the limit in bytes; `nil` for none.
    ///   - kept: the bytes in files without a share.
    public init(limit: Int64?, kept: Int64 = 0) { state = Mutex(State(limit: limit, kept: kept)) }

    /// The limit in bytes; `nil` for none. If it is lowered, existing reservations stay.
    public var limit: Int64? {
        get { state.withLock { $0.limit } }
        set { state.withLock { $0.limit = newValue } }
    }

    /// The bytes in files without a share.
    public var kept: Int64 {
        get { state.withLock { $0.kept } }
        set { state.withLock { $0.kept = newValue } }
    }

    /// The bytes in files, and those reserved by running downloads.
    public var used: Int64 { state.withLock { $0.used } }

    /// The bytes that can still be reserved; `nil` without a limit.
    public var room: Int64? { state.withLock { $0.room } }

    /// Creates a share for one download.
    ///
    /// - Parameter bytes: the bytes of its file that exist already and were counted in ``kept``.
    public func share(takingOver bytes: Int64 = 0) -> StorageShare {
        state.withLock { state in
            state.kept = state.kept.subtractingCapped(bytes)
            state.held = state.held.addingCapped(bytes)
        }
        return StorageShare(of: self, holding: bytes)
    }
}

/// The bytes of a ``StorageAllowance`` reserved for one download; see ``DownloadTarget/share``.
public final class StorageShare: Sendable {
    private let allowance: StorageAllowance
    /// The reserved bytes; modified only under the allowance's lock.
    private let bytes: Atomic<Int64>

    fileprivate init(of allowance: StorageAllowance, holding bytes: Int64) {
        self.allowance = allowance
        self.bytes = Atomic(bytes)
    }

    /// The bytes that the download may write without a further reservation.
    public var held: Int64 { bytes.load(ordering: .acquiring) }

    /// Changes the reservation to `wanted` bytes in all, more or fewer than before.
    ///
    /// - Throws: ``TransferError/Code/allowanceUsedUp`` if the allowance is too small; the reservation is unchanged
    ///   then.
    public func reserve(_ wanted: Int64) throws(TransferError) { _ = try change(to: wanted, ahead: 0, shrinks: true) }

    /// Reserves at least `wanted` bytes in all, and up to `ahead` more.
    ///
    /// - Returns: the number of bytes reserved now.
    /// - Throws: as ``reserve(_:)``.
    func grow(to wanted: Int64, ahead: Int64) throws(TransferError) -> Int64 {
        try change(to: wanted, ahead: ahead, shrinks: false)
    }

    /// Ends the share when its download ends.
    ///
    /// - Parameter kept: the bytes of its file that stay.
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
            "the file needs \(more) bytes more, and \(used) of the \(limit) bytes allowed are used")
    }
}

extension Int64 {
    /// Returns the sum, limited to the range of `Int64`: sizes from a server or a file may have any value.
    fileprivate func addingCapped(_ other: Int64) -> Int64 {
        let (sum, isBeyond) = addingReportingOverflow(other)
        return isBeyond ? (other < 0 ? .min : .max) : sum
    }

    fileprivate func subtractingCapped(_ other: Int64) -> Int64 {
        let (difference, isBeyond) = subtractingReportingOverflow(other)
        return isBeyond ? (other < 0 ? .max : .min) : difference
    }
}
