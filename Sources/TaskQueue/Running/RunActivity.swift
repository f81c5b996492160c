import TaskModel

/// The activity of a run: its throughput, and its use of the slot. A run without data for a while is silent and lends
/// its slot to others.
///
/// A value without I/O and clock. All times are monotonic, in milliseconds.
struct RunActivity {
    /// The use of the slot.
    enum Slot {
        case active, silent
        /// All bytes have been received, or the run has ended.
        case released
    }

    /// The changes since the last observation.
    struct Changes: Equatable {
        /// Whether the first bytes have arrived.
        var hasFirstBytes = false
        /// Whether the run is silent now; `nil` where that has not changed.
        var silence: Bool?
    }

    /// The time without a first byte after which a run is silent. A run that has received bytes is silent after a
    /// third of its stall time-out.
    static let silence: Milliseconds = 1_000

    private(set) var slot = Slot.active
    private var meter = RateMeter()
    /// The time of the last change of the byte count, or at which a limit held the transfer back.
    private(set) var lastMoved: Milliseconds
    private var lastTransferred: Int64 = 0
    /// The retries so far, and the time of the last one.
    private var retries = (count: 0, last: Milliseconds.min)

    init(now: Milliseconds) { lastMoved = now }

    var isSilent: Bool { slot == .silent }

    /// Whether the run counts among those that use the network.
    var holdsSlot: Bool { slot != .released }

    /// Records the byte count.
    ///
    /// - Parameters:
    ///   - transferred: the bytes received or sent in this run.
    ///   - retries: the number of times that this run has connected again.
    ///   - isHeldBack: Whether a limit of the daemon holds the transfer back. Such a run is not silent.
    mutating func observe(
        _ transferred: Int64, retries: Int = 0, isHeldBack: Bool, stallTimeout: Milliseconds, now: Milliseconds
    ) -> Changes {
        var changes = Changes()
        meter.record(transferred, at: now)
        if retries != self.retries.count { self.retries = (retries, now) }
        if transferred != lastTransferred {
            changes.hasFirstBytes = lastTransferred == 0 && holdsSlot
            lastTransferred = transferred
            lastMoved = now
        }
        if isHeldBack { lastMoved = now }
        guard holdsSlot else { return changes }
        let timeout = min(lastTransferred > 0 ? stallTimeout / 3 : Self.silence, stallTimeout / 3)
        let isSilent = now - lastMoved >= timeout
        if isSilent != self.isSilent {
            slot = isSilent ? .silent : .active
            changes.silence = isSilent
        }
        return changes
    }

    /// Returns the time at which the connection counts as stalled if no byte passes; `nil` before the first byte, when
    /// other time-outs apply, and where there is no time-out.
    func stall(after timeout: Milliseconds) -> Milliseconds? {
        lastTransferred > 0 && timeout > 0 ? max(lastMoved, retries.last).addingClamped(timeout) : nil
    }

    /// Releases the slot.
    ///
    /// - Returns: the use of the slot until now; `nil` where it was released before.
    mutating func releaseSlot() -> Slot? {
        guard holdsSlot else { return nil }
        defer { slot = .released }
        return slot
    }

    /// Records a byte count for the throughput alone.
    mutating func measure(_ transferred: Int64, now: Milliseconds) { meter.record(transferred, at: now) }

    /// Returns the throughput in bytes per second; `nil` until it can be measured.
    func rate(_ transferred: Int64, now: Milliseconds) -> Int64? { meter.rate(transferred, at: now) }
}
