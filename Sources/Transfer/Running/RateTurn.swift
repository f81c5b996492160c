import Curl

/// One connection's turn at the limits that its bytes count against: the request's own, its host's and the session's.
///
/// Bytes are counted before they pass, in the order in which connections ask: a hundred that share a small rate get one
/// piece each in turn, and nobody looks more often than a limit could be raised. A turn is worth the same to all who
/// share a high rate, however large the pieces are in which their bytes arrive. Lives on its loop's thread.
struct RateTurn {
    enum Direction { case download, upload }

    private let limits: ByteLimits
    private let session: Session
    private let direction: Direction
    /// Who is spoken to.
    private let origin: (scheme: String, host: String, port: Int)
    private var hostLimiters: HostRates.Limiters?
    private var hostEdition = 0

    /// Bytes that were counted and have not passed.
    private var counted = 0
    /// Counted bytes that are yet to be taken from the shared limits, since another connection waits there.
    private var deferred = 0
    /// In the request's ``SharedLine``.
    private let id: Int
    /// Called when the connection may take its turn at the shared limits.
    private let wake: () -> Void
    private var ownTicket: TokenBucket.Ticket?
    private var hostTicket: TokenBucket.Ticket?
    private var sessionTicket: TokenBucket.Ticket?

    init(
        _ direction: Direction, at origin: (scheme: String, host: String, port: Int), limits: ByteLimits,
        session: Session, wake: @escaping () -> Void = {}
    ) {
        id = limits.line.makeID()
        self.wake = wake
        self.direction = direction
        self.origin = origin
        self.limits = limits
        self.session = session
    }

    private var limiter: RateLimiter {
        switch direction {
        case .download: session.downloadLimiter
        case .upload: session.uploadLimiter
        }
    }

    private var host: RateLimiter? {
        switch direction {
        case .download: hostLimiters?.download
        case .upload: hostLimiters?.upload
        }
    }

    /// Milliseconds until so many bytes may pass, which are counted with this where they were not before; 0: now.
    mutating func wait(toPass bytes: Int, now: MonotonicTime) -> Int64 {
        guard bytes > counted else { return 0 }
        // Follows the host too.
        let quantum = quantum()
        let more = max(bytes - counted, quantum)
        counted += more
        let own = limits.take(more, now: now)
        ownTicket = own.ticket
        return max(own.wait, takeShared(more, now: now))
    }

    /// Takes bytes from the limits that others share, unless another connection of the request waits there.
    private mutating func takeShared(_ bytes: Int, now: MonotonicTime) -> Int64 {
        (sessionTicket, hostTicket) = (nil, nil)
        deferred = 0
        guard limiter.rate != nil || host?.rate != nil else {
            limits.line.leave(id)
            return 0
        }
        guard limits.line.enter(id, wake: wake) else {
            deferred = bytes
            return ByteLimits.longestRest
        }
        let session = limiter.take(bytes, now: now)
        let host = self.host?.take(bytes, now: now)
        (sessionTicket, hostTicket) = (session.ticket, host?.ticket)
        let wait = max(session.wait, host?.wait ?? 0)
        if wait == 0 { limits.line.leave(id) }
        return wait
    }

    /// Milliseconds that are left to wait; 0: what was counted may pass.
    mutating func wait(now: MonotonicTime) -> Int64 {
        let own = ownTicket.map { limits.wait(for: $0, now: now) } ?? 0
        if deferred > 0 { return max(own, takeShared(deferred, now: now)) }
        let shared = max(
            sessionTicket.map { limiter.wait(for: $0, now: now) } ?? 0,
            hostTicket.flatMap { host?.wait(for: $0, now: now) } ?? 0)
        if shared == 0 { limits.line.leave(id) }
        return max(own, shared)
    }

    /// So many have passed.
    mutating func pass(_ bytes: Int) {
        counted = max(0, counted - bytes)
        limits.line.passed &+= Int64(bytes)
    }

    /// Bytes to count in one turn at least (the quantum of deficit round robin; Shreedhar and Varghese, 1995): what the
    /// rate brings in `quantumTime`, and no more than what the request has passed, so that a small file hardly waits for
    /// bytes that it does not need.
    private mutating func quantum() -> Int {
        guard let rate = rate() else { return 0 }
        return Int(clamping: min(limits.line.passed, min(rate, Self.largestRate) * Self.quantumTime / 1_000))
    }

    /// Milliseconds: longer than ``TokenBucket/slack`` and than a connection needs to come back for its next turn.
    private static let quantumTime: Int64 = 25
    /// Bytes a second above which a turn grows no more.
    private static let largestRate: Int64 = 1 << 30

    /// What was counted does not pass any more.
    mutating func giveBack() {
        guard counted > 0 else { return }
        limits.give(back: counted)
        limiter.give(back: counted - deferred)
        host?.give(back: counted - deferred)
        (counted, deferred) = (0, 0)
        limits.line.leave(id)
    }

    /// Bytes a second of the smallest limit; `nil` where there is none.
    mutating func rate() -> Int64? {
        followHost()
        let rate = min(limits.rate ?? .max, limiter.rate ?? .max, host?.rate ?? .max)
        return rate == .max ? nil : rate
    }

    /// Whether more bytes would pass if one of the limits were higher.
    mutating func isAtLimit(now: MonotonicTime) -> Bool {
        followHost()
        return limits.isExhausted(now: now) || limiter.isExhausted(now: now) || host?.isExhausted(now: now) ?? false
    }

    /// Bytes to receive at a time, so that a small rate passes several pieces a second: what a pause or a kill cuts off
    /// of a piece is lost.
    mutating func receiveBuffer(upTo room: Int) -> Int {
        guard let rate = rate() else { return room }
        return max(Self.leastPiece, min(room, Int(clamping: rate / 4)))
    }

    /// Bytes to send at a time, so that they come evenly at a small rate too: what a twentieth of a second takes.
    mutating func piece(upTo room: Int) -> Int {
        let rate = rate() ?? .max
        return max(min(room, Self.leastPiece), min(room, Int(clamping: rate / 20)))
    }

    private static let leastPiece = 1_024

    private mutating func followHost() {
        let edition = session.hostRates.currentEdition
        guard edition != hostEdition else { return }
        hostEdition = edition
        hostLimiters = session.hostRates.limiters(of: "\(origin.scheme)://\(origin.host):\(origin.port)")
    }
}
