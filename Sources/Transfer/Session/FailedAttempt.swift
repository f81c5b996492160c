/// An attempt of a request that failed and that another attempt followed.
public struct FailedAttempt: Sendable {
    /// The number of such attempts that a request keeps.
    static let limit = 32

    /// The reason why it failed.
    public let error: TransferError
    /// The metrics of this attempt alone.
    public let metrics: TransferMetrics
    /// The number of body bytes that the request had received or sent at the end of the attempt, over all attempts.
    public let transferredBytes: Int64
    /// The time of the end in nanoseconds of the monotonic clock (CLOCK_MONOTONIC).
    public let ended: UInt64
}
