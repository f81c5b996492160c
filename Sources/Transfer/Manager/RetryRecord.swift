/// What counts towards an end of trying, kept by the request itself: a retrier that remembered requests would have to
/// be told when to forget them.
struct RetryRecord: Sendable, Equatable {
    /// In a row, without progress between them.
    private(set) var failures = 0
    /// Refreshes of a token that this request asked for, since it last got on.
    private(set) var refreshes = 0
    /// Bytes that an attempt had at its end, at most.
    private var furthest: Int64 = 0
    /// The last attempt that was counted: a request may have two retriers that count.
    private var countedAttempt: Int?

    /// An attempt failed.
    ///
    /// Progress is what the next attempt need not fetch again: a file that grew beyond where it ever was. Bytes that
    /// come anew each time (an error page, a body that is kept in memory) are none.
    ///
    /// - Parameters:
    ///   - kept: bytes that stay for the next attempt.
    ///   - attempt: told again, it is not counted again.
    mutating func fail(kept: Int64, attempt: Int) {
        guard attempt != countedAttempt else { return }
        countedAttempt = attempt
        note(kept)
        failures += 1
    }

    /// A token was found outdated.
    mutating func refresh(kept: Int64) {
        note(kept)
        refreshes += 1
    }

    private mutating func note(_ kept: Int64) {
        guard kept > furthest else { return }
        furthest = kept
        failures = 0
        refreshes = 0
    }
}

extension Request {
    /// Bytes that the next attempt can go on from.
    var keptBytes: Int64 { self is DownloadRequest ? progress.completedBytes : 0 }
}
