import Curl
import Synchronization

/// Holds all that pass it to one rate together; the rate may change at any time, and counts within half a second.
public final class RateLimiter: Sendable {
    /// Bytes a second; 0: any number. Read without a lock, so that no limit costs nothing.
    private let limit: Atomic<Int64>
    private let bucket: Mutex<TokenBucket?>

    /// - Parameter rate: bytes a second; `nil`: any number.
    public init(rate: Int64? = nil) {
        limit = Atomic(rate.map { max(1, $0) } ?? 0)
        bucket = Mutex(rate.map { TokenBucket(rate: $0, now: .now()) })
    }

    /// Bytes a second; `nil`: any number.
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
    /// - Returns: milliseconds until they may; 0: at once. And the ticket to ask again with, where there is a limit.
    func take(_ bytes: Int, now: MonotonicTime) -> (wait: Int64, ticket: TokenBucket.Ticket?) {
        guard limit.load(ordering: .relaxed) != 0 else { return (0, nil) }
        return bucket.withLock { bucket in
            guard let (wait, ticket) = bucket?.take(bytes, now: now) else { return (0, nil) }
            return (wait, ticket)
        }
    }

    func wait(for ticket: TokenBucket.Ticket, now: MonotonicTime) -> Int64 {
        bucket.withLock { $0?.wait(for: ticket, now: now) ?? 0 }
    }

    /// Whether those who pass would take more if the rate were higher; see ``TokenBucket/isExhausted(now:)``.
    func isExhausted(now: MonotonicTime) -> Bool {
        guard limit.load(ordering: .relaxed) != 0 else { return false }
        return bucket.withLock { $0?.isExhausted(now: now) ?? false }
    }

    func give(back bytes: Int) {
        guard limit.load(ordering: .relaxed) != 0 else { return }
        bucket.withLock { $0?.give(back: bytes) }
    }
}
