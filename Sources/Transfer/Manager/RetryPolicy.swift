/// When to try again: exponential back-off with full jitter, so that clients that failed together do not come back
/// together.
public struct RetryPolicy: Sendable, Equatable {
    /// Attempts in a row without progress.
    public var attempts: Int
    /// Milliseconds.
    public var baseDelay: Int64
    /// Milliseconds; no delay of ours is longer.
    public var maximumDelay: Int64

    /// No server's `Retry-After` holds a request longer: 24 h in milliseconds.
    public static let longestHold: Int64 = 86_400_000

    /// Ten attempts, from 1 s to 10 min apart, unless said otherwise.
    public init(attempts: Int = 10, baseDelay: Int64 = 1_000, maximumDelay: Int64 = 600_000) {
        self.attempts = attempts
        self.baseDelay = baseDelay
        self.maximumDelay = maximumDelay
    }

    /// Milliseconds to wait after the `failures`-th failure in a row: uniform between 0 and `baseDelay` × 2ⁿ, capped.
    ///
    /// - Parameters:
    ///   - failures: from 1.
    ///   - retryAfter: seconds that the server asked for; the jitter lies above it.
    ///   - generator: where the jitter comes from.
    public func delay(
        failures: Int, retryAfter: Int64? = nil, using generator: inout some RandomNumberGenerator
    ) -> Int64 {
        let exponent = min(max(1, failures) - 1, 40)
        let (product, overflow) = baseDelay.multipliedReportingOverflow(by: Int64(1) << Int64(exponent))
        let ceiling = overflow ? maximumDelay : min(maximumDelay, product)
        let jitter = Int64.random(in: 0...max(0, ceiling), using: &generator)
        guard let retryAfter else { return jitter }
        let (sum, isBeyond) = Self.hold(retryAfter: retryAfter).addingReportingOverflow(jitter)
        return isBeyond ? .max : sum
    }

    /// Milliseconds of a `Retry-After` that count: from 0 to ``longestHold``.
    ///
    /// - Parameter retryAfter: seconds.
    static func hold(retryAfter: Int64) -> Int64 { min(max(0, retryAfter), longestHold / 1000) * 1000 }
}

/// What a failure says about another attempt.
public enum RetryClass: Sendable, Equatable {
    /// Trying again may help by itself.
    case soon
    /// It helps once the network is back.
    case whenNetworkChanges
    /// It helps once there is room, on the file system or in a ``StorageAllowance``.
    case whenDiskHasRoom
    /// It helps once this system works again: its disk fails, it has no memory or descriptors to give, or another process
    /// is at work on the part.
    case whenSystemRecovers
    /// It helps once a person did something: new access, a new URL.
    case whenAuthorised
    /// It helps once the file to send is there as it should be.
    case whenSourceIsRight
    /// The same would happen again.
    case never

    /// What `error` says; of a status, 408, 425, 429, 500, 502 to 504 and 520 to 524 are worth another attempt.
    public init(_ error: TransferError) {
        self =
            switch error.code {
            case .cannotConnect, .unknownHost, .timedOut, .stalled, .truncated, .remoteChanged: .soon
            case .resolverUnavailable, .unreachable: .whenNetworkChanges
            case .diskFull, .allowanceUsedUp: .whenDiskHasRoom
            case .io, .volumeDetached, .partInUse: .whenSystemRecovers
            case .sourceChanged, .sourceLost: .whenSourceIsRight
            case .loginRefused, .authenticationFailed: .whenAuthorised
            case .httpStatus: Self.status(error.httpStatus ?? 0)
            default: .never
            }
    }

    /// Whether no time that passes helps by itself: the same would happen again, or a person has to do something.
    var isLasting: Bool { self == .never || self == .whenAuthorised }

    private static func status(_ status: Int) -> RetryClass {
        switch status {
        case 408, 425, 429, 500, 502, 503, 504, 520...524: .soon
        case 401, 403, 407: .whenAuthorised
        default: .never
        }
    }
}
