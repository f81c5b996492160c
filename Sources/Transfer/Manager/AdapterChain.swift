/// Adapters one after another: each gets what the one before it made.
public struct AdapterChain: RequestAdapter {
    /// In the order in which they are asked.
    public var adapters: [any RequestAdapter]

    /// - Parameter adapters: in the order in which they are asked; none leave requests as they are.
    public init(_ adapters: [any RequestAdapter]) {
        self.adapters = adapters
    }

    /// - Throws: what the first adapter throws that cannot; those after it are not asked.
    public nonisolated(nonsending) func adapt(
        _ request: TransferRequest
    ) async throws(TransferError) -> TransferRequest {
        var request = request
        for adapter in adapters { request = try await adapter.adapt(request) }
        return request
    }

    /// Those that there are, as one.
    static func of(_ first: (any RequestAdapter)?, _ second: (any RequestAdapter)?) -> (any RequestAdapter)? {
        guard let first, let second else { return first ?? second }
        return AdapterChain([first, second])
    }
}

/// A closure as an adapter.
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
