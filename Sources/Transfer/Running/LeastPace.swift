import Curl

/// What a server has to bring at least: whoever sends a byte now and then is not silent, and holds a place all the same.
struct LeastPace {
    /// Bytes a second of a body.
    private static let rate: Int64 = 16
    /// Stall timeouts that the head of an answer may take from its first line on, informational ones before it included.
    private static let headTimeouts: Int64 = 4

    /// Milliseconds.
    let stallTimeout: Int64

    init(_ configuration: SessionConfiguration) { stallTimeout = max(0, configuration.stallTimeout) }

    /// Bytes of a body that have to come within the stall timeout.
    var bytes: Int64 {
        let (product, isTooMany) = (stallTimeout / 1000).multipliedReportingOverflow(by: Self.rate)
        return isTooMany ? .max : max(1, product)
    }

    /// Milliseconds.
    var headTimeout: Int64 {
        let (product, isTooLong) = stallTimeout.multipliedReportingOverflow(by: Self.headTimeouts)
        return isTooLong ? .max : product
    }
}
