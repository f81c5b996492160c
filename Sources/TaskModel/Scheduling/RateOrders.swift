/// A rate limit set by a client that overrides the configured one.
public enum RateOrder: Sendable, Equatable {
    case unlimited
    /// A limit in bytes per second.
    case limit(Int64)
}

/// The override for each direction; `nil` where the configured limit applies.
public struct RateOrders: Sendable, Equatable {
    public var download: RateOrder?
    public var upload: RateOrder?

    public init(download: RateOrder? = nil, upload: RateOrder? = nil) {
        self.download = download
        self.upload = upload
    }
}
