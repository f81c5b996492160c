import Curl

/// The times of a WebSocket: of the closing handshake, and without traffic.
///
/// While a call waits, a ping is sent after half of the time-out without traffic. So the time-out ends the connection
/// only if the server does not answer, and not because it has nothing to say.
struct WebSocketClock {
    /// The time in milliseconds for the closing handshake and for closing the connection.
    static let closeTimeout: Int64 = 10_000

    enum Expiry { case close, stall }

    /// The time-out without traffic in milliseconds; 0 for none.
    var stallTimeout: Int64 = 0
    /// Whether bytes were received, or sent for another purpose than to keep the connection alive, since the last turn.
    var sawTraffic = false
    /// Whether the closing handshake has begun.
    var isClosing = false
    /// Whether a ping is to be sent, to see whether the server is alive.
    var wantsPing = false
    private var isPinged = false
    private var lastTraffic: MonotonicTime?
    private var awaitedSince: MonotonicTime?
    private var closeDeadline: MonotonicTime?

    init(stallTimeout: Int64 = 0) { self.stallTimeout = stallTimeout }

    /// Stops the times until the next turn.
    mutating func stop() {
        closeDeadline = nil
        endWait()
    }

    /// - Returns: the earliest time to call ``expire(at:isAwaited:)``; `nil` if there is none.
    mutating func beginTurn(_ now: MonotonicTime, isAwaited: Bool) -> MonotonicTime? {
        if sawTraffic || lastTraffic == nil {
            lastTraffic = now
            (sawTraffic, isPinged, wantsPing) = (false, false, false)
        }
        if isAwaited { awaitedSince = awaitedSince ?? now } else { endWait() }
        if isClosing, closeDeadline == nil { closeDeadline = now.advanced(milliseconds: Self.closeTimeout) }
        return [closeDeadline, silenceEnd].compactMap { $0 }.min()
    }

    /// Ends a wait, so that the next one has its full time and a ping of its own.
    private mutating func endWait() { (awaitedSince, isPinged, wantsPing) = (nil, false, false) }

    /// The time at which a ping is to be sent, or at which the connection counts as stalled after one.
    private var silenceEnd: MonotonicTime? {
        guard stallTimeout > 0, let awaitedSince, let lastTraffic else { return nil }
        let wait = isPinged ? stallTimeout : max(1, stallTimeout / 2)
        return max(lastTraffic, awaitedSince).advanced(milliseconds: wait)
    }

    mutating func expire(at now: MonotonicTime, isAwaited: Bool) -> Expiry? {
        if let closeDeadline, closeDeadline <= now { return .close }
        guard isAwaited, !sawTraffic, let silenceEnd, silenceEnd <= now else { return nil }
        if isPinged { return .stall }
        (isPinged, wantsPing) = (true, true)
        return nil
    }
}
