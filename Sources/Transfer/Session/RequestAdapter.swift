import Synchronization

/// A change to a request before each of its attempts, for example to add tokens that expire.
public protocol RequestAdapter: Sendable {
    /// Adapts a request. Runs where the request is started, and does not switch threads if it need not wait.
    ///
    /// - Throws: the reason why there can be no attempt. It counts as the failure of the attempt and may be retried.
    nonisolated(nonsending) func adapt(_ request: TransferRequest) async throws(TransferError) -> TransferRequest
}

/// A decision on whether a failed request gets another attempt.
public protocol RequestRetrier: Sendable {
    /// Decides on a failure after validation. Not called if the request was cancelled or cannot have another attempt: a
    /// body that was passed on cannot be taken back, and a connected stream is not reconnected. Cancelling the request
    /// cancels the Swift task that runs this.
    ///
    /// - Parameters:
    ///   - request: its ``Request/retryCount`` is the number of attempts after the first.
    ///   - error: the reason for the failure: the adapter's, the transport's or a validator's.
    func retry(_ request: Request, after error: TransferError) async -> RetryDecision

    /// Called at the end of each attempt, before ``retry(_:after:)``; must not block. Does nothing by default.
    ///
    /// - Parameters:
    ///   - request: its ``Request/task`` and ``Request/response`` are still those of the attempt.
    ///   - error: the reason for the failure; `nil` if the attempt succeeded.
    func attemptDidEnd(of request: Request, with error: TransferError?)
}

extension RequestRetrier {
    public func attemptDidEnd(of request: Request, with error: TransferError?) {}
}

/// Both an adapter and a retrier.
public typealias RequestInterceptor = RequestAdapter & RequestRetrier

/// The decision of a retrier.
public enum RetryDecision: Sendable, Equatable {
    /// The retrier has no reason for a retry; in a chain, the next one is asked.
    case doNotRetry
    /// The request fails with this error, and no further retrier is asked.
    case fail(TransferError)
    /// The request is retried after this many milliseconds. A download resumes if it can.
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

extension RetryDecision {
    /// Returns the decision to retry the request after a duration, as in `.retry(after: .seconds(2))`.
    ///
    /// - Parameter duration: the time to wait. It is rounded up to whole milliseconds; a negative one counts as 0, and
    ///   one beyond `Int64.max` milliseconds as that.
    public static func retry(after duration: Duration) -> RetryDecision {
        .retry(after: duration.clampedMilliseconds)
    }
}
