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
    /// Asked after validation, and not where the request was cancelled or can have no other attempt: a body that was
    /// handed out cannot be taken back, and a stream that was connected is not connected again. Cancelling the request
    /// cancels the Swift task that this runs in.
    ///
    /// - Parameters:
    ///   - request: its ``Request/retryCount`` says how many attempts there were after the first.
    ///   - error: why the attempt failed: the adapter's, the transport's or a validator's.
    func retry(_ request: Request, after error: TransferError) async -> RetryDecision

    /// Told of the end of each attempt, before ``retry(_:after:)`` is asked; must not block. Does nothing by default.
    ///
    /// - Parameters:
    ///   - request: whose ``Request/task`` and ``Request/response`` are still the attempt's.
    ///   - error: why it failed; `nil` where it succeeded.
    func attemptDidEnd(of request: Request, with error: TransferError?)
}

extension RequestRetrier {
    public func attemptDidEnd(of request: Request, with error: TransferError?) {}
}

/// Both in one.
public typealias RequestInterceptor = RequestAdapter & RequestRetrier

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
