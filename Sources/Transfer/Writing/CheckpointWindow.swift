/// The bytes of a download that no checkpoint covers: when the next checkpoint is due, and when receiving must pause
/// for one. A value without I/O.
struct CheckpointWindow {
    /// The number of received bytes after which a checkpoint is due.
    private let interval: Int64
    /// The number of bytes that may be received beyond the last confirmed checkpoint.
    private let limit: Int64
    private var sinceCheckpoint: Int64 = 0
    /// Whether the next bytes make a checkpoint due, however few they are.
    private var isDueAtOnce: Bool
    /// The number of bytes covered by a confirmed checkpoint.
    private var confirmed: Int64 = 0

    /// - Parameters:
    ///   - limit: the number of unconfirmed bytes; `nil` for no limit.
    ///   - isDueAtOnce: whether the first bytes make a checkpoint due, however few they are.
    init(interval: Int64, limit: Int64?, isDueAtOnce: Bool = false) {
        self.interval = interval
        self.isDueAtOnce = isDueAtOnce
        self.limit = limit ?? .max
    }

    /// Returns whether blocks of `size` bytes are small beside the limit, which holds for bytes that were written or are
    /// being written, and not for the block that is being filled.
    func allowsBlocks(of size: Int64) -> Bool { limit / 16 >= size }

    /// Whether no byte was received since the last checkpoint was due.
    var isFresh: Bool { sinceCheckpoint == 0 }

    /// Returns whether receiving must pause until a checkpoint has been confirmed.
    ///
    /// - Parameter count: the number of bytes that the part holds.
    func isExceeded(by count: Int64) -> Bool { count - confirmed >= limit }

    /// Records received bytes.
    ///
    /// - Returns: whether a checkpoint is due.
    mutating func receive(_ bytes: Int64) -> Bool {
        sinceCheckpoint += bytes
        guard sinceCheckpoint >= interval || isDueAtOnce else { return false }
        isDueAtOnce = false
        sinceCheckpoint = 0
        return true
    }

    /// Records that a checkpoint covers `count` bytes, of `total` bytes that the part holds. Checkpoints may be confirmed
    /// in any order: an earlier one takes nothing back, or receiving would pause where no further one is due.
    mutating func confirm(_ count: Int64, of total: Int64) { confirmed = max(confirmed, min(count, total)) }

    /// Records that the part holds no more than `count` bytes now.
    mutating func limit(to count: Int64) { confirmed = min(confirmed, count) }
}
