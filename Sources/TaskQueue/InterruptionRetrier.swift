import Transfer

/// Takes up again at once what broke while it was getting on: a cut connection costs a moment, not a place in the
/// queue. Everything else is the scheduler's to try again.
struct InterruptionRetrier: RequestRetrier {
    let policy: RetryPolicy
    /// Within one run of a task.
    static let limit = 3

    func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        guard let request = request as? DownloadRequest else { return .doNotRetry }
        let limit = min(Self.limit, policy.attempts - 1)
        switch error.code {
        case .truncated, .stalled:
            guard request.retryCount < limit, request.progress.transferredBytes > 0 else { return .doNotRetry }
        case .checksumMismatch:
            // Once more from the start, from each server alone; what is wrong then is wrong on all of them. Cuts on the
            // way there do not count.
            let mirrors = request.task?.originalRequest.mirrors.count ?? 0
            guard request.mismatchCount <= min(limit, 1 + mirrors) else { return .doNotRetry }
        default: return .doNotRetry
        }
        var generator = SystemRandomNumberGenerator()
        return .retry(after: policy.delay(failures: 1, using: &generator))
    }
}
