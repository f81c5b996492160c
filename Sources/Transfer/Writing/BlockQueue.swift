/// The blocks that are queued for the disk: when receiving must pause, and when a slow disk is fast again. A value
/// without I/O.
struct BlockQueue {
    /// The number of queued blocks. They count as received, but are not in the part file yet.
    private(set) var count = 0
    /// The number of bytes in them.
    private var bytes = 0
    /// Whether the disk is slow, so that nothing may be written on the loop's thread.
    private(set) var isDiskSlow = false
    /// The number of consecutive quick writes.
    private var quickWrites = 0

    /// The maximum duration of a quick write, in milliseconds.
    static let quickWrite: Int64 = 10
    /// The number of consecutive quick writes after which the loop writes directly again.
    static let recovery = 256
    /// The maximum number of queued blocks.
    static let limit = 16
    /// The number of queued bytes from which receiving pauses. A fast disk is never behind by so much.
    static let byteLimit = 6 << 20

    /// Whether receiving must pause until the disk has written queued blocks.
    var isFull: Bool { count >= Self.limit || bytes >= Self.byteLimit }

    var isEmpty: Bool { count == 0 }

    /// Records that the disk has become slow. Blocks that are queued stay.
    mutating func diskBecameSlow() {
        isDiskSlow = true
        quickWrites = 0
    }

    /// Records that a block of `size` bytes is queued.
    mutating func add(_ size: Int) {
        count += 1
        bytes += size
    }

    /// Records the end of the write of a block of `size` bytes. After enough quick ones in a row, once nothing is queued,
    /// the disk is fast again.
    ///
    /// - Parameters:
    ///   - milliseconds: the duration of the write.
    ///   - failed: whether the write failed.
    mutating func remove(_ size: Int, after milliseconds: Int64, failed: Bool) {
        count = max(0, count - 1)
        bytes = max(0, bytes - size)
        guard !failed else { return }
        quickWrites = milliseconds <= Self.quickWrite ? quickWrites + 1 : 0
        if isEmpty, quickWrites >= Self.recovery { isDiskSlow = false }
    }
}
