import Curl
import Synchronization

/// A limiter that holds all its users together to one rate. The rate can be changed at any time; a change takes effect
/// within half a second.
public final class RateLimiter: Sendable {
    /// The limit in bytes per second; 0 for none. It is read without a lock, so that an absent limit costs nothing.
    private let limit: Atomic<Int64>
    private let bucket: Mutex<TokenBucket?>

    /// Creates a limiter.
    ///
    /// - Parameter rate: The limit in bytes per second; `nil` for none.
    public init(rate: Int64? = nil) {
        limit = Atomic(rate.map { max(1, $0) } ?? 0)
        bucket = Mutex(rate.map { TokenBucket(rate: $0, now: .now()) })
    }

    /// The limit in bytes per second; `nil` for none.
    public var rate: Int64? {
        get {
            let rate = limit.load(ordering: .relaxed)
            return rate == 0 ? nil : rate
        }
        set {
            bucket.withLock { bucket in
                if let newValue, bucket != nil {
                    bucket?.setRate(newValue, now: .now())
                } else {
                    bucket = newValue.map { TokenBucket(rate: $0, now: .now()) }
                }
                limit.store(newValue.map { max(1, $0) } ?? 0, ordering: .relaxed)
            }
        }
    }

    /// Takes bytes that are to pass.
    ///
    /// - Returns: The milliseconds until they may pass, 0 if immediately, and the ticket for ``wait(for:now:)`` if
    ///   there is a limit.
    func consume(_ bytes: Int, now: MonotonicTime) -> (wait: Int64, ticket: TokenBucket.Ticket?) {
        guard limit.load(ordering: .relaxed) != 0 else { return (0, nil) }
        return bucket.withLock { bucket in
            guard let (wait, ticket) = bucket?.consume(bytes, now: now) else { return (0, nil) }
            return (wait, ticket)
        }
    }

    func wait(for ticket: TokenBucket.Ticket, now: MonotonicTime) -> Int64 {
        bucket.withLock { $0?.wait(for: ticket, now: now) ?? 0 }
    }

    /// Returns whether a higher rate would be used; see ``TokenBucket/isExhausted(now:)``.
    func isExhausted(now: MonotonicTime) -> Bool {
        guard limit.load(ordering: .relaxed) != 0 else { return false }
        return bucket.withLock { $0?.isExhausted(now: now) ?? false }
    }

    func give(back bytes: Int) {
        guard limit.load(ordering: .relaxed) != 0 else { return }
        bucket.withLock { $0?.give(back: bytes) }
    }
}
