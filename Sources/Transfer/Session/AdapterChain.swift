/// A sequence of adapters: each receives the request that the previous one returned.
public struct AdapterChain: RequestAdapter {
    /// The adapters, in the order in which they are called.
    public var adapters: [any RequestAdapter]

    /// - Parameter adapters: in the order in which they are called; an empty list leaves requests unchanged.
    public init(_ adapters: [any RequestAdapter]) {
        self.adapters = adapters
    }

    /// - Throws: the error of the first adapter that fails; the ones after it are not called.
    public nonisolated(nonsending) func adapt(
        _ request: TransferRequest
    ) async throws(TransferError) -> TransferRequest {
        var request = request
        for adapter in adapters { request = try await adapter.adapt(request) }
        return request
    }

    /// Returns the adapters that are not `nil`, combined into one.
    static func of(_ first: (any RequestAdapter)?, _ second: (any RequestAdapter)?) -> (any RequestAdapter)? {
        guard let first, let second else { return first ?? second }
        return AdapterChain([first, second])
    }
}

/// An adapter made of a closure.
public struct ClosureAdapter: RequestAdapter {
    private let change: @Sendable (inout TransferRequest) async throws(TransferError) -> Void

    /// - Parameter change: changes the request in place.
    public init(_ change: @escaping @Sendable (inout TransferRequest) async throws(TransferError) -> Void) {
        self.change = change
    }

    public nonisolated(nonsending) func adapt(
        _ request: TransferRequest
    ) async throws(TransferError) -> TransferRequest {
        var request = request
        try await change(&request)
        return request
    }
}
