import Transfer

/// A retrier for transfers that break off while they make progress. It retries within the base delay, so that the
/// task keeps its slot in the queue. All other errors are left to the scheduler: no further retrier is asked.
struct InterruptionRetrier: RequestRetrier {
    let policy: RetryPolicy
    /// The maximum number of retries within one run of a task.
    static let limit = 3

    func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        guard let request = request as? DownloadRequest else { return .fail(error) }
        let limit = min(Self.limit, policy.attempts - 1)
        switch error.code {
        case .truncated, .stalled:
            guard request.retryCount < limit, request.mainProgress.transferredBytes > 0 else { return .fail(error) }
        case .checksumMismatch:
            // The download is restarted once from the beginning with each server. Data that is wrong then is wrong on
            // all servers. Interruptions in between do not count.
            let mirrors = request.task?.originalRequest.mirrors.count ?? 0
            guard request.mismatchCount <= min(limit, 1 + mirrors) else { return .fail(error) }
        default: return .fail(error)
        }
        var generator = SystemRandomNumberGenerator()
        return .retry(after: policy.delay(failures: 1, using: &generator))
    }
}
