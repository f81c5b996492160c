/// The counts that limit the retries of a request. The request keeps them, since a retrier that remembered requests
/// would need to be notified when to forget them.
struct RetryRecord: Sendable, Equatable {
    /// The number of failures in a row without progress between them.
    private(set) var failures = 0
    /// The number of token refreshes that this request requested since its last progress.
    private(set) var refreshes = 0
    /// The largest number of bytes that an attempt had at its end.
    private var furthest: Int64 = 0
    /// The last attempt that was counted: a request may have two retriers that count it.
    private var countedAttempt: Int?

    /// Counts a failed attempt.
    ///
    /// Progress means bytes that the next attempt need not fetch again: a file that grew beyond its largest size so
    /// far. Bytes that are received anew each time (an error page, a body kept in memory) are no progress.
    ///
    /// - Parameters:
    ///   - kept: the number of bytes kept for the next attempt.
    ///   - attempt: the number of the attempt. Counting it again has no effect.
    mutating func fail(kept: Int64, attempt: Int) {
        guard attempt != countedAttempt else { return }
        countedAttempt = attempt
        record(kept)
        failures += 1
    }

    /// Counts a token that was found outdated.
    mutating func refresh(kept: Int64) {
        record(kept)
        refreshes += 1
    }

    private mutating func record(_ kept: Int64) {
        guard kept > furthest else { return }
        furthest = kept
        failures = 0
        refreshes = 0
    }
}

extension Request {
    /// The number of bytes that the next attempt can resume from.
    var keptBytes: Int64 {
        guard self is DownloadRequest, (task as? DownloadTask)?.isRepeatable ?? true else { return 0 }
        return progress.completedBytes
    }
}
