/// The activity of an exchange, by which a stall is detected. A value without I/O and clock.
///
/// An exchange has stalled if no byte passed for ``stallTimeout``, if its body was slower than ``leastBytes`` in that
/// time, or if a head took longer than ``headTimeout``.
package struct ExchangeActivity {
    /// The time at which a byte was last received or sent, or at which the last pause ended.
    package internal(set) var last: MonotonicTime
    /// The time without activity after which the exchange counts as stalled, in milliseconds; 0 for never.
    package var stallTimeout: Int64 = 0
    /// The number of body bytes that must be received within ``stallTimeout`` once the first byte was; fewer are a
    /// stall too.
    package var leastBytes: Int64 = 0
    /// The time from the first line of a response until its head must be complete, in milliseconds, not counting time
    /// during which bytes are sent; 0 for no limit. No single line counts as a stall by itself.
    package var headTimeout: Int64 = 0
    /// Whether the exchange has more to send to a peer that has already responded and accepts no bytes. Received bytes
    /// then do not count as activity.
    package var isWaitingToSend = false
    /// The time of the first line of a head that is not complete yet.
    private var headBegun: MonotonicTime?
    /// Whether the final head is complete; further lines are trailers.
    private var isHeadComplete = false
    /// The start of the current counting period, and the bytes received in it.
    private var period: (begun: MonotonicTime, bytes: Int64)?
    /// The number of calls in a row of ``exclude(_:)`` without activity in between, and the last activity that the
    /// latest call has set.
    private var exclusions = 0
    private var excludedUntil: MonotonicTime?

    private static let mostExclusions = 30

    init(now: MonotonicTime) { last = now }

    // MARK: Events

    mutating func headCompleted() {
        isHeadComplete = true
        headBegun = nil
    }

    mutating func headerLineReceived(at now: MonotonicTime) {
        if !isWaitingToSend { last = now }
        if isHeadComplete { return count(0, at: now) }
        headBegun = headBegun ?? now
    }

    mutating func bodyReceived(_ bytes: Int, at now: MonotonicTime) {
        if !isWaitingToSend { last = now }
        count(bytes, at: now)
    }

    mutating func bytesSent(at now: MonotonicTime) {
        last = now
        period = nil
        if headBegun != nil { headBegun = now }
    }

    mutating func resumed(at now: MonotonicTime) {
        last = now
        if headBegun != nil { headBegun = now }
    }

    private mutating func count(_ bytes: Int, at now: MonotonicTime) {
        guard leastBytes > 0 else { return }
        if period == nil { period = (now, 0) }
        period?.bytes += Int64(bytes)
    }

    // MARK: Stalls

    /// Returns whether the exchange has stalled. Call it periodically while it is not paused.
    mutating func isStalled(at now: MonotonicTime) -> Bool {
        if now.milliseconds(since: last) >= stallTimeout { return true }
        if headTimeout > 0, let headBegun, now.milliseconds(since: headBegun) >= headTimeout { return true }
        guard leastBytes > 0, let period else {
            period = nil
            return false
        }
        guard now.milliseconds(since: period.begun) >= stallTimeout else { return false }
        self.period = (now, 0)
        return period.bytes < leastBytes
    }

    /// Ends the counting period, since no bytes are expected during a pause.
    mutating func paused() { period = nil }

    /// Excludes a period in which the loop was busy elsewhere from the stall detection.
    ///
    /// The exclusion ends after some periods without a byte in between, because the peer of this exchange may be
    /// the one that keeps the loop busy.
    mutating func exclude(_ milliseconds: Int64) {
        exclusions = last == excludedUntil ? exclusions + 1 : 1
        guard exclusions <= Self.mostExclusions else { return }
        last = last.advanced(milliseconds: milliseconds)
        excludedUntil = last
        if let begun = period?.begun { period?.begun = begun.advanced(milliseconds: milliseconds) }
        headBegun = headBegun?.advanced(milliseconds: milliseconds)
    }
}
