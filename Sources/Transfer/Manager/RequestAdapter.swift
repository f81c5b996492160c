import Synchronization

/// Changes a request before each of its attempts: a place for tokens that expire.
public protocol RequestAdapter: Sendable {
    /// Runs where the request is started: one that need not wait costs no change of threads.
    ///
    /// - Throws: why there can be no attempt; it counts as the attempt's failure and may be retried.
    nonisolated(nonsending) func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest
}

/// Decides whether a failed request gets another attempt.
public protocol RequestRetrier: Sendable {
    /// - Parameter request: its `retryCount` says how many there have been.
    func retry(_ request: Request, after error: TransferError) async -> RetryDecision
}

/// What a retrier answers.
public enum RetryDecision: Sendable, Equatable {
    /// This retrier has no reason to; in a chain, the next is asked.
    case doNotRetry
    /// Nor is anyone else to be asked: the request fails with this.
    case fail(TransferError)
    /// After so many milliseconds. A download resumes where it can.
    case retry(after: Int64)
}

/// The adapter that a manager and its requests share.
final class AdapterHolder: Sendable {
    private let held = Mutex<(any RequestAdapter)?>(nil)

    var adapter: (any RequestAdapter)? {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }
}
