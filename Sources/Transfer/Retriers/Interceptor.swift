/// A combination of adapters and retriers, each list in the order in which it is called.
public struct Interceptor: RequestInterceptor {
    private let adapters: AdapterChain
    private let retriers: RetrierChain

    /// - Parameters:
    ///   - adapters: in the order in which they are called.
    ///   - retriers: in the order in which they are called.
    ///   - interceptors: called as adapters before `adapters`, and as retriers before `retriers`.
    public init(
        adapters: [any RequestAdapter] = [], retriers: [any RequestRetrier] = [],
        interceptors: [any RequestInterceptor] = []
    ) {
        self.adapters = AdapterChain(interceptors.map { $0 as any RequestAdapter } + adapters)
        self.retriers = RetrierChain(interceptors.map { $0 as any RequestRetrier } + retriers)
    }

    public nonisolated(nonsending) func adapt(
        _ request: TransferRequest
    ) async throws(TransferError) -> TransferRequest {
        try await adapters.adapt(request)
    }

    public func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        await retriers.retry(request, after: error)
    }

    public func attemptDidEnd(of request: Request, with error: TransferError?) {
        retriers.attemptDidEnd(of: request, with: error)
    }
}

extension SessionManager {
    /// Sets `interceptor` as both the adapter and the retrier.
    public func intercept(with interceptor: any RequestInterceptor) {
        adapter = interceptor
        retrier = interceptor
    }
}
