import Curl
import Glibc
import HTTPTypes
import Synchronization

/// Tries again what may help and may be repeated, and spares hosts that are in trouble.
///
/// - What ``RetryClass`` calls `soon` is tried again after full jitter over a doubling delay, and not before a
///   `Retry-After` (RFC 9110, section 10.2.3); a download that got further starts to count anew.
/// - What waits for the network does so, at most ``longestNetworkWait``, and counts only where the network did not come
///   back.
/// - Only idempotent methods are repeated, others where the server cannot have acted (RFC 9110, section 9.2.2);
///   downloads always.
/// - A host (scheme, name and port) that failed five times in a row to connect, or with 5xx, is left alone but for one
///   request at a time that probes it, and a host that sends `Retry-After` is left alone by all.
///
/// Use it as both: as the adapter it keeps requests, first attempts too, waiting for a host that is left alone, and
/// that burns no attempt; as the retrier alone it can only put off those that have failed.
///
///     manager.intercept(with: DefaultRetrier())
public final class DefaultRetrier: RequestInterceptor {
    /// GET, HEAD, PUT, DELETE, OPTIONS and TRACE.
    public static let idempotentMethods = RetrySafety.idempotent
    /// Milliseconds that a request waits for the network to come back before it tries all the same: one hour.
    public static let longestNetworkWait: Int64 = 3_600_000

    /// How often, and after which delays.
    public let policy: RetryPolicy
    /// Methods that are repeated whatever happened.
    public let methods: Set<HTTPRequest.Method>

    let hosts: HostWaiting
    private let network: NetworkWaiting
    private let generator: Mutex<any RandomNumberGenerator & Sendable>

    /// - Parameters:
    ///   - policy: its `attempts` are those in a row without progress.
    ///   - methods: more than the idempotent ones where the caller knows that the server takes a repetition for what it
    ///     is, as with idempotency keys.
    ///   - reachability: begins to listen when a request first has to wait for the network; the retrier's own.
    ///   - generator: for the jitter.
    public convenience init(
        policy: RetryPolicy = RetryPolicy(), methods: Set<HTTPRequest.Method> = DefaultRetrier.idempotentMethods,
        reachability: NetworkReachabilityManager = NetworkReachabilityManager(),
        generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
    ) {
        self.init(
            policy: policy, methods: methods, clock: .system, network: .system(reachability, clock: .system),
            generator: generator)
    }

    init(
        policy: RetryPolicy, methods: Set<HTTPRequest.Method> = DefaultRetrier.idempotentMethods, clock: RetryClock,
        network: NetworkWaiting, generator: any RandomNumberGenerator & Sendable
    ) {
        self.policy = policy
        self.methods = methods
        self.network = network
        self.generator = Mutex(generator)
        hosts = HostWaiting(policy: policy, clock: clock)
    }

    // MARK: Before an attempt

    /// Waits until the request's host may be asked; the request stays as it is.
    public nonisolated(nonsending) func adapt(
        _ request: TransferRequest
    ) async throws(TransferError) -> TransferRequest {
        // What cannot be read fails by itself.
        if let host = Self.host(of: request.url) { try await hosts.enter(host) }
        return request
    }

    // MARK: After it

    public func attemptDidEnd(of request: Request, with error: TransferError?) {
        if error?.underlying is NeverAdmitted { return }
        let (asked, answered) = (Self.host(of: request.task?.originalRequest.url), Self.host(of: request.request?.url))
        let failure = error ?? Self.unvalidatedFailure(of: request)
        guard let answered else { return }
        let retryAfter = failure.flatMap { RetryClass($0) == .soon ? $0.retryAfter : nil }
        hosts.note(HostStandings.Outcome(failure), of: answered, retryAfter: retryAfter)
        // Whoever redirects, answers.
        if let asked, asked != answered { hosts.note(.alive, of: asked) }
    }

    public func retry(_ request: Request, after error: TransferError) async -> RetryDecision {
        guard RetrySafety(request).allows(methods) else { return .doNotRetry }
        switch RetryClass(error) {
        case .soon, .whenSystemRecovers: break
        case .whenNetworkChanges:
            if !network.isReachable(), await network.comesBack(Self.longestNetworkWait) {
                return .retry(after: delay(failures: 1))
            }
        case .whenDiskHasRoom, .whenAuthorised, .whenSourceIsRight, .never: return .doNotRetry
        }
        let kept = request.keptBytes
        let failures = request.retryRecord.withLock { record in
            record.fail(kept: kept, attempt: request.retryCount)
            return record.failures
        }
        guard failures < policy.attempts else { return .doNotRetry }
        let own = delay(failures: failures, retryAfter: error.retryAfter)
        let hold = Self.host(of: request.request?.url).map { hosts.hold(of: $0) } ?? 0
        // All wait for the same moment: they are not to come together.
        return .retry(after: hold > own ? hold + delay(failures: failures) : own)
    }

    private func delay(failures: Int, retryAfter: Int64? = nil) -> Int64 {
        generator.withLock { policy.delay(failures: failures, retryAfter: retryAfter, using: &$0) }
    }

    private static func host(of url: String?) -> String? {
        guard let url else { return nil }
        return (try? CurlURL(url))?.origin
    }

    /// A request without validators is content with any status; its host may be in trouble all the same.
    private static func unvalidatedFailure(of request: Request) -> TransferError? {
        guard let head = request.response, head.status >= 400 else { return nil }
        return AnswerJudgement.failure(head, now: Int64(time(nil)))
    }
}

extension HostStandings.Outcome {
    /// What the end of an attempt says of its host.
    package init(_ error: TransferError?) {
        self =
            switch error?.code {
            case nil: .alive
            case .httpStatus?: error?.httpStatus ?? 0 >= 500 ? .failed : .alive
            case .cannotConnect?, .timedOut?: .failed
            case .truncated?, .remoteChanged?, .checksumMismatch?, .tooLarge?, .tooManyRedirects?,
                .unacceptableContentType?, .validationFailed?:
                .alive
            // What happened on this machine, or at a name server: nobody asks a host whose name does not exist.
            default: .unknown
            }
    }
}
