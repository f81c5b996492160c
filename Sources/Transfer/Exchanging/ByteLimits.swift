import Curl

/// The rate limit of one request, in both directions together.
///
/// All connections of the request share it. Used on the loop's thread only.
final class ByteLimits {
    /// The source of the rate, which may change at any time.
    var core: TaskCore
    // Used for each chunk of a body. The methods of a bucket only change the value itself.
    @exclusivity(unchecked) private var bucket: TokenBucket?
    /// The connections that have waited for the limit, and the closures that wake them up.
    private var observers: [Int: () -> Void] = [:]
    /// The request's place at the rate limits that it shares with other requests.
    let line = SharedTurn()

    /// The maximum interval in milliseconds between two checks of a limit that delays bytes. The limit may be raised in
    /// the meantime.
    static let longestRest: Int64 = 500

    init(_ core: TaskCore) {
        self.core = core
    }

    /// The limit in bytes per second; `nil` if unlimited.
    var rate: Int64? { core.maximumRate }

    func consume(_ bytes: Int, now: MonotonicTime) -> (wait: Int64, ticket: TokenBucket.Ticket?) {
        follow(now)
        guard let (wait, ticket) = bucket?.consume(bytes, now: now) else { return (0, nil) }
        return (wait, ticket)
    }

    func wait(for ticket: TokenBucket.Ticket, now: MonotonicTime) -> Int64 {
        follow(now)
        return bucket?.wait(for: ticket, now: now) ?? 0
    }

    /// Whether the bucket is exhausted; see ``TokenBucket/isExhausted(now:)``.
    func isExhausted(now: MonotonicTime) -> Bool {
        follow(now)
        return bucket?.isExhausted(now: now) ?? false
    }

    /// Adds a closure, unless the connection has one, that is called when bytes are given back. A wait may then be
    /// shorter.
    func observe(_ id: Int, makeWake: () -> () -> Void) {
        if observers[id] == nil { observers[id] = makeWake() }
    }

    func stopObserving(_ id: Int) { observers[id] = nil }

    func give(back bytes: Int) {
        bucket?.give(back: bytes)
        for wake in observers.values { wake() }
    }

    /// Adapts to the present rate. Without one, what was taken is forgotten.
    func follow(_ now: MonotonicTime) {
        guard let rate else { return bucket = nil }
        if let bucket, bucket.rate == rate { return }
        if bucket == nil { bucket = TokenBucket(rate: rate, now: now) } else { bucket?.setRate(rate, now: now) }
    }
}
