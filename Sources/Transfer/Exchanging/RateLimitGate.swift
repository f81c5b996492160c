import Curl

/// The access of one connection to the rate limits of the request, its host and the session.
///
/// Bytes are deducted before they pass, in the order in which connections request them. If a hundred connections share
/// a low rate, each passes one piece in turn, and none checks a limit more often than the limit could be raised. At a
/// high rate, all connections that share it get the same number of bytes per turn, whatever the size of the pieces in
/// which their bytes arrive. Used on the loop's thread only.
struct RateLimitGate {
    enum Direction { case download, upload }

    private let limits: ByteLimits
    private let resources: SessionResources
    private let direction: Direction
    /// The origin of the peer.
    private let origin: (scheme: String, host: String, port: Int)
    private var hostLimiters: HostRates.Limiters?
    private var hostEdition = 0

    /// The number of bytes deducted from the limits that have not passed yet.
    private var counted = 0
    /// The part of `counted` not yet deducted from the shared limits, because another connection of the request waits
    /// there.
    private var deferred = 0
    /// The connection's identifier in the request's ``SharedTurn``.
    private let id: Int
    /// Creates the closure that is called when a wait may have become shorter. Most connections need none.
    private let makeWake: () -> () -> Void
    private var ownTicket: TokenBucket.Ticket?
    private var hostTicket: TokenBucket.Ticket?
    private var sessionTicket: TokenBucket.Ticket?

    init(
        _ direction: Direction, at origin: (scheme: String, host: String, port: Int), limits: ByteLimits,
        session: Session, makeWake: @escaping () -> () -> Void = { {} }
    ) {
        id = limits.line.makeID()
        self.makeWake = makeWake
        self.direction = direction
        self.origin = origin
        self.limits = limits
        resources = session.resources
    }

    private var limiter: RateLimiter {
        switch direction {
        case .download: resources.downloadLimiter
        case .upload: resources.uploadLimiter
        }
    }

    private var host: RateLimiter? {
        switch direction {
        case .download: hostLimiters?.download
        case .upload: hostLimiters?.upload
        }
    }

    /// Deducts bytes from the limits, unless they were deducted before, and returns the milliseconds until they may
    /// pass; 0 means now.
    mutating func wait(toPass bytes: Int, now: MonotonicTime) -> Int64 {
        guard bytes > counted else { return 0 }
        // The call also updates the host's limiters.
        let rate = rate()
        // Without a limit nothing is deducted. Bytes that were deducted before may still wait in the queue.
        if rate == nil, counted == 0 {
            limits.follow(now)
            (ownTicket, hostTicket, sessionTicket) = (nil, nil, nil)
            return 0
        }
        let more = max(bytes - counted, rate.map { quantum(at: $0) } ?? 0)
        counted += more
        let own = limits.consume(more, now: now)
        ownTicket = own.ticket
        if own.wait > 0 { limits.observe(id, makeWake: makeWake) }
        return max(own.wait, consumeShared(more, now: now))
    }

    /// Deducts bytes from the shared limits, unless another connection of the request waits there.
    private mutating func consumeShared(_ bytes: Int, now: MonotonicTime) -> Int64 {
        (sessionTicket, hostTicket) = (nil, nil)
        deferred = 0
        guard limiter.rate != nil || host?.rate != nil else {
            limits.line.remove(id)
            return 0
        }
        guard limits.line.enter(id, wake: makeWake()) else {
            deferred = bytes
            return ByteLimits.longestRest
        }
        let session = limiter.consume(bytes, now: now)
        let host = self.host?.consume(bytes, now: now)
        (sessionTicket, hostTicket) = (session.ticket, host?.ticket)
        let wait = max(session.wait, host?.wait ?? 0)
        if wait == 0 { limits.line.remove(id) }
        return wait
    }

    /// Returns the remaining wait in milliseconds; 0 if the deducted bytes may pass.
    mutating func wait(now: MonotonicTime) -> Int64 {
        let own = ownTicket.map { limits.wait(for: $0, now: now) } ?? 0
        if deferred > 0 { return max(own, consumeShared(deferred, now: now)) }
        let shared = max(
            sessionTicket.map { limiter.wait(for: $0, now: now) } ?? 0,
            hostTicket.flatMap { host?.wait(for: $0, now: now) } ?? 0)
        if shared == 0 { limits.line.remove(id) }
        return max(own, shared)
    }

    /// Records that bytes have passed.
    mutating func pass(_ bytes: Int) {
        counted = max(0, counted - bytes)
        limits.line.passed &+= Int64(bytes)
    }

    /// Returns the minimum number of bytes to deduct in one turn (the quantum of deficit round robin; Shreedhar and
    /// Varghese, 1995). It is the number of bytes that the rate permits in `quantumTime`, but at most what the request
    /// has passed so far, so that a small file hardly waits for bytes that it does not need.
    private func quantum(at rate: Int64) -> Int {
        Int(clamping: min(limits.line.passed, min(rate, Self.largestRate) * Self.quantumTime / 1_000))
    }

    /// The duration of a turn in milliseconds. It exceeds ``TokenBucket/slack`` and the time that a connection needs to
    /// return for its next turn.
    private static let quantumTime: Int64 = 25
    /// The rate in bytes per second above which a turn no longer grows.
    private static let largestRate: Int64 = 1 << 30

    /// Returns the deducted bytes to the limits, because they will not pass.
    mutating func giveBack() {
        limits.stopObserving(id)
        guard counted > 0 else { return }
        limits.give(back: counted)
        limiter.give(back: counted - deferred)
        host?.give(back: counted - deferred)
        (counted, deferred) = (0, 0)
        limits.line.remove(id)
    }

    /// Returns the lowest limit in bytes per second; `nil` if there is none.
    mutating func rate() -> Int64? {
        followHost()
        let rate = min(limits.rate ?? .max, limiter.rate ?? .max, host?.rate ?? .max)
        return rate == .max ? nil : rate
    }

    /// Returns whether more bytes would pass if one of the limits were higher.
    mutating func isAtLimit(now: MonotonicTime) -> Bool {
        followHost()
        return limits.isExhausted(now: now) || limiter.isExhausted(now: now) || host?.isExhausted(now: now) ?? false
    }

    /// Returns the number of bytes to receive at once. At a low rate, several pieces pass per second, because a pause
    /// or a kill loses the incomplete piece.
    mutating func receiveBuffer(upTo room: Int) -> Int {
        guard let rate = rate() else { return room }
        return max(Self.leastPiece, min(room, Int(clamping: rate / 4)))
    }

    /// Returns the number of bytes to send at once: those of a twentieth of a second, so that a low rate is evenly
    /// distributed.
    mutating func piece(upTo room: Int) -> Int {
        let rate = rate() ?? .max
        return max(min(room, Self.leastPiece), min(room, Int(clamping: rate / 20)))
    }

    private static let leastPiece = 1_024

    private mutating func followHost() {
        let edition = resources.hostRates.currentEdition
        guard edition != hostEdition else { return }
        hostEdition = edition
        hostLimiters = resources.hostRates.limiters(of: "\(origin.scheme)://\(origin.host):\(origin.port)")
    }
}
