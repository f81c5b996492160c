/// What someone said of a rate, in the place of what is configured.
public enum RateOrder: Sendable, Equatable {
    case unlimited
    /// Bytes a second.
    case limit(Int64)
}

/// What someone said of each direction; `nil`: nothing.
public struct RateOrders: Sendable, Equatable {
    public var download: RateOrder?
    public var upload: RateOrder?

    public init(download: RateOrder? = nil, upload: RateOrder? = nil) {
        self.download = download
        self.upload = upload
    }
}
