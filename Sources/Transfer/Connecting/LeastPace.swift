import Curl

/// The minimum throughput of a server. A server that sends a byte now and then never stalls, but occupies a connection.
struct LeastPace {
    /// The minimum throughput of a body, in bytes per second.
    private static let rate: Int64 = 16
    /// The time for the head of a response, as a multiple of the stall timeout. It counts from the first line and
    /// includes preceding informational responses.
    private static let headTimeouts: Int64 = 4

    /// The stall timeout in milliseconds.
    let stallTimeout: Int64

    init(_ configuration: SessionConfiguration, _ request: TransferRequest) {
        stallTimeout = max(0, configuration.stallTimeout(of: request))
    }

    /// The minimum number of body bytes per stall timeout.
    var bytes: Int64 {
        let (product, isTooMany) = (stallTimeout / 1000).multipliedReportingOverflow(by: Self.rate)
        return isTooMany ? .max : max(1, product)
    }

    /// The maximum time for the head of a response, in milliseconds.
    var headTimeout: Int64 {
        let (product, isTooLong) = stallTimeout.multipliedReportingOverflow(by: Self.headTimeouts)
        return isTooLong ? .max : product
    }
}
