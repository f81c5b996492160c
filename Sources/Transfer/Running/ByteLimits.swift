import Curl

/// The limit of a request's own that its bytes count against, in both directions together.
///
/// All connections of one request share it. Lives on its loop's thread.
final class ByteLimits {
    /// Says what the rate is, which may be changed at any time.
    var core: TaskCore
    private var bucket: TokenBucket?
    /// The request's place at the limits that it shares with others.
    let line = SharedLine()

    /// Milliseconds between two looks at a limit that holds bytes back, at most: it may be raised.
    static let longestRest: Int64 = 500

    init(_ core: TaskCore) {
        self.core = core
    }

    /// Bytes a second; `nil`: any number.
    var rate: Int64? { core.maximumRate }

    func take(_ bytes: Int, now: MonotonicTime) -> (wait: Int64, ticket: TokenBucket.Ticket?) {
        follow(now)
        guard let (wait, ticket) = bucket?.take(bytes, now: now) else { return (0, nil) }
        return (wait, ticket)
    }

    func wait(for ticket: TokenBucket.Ticket, now: MonotonicTime) -> Int64 {
        follow(now)
        return bucket?.wait(for: ticket, now: now) ?? 0
    }

    /// See ``TokenBucket/isExhausted(now:)``.
    func isExhausted(now: MonotonicTime) -> Bool {
        follow(now)
        return bucket?.isExhausted(now: now) ?? false
    }

    func give(back bytes: Int) { bucket?.give(back: bytes) }

    private func follow(_ now: MonotonicTime) {
        guard let rate else { return bucket = nil }
        if let bucket, bucket.rate == rate { return }
        if bucket == nil { bucket = TokenBucket(rate: rate, now: now) } else { bucket?.setRate(rate, now: now) }
    }
}
