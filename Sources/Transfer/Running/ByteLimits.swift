import Curl

/// The limits that a request's bytes count against: its own, in each direction, and the session's of one direction.
///
/// All connections of one request share them. Lives on its loop's thread.
final class ByteLimits {
    private var own: TokenBucket?

    /// Milliseconds between two looks at a limit that holds bytes back, at most: it may be raised.
    static let longestRest: Int64 = 500

    init(_ request: TransferRequest, now: MonotonicTime) {
        own = request.maximumRate.map { TokenBucket(rate: $0, now: now) }
    }

    /// Counts `bytes`, which have passed.
    ///
    /// - Returns: milliseconds until more may pass; 0: now.
    func wait(after bytes: Int, _ limiter: RateLimiter, now: MonotonicTime) -> Int64 {
        let ownWait = own?.take(bytes, now: now) ?? 0
        return max(ownWait, limiter.take(bytes, now: now))
    }
}
