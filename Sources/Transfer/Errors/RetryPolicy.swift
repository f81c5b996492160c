/// A retry policy: exponential back-off with full jitter, so that clients that failed together do not retry together.
public struct RetryPolicy: Sendable, Equatable {
    /// The number of attempts in a row without progress.
    public var attempts: Int
    /// The base of the exponential back-off, in milliseconds.
    public var baseDelay: Int64
    /// The maximum back-off delay in milliseconds. A server's `Retry-After` may exceed it.
    public var maximumDelay: Int64

    /// The longest hold by a server's `Retry-After`: 24 h, in milliseconds.
    public static let longestHold: Int64 = 86_400_000

    /// Creates a policy; by default ten attempts with delays growing from up to 1 s to at most 10 min.
    public init(attempts: Int = 10, baseDelay: Int64 = 1_000, maximumDelay: Int64 = 600_000) {
        self.attempts = attempts
        self.baseDelay = baseDelay
        self.maximumDelay = maximumDelay
    }

    /// Returns the delay after the `failures`-th failure in a row, in milliseconds: uniform between 0 and `baseDelay` ×
    /// 2ⁿ⁻¹ for the n-th failure, capped at ``maximumDelay``.
    ///
    /// - Parameters:
    ///   - failures: the number of failures in a row, from 1.
    ///   - retryAfter: the delay that the server requested, in seconds; the jitter is added to it.
    ///   - generator: the source of the jitter.
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

    /// Returns the hold for a `Retry-After`, in milliseconds, from 0 to ``longestHold``.
    ///
    /// - Parameter retryAfter: the field's value in seconds.
    package static func hold(retryAfter: Int64) -> Int64 { min(max(0, retryAfter), longestHold / 1000) * 1000 }
}

/// A classification of failures by when another attempt may succeed.
public enum RetryClass: Sendable, Equatable {
    /// A retry may succeed by itself.
    case soon
    /// A retry may succeed once the network is back.
    case whenNetworkChanges
    /// A retry may succeed once there is room, on the file system or in a ``StorageAllowance``.
    case whenDiskHasRoom
    /// A retry may succeed once this system works again: the disk fails, memory or descriptors are exhausted, or
    /// another process uses the part file.
    case whenSystemRecovers
    /// A retry may succeed once a person has acted: new access, or a new URL.
    case whenAuthorised
    /// A retry may succeed once the file to send is there in its right state.
    case whenSourceIsRight
    /// A retry would fail in the same way.
    case never

    /// Classifies `error`. Of the statuses, 408, 425, 429, 500, 502 to 504 and 520 to 524 are worth a retry soon, and 202
    /// and 403 with `Retry-After`: the server is still making the file, or limits the rate of requests.
    public init(_ error: TransferError) {
        self =
            switch error.code {
            case .cannotConnect, .unknownHost, .timedOut, .stalled, .truncated, .remoteChanged: .soon
            case .resolverUnavailable, .unreachable: .whenNetworkChanges
            case .diskFull, .allowanceUsedUp: .whenDiskHasRoom
            case .io, .volumeDetached, .partInUse: .whenSystemRecovers
            case .sourceChanged, .sourceLost: .whenSourceIsRight
            case .loginRefused, .authenticationFailed: .whenAuthorised
            case .httpStatus where error.isNotReadyYet: .soon
            case .httpStatus where error.httpStatus == 403 && error.retryAfter != nil: .soon
            case .httpStatus: Self.status(error.httpStatus ?? 0)
            default: .never
            }
    }

    /// Whether time alone does not help: a retry would fail in the same way, or a person has to act.
    var isLasting: Bool { self == .never || self == .whenAuthorised }

    private static func status(_ status: Int) -> RetryClass {
        switch status {
        case 408, 425, 429, 500, 502, 503, 504, 520...524: .soon
        case 401, 403, 407: .whenAuthorised
        default: .never
        }
    }
}

extension TransferError {
    /// Whether the server is still making the requested file, and says when to ask again: 202 with `Retry-After` (RFC
    /// 9110, section 15.3.3).
    var isNotReadyYet: Bool { httpStatus == 202 && retryAfter != nil }

    /// The seconds for which the server asks to be left alone (`Retry-After`); `nil` if it does not, or only until a
    /// single file is ready.
    package var pauseOfHost: Int64? { RetryClass(self) == .soon && !isNotReadyYet ? retryAfter : nil }
}
