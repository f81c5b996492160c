/// The blocks that are queued for a slow disk: when receiving must pause, and when the disk is fast again. A value
/// without I/O.
struct SlowDiskQueue {
    /// The number of queued blocks. They count as received, but are not in the part file yet.
    private(set) var count = 0
    /// The number of consecutive quick writes.
    private var quickWrites = 0

    /// The maximum duration of a quick write, in milliseconds.
    static let quickWrite: Int64 = 10
    /// The number of consecutive quick writes after which the loop writes directly again.
    static let recovery = 256
    /// The maximum number of queued blocks.
    static let limit = 16

    /// Whether receiving must pause until the disk has written queued blocks.
    var isFull: Bool { count >= Self.limit }

    var isEmpty: Bool { count == 0 }

    /// Begins anew with a disk that has become slow. Blocks that are queued stay.
    mutating func begin() { quickWrites = 0 }

    mutating func add() { count += 1 }

    /// Records the end of a write.
    ///
    /// - Parameters:
    ///   - milliseconds: the duration of the write.
    ///   - failed: whether the write failed.
    /// - Returns: whether the disk is fast again, so that the loop may write directly.
    mutating func remove(after milliseconds: Int64, failed: Bool) -> Bool {
        count = max(0, count - 1)
        guard !failed else { return false }
        quickWrites = milliseconds <= Self.quickWrite ? quickWrites + 1 : 0
        return isEmpty && quickWrites >= Self.recovery
    }
}
