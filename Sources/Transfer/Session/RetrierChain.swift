/// A sequence of retriers. The first decision other than ``RetryDecision/doNotRetry`` applies, and the retriers after
/// it are not asked.
public struct RetrierChain: RequestRetrier {
    /// The retriers, in the order in which they are asked.
    public var retriers: [any RequestRetrier]

    /// - Parameter retriers: in the order in which they are asked; an empty list retries nothing.
    public init(_ retriers: [any RequestRetrier]) {
        self.retriers = retriers
    }

    public func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        for retrier in retriers {
            let decision = await retrier.retry(request, after: error)
            if decision != .doNotRetry { return decision }
        }
        return .doNotRetry
    }

    public func attemptDidEnd(of request: Request, with error: TransferError?) {
        for retrier in retriers { retrier.attemptDidEnd(of: request, with: error) }
    }

    /// Returns the retriers that are not `nil`, combined into one.
    static func of(_ first: (any RequestRetrier)?, _ second: (any RequestRetrier)?) -> (any RequestRetrier)? {
        guard let first, let second else { return first ?? second }
        return RetrierChain([first, second])
    }
}

/// A retrier made of a closure.
public struct ClosureRetrier: RequestRetrier {
    private let decide: @Sendable (Request, TransferError) async -> RetryDecision

    /// - Parameter decide: called in the same way as ``RequestRetrier/retry(_:after:)``.
    public init(_ decide: @escaping @Sendable (Request, TransferError) async -> RetryDecision) {
        self.decide = decide
    }

    public func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        await decide(request, error)
    }
}
