import Curl
import Glibc
public import HTTPTypes
import Synchronization

/// A retrier that repeats safe requests after temporary failures and backs off from hosts in trouble.
///
/// - ``RetryClass`` `soon` is retried after full jitter over a doubling delay, and not before a `Retry-After` (RFC
///   9110, section 10.2.3). A download that made progress starts to count anew.
/// - A failure for want of a network waits for it, at most ``longestNetworkWait``, and counts only if it did not come
///   back.
/// - Idempotent methods and downloads are always repeated, other methods only if the server cannot have acted on the
///   request (RFC 9110, section 9.2.2).
/// - A host (scheme, name and port) that failed five times in a row to connect, or with 5xx, is closed to all requests
///   but one at a time that probes it. A host that sends `Retry-After` is closed to all. A proxy that accepts no
///   connection counts as a host of its own, and not as a failure of the server.
///
/// Use it both as adapter and as retrier. As adapter it makes requests, first attempts too, wait for a closed host,
/// which counts as no attempt. As retrier alone it can only delay requests that have failed.
///
///     manager.intercept(with: DefaultRetrier())
public final class DefaultRetrier: RequestInterceptor {
    /// The methods GET, HEAD, PUT, DELETE, OPTIONS and TRACE.
    public static let idempotentMethods = RetrySafety.idempotent
    /// The longest time that a request waits for the network to come back before it is retried anyway, in milliseconds:
    /// one hour.
    public static let longestNetworkWait: Int64 = 3_600_000

    /// The number of attempts and the delays between them.
    public let policy: RetryPolicy
    /// The methods that are repeated whatever happened.
    public let methods: Set<HTTPRequest.Method>

    let hosts: HostWaiting
    private let network: NetworkWaiting
    private let generator: Mutex<any RandomNumberGenerator & Sendable>

    /// - Parameters:
    ///   - policy: its `attempts` counts attempts in a row without progress.
    ///   - methods: more than the idempotent methods if the server recognises repetitions, as with idempotency keys.
    ///   - reachability: used by this retrier only; it starts to listen when a request first has to wait for the
    ///     network.
    ///   - generator: the source of the jitter.
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

    /// Waits until the request's host may be contacted; returns the request unchanged.
    public nonisolated(nonsending) func adapt(
        _ request: TransferRequest
    ) async throws(TransferError) -> TransferRequest {
        // An invalid URL fails later by itself.
        if let host = Self.host(of: request.url) { try await hosts.enter(host) }
        if let proxy = request.proxy.flatMap({ RouteLookup.origin(ofProxy: $0) }) { try await hosts.enter(proxy) }
        return request
    }

    // MARK: After an attempt

    public func attemptDidEnd(of request: Request, with error: TransferError?) {
        if error?.underlying is NeverAdmitted { return }
        let (asked, answered) = (Self.host(of: request.task?.originalRequest.url), Self.host(of: request.request?.url))
        let failure = error ?? Self.unvalidatedFailure(of: request)
        guard let answered else { return }
        if let failure, failure.isOfProxy, let proxy = failure.origin {
            // Nothing is known of the server behind it.
            hosts.record(.unknown, of: answered)
            return hosts.record(.failed, of: proxy)
        }
        if let proxy = request.request?.proxy.flatMap({ RouteLookup.origin(ofProxy: $0) }) {
            hosts.record(error?.code == .cancelled ? .unknown : .alive, of: proxy)
        }
        hosts.record(HostCircuitBreakers.Outcome(failure), of: answered, retryAfter: failure?.pauseOfHost)
        // A host that redirects is alive.
        if let asked, asked != answered { hosts.record(.alive, of: asked) }
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
        var own = delay(failures: failures, retryAfter: error.retryAfter)
        // A response that follows earlier would confirm nothing.
        if error.code == .remoteChanged { own = max(own, request.request?.confirmationDelay ?? 0) }
        let closed = error.isOfProxy ? error.origin : Self.host(of: request.request?.url)
        let hold = closed.map { hosts.hold(of: $0) } ?? 0
        // All waiting requests are free at the same time. The jitter spreads them.
        return .retry(after: hold > own ? hold + delay(failures: failures) : own)
    }

    private func delay(failures: Int, retryAfter: Int64? = nil) -> Int64 {
        generator.withLock { policy.delay(failures: failures, retryAfter: retryAfter, using: &$0) }
    }

    private static func host(of url: String?) -> String? {
        guard let url else { return nil }
        return (try? CurlURL(url))?.origin
    }

    /// Returns the failure behind a response with an error status that the request does not validate, since its host
    /// may be in trouble all the same; `nil` if there is none.
    private static func unvalidatedFailure(of request: Request) -> TransferError? {
        guard let head = request.response, head.status >= 400 else { return nil }
        return ResponseEvaluator.failure(head, now: Int64(time(nil)))
    }
}

extension HostCircuitBreakers.Outcome {
    /// Derives an outcome for the host from the end of an attempt.
    package init(_ error: TransferError?) {
        self =
            switch error?.code {
            case nil: .alive
            case .httpStatus?: error?.httpStatus ?? 0 >= 500 ? .failed : .alive
            case .cannotConnect?, .timedOut?: .failed
            case .truncated?, .remoteChanged?, .checksumMismatch?, .tooLarge?, .tooManyRedirects?,
                .unacceptableContentType?, .validationFailed?:
                .alive
            // The failure is of this machine or of a name server: a host whose name does not exist is not contacted.
            default: .unknown
            }
    }
}

/// The network state that retriers use. Tests can replace it.
struct NetworkWaiting: Sendable {
    var isReachable: @Sendable () -> Bool
    /// Waits for the network to come back, for at most the given number of milliseconds.
    ///
    /// Returns whether the network came back, or changed.
    var comesBack: @Sendable (Int64) async -> Bool

    static func system(_ manager: NetworkReachabilityManager, clock: RetryClock) -> NetworkWaiting {
        NetworkWaiting(isReachable: { manager.status == .reachable }) { milliseconds in
            // The order matters: `changes` also holds a change between the start of listening and the status check.
            let changes = manager.changes
            // If the kernel gives no information, the wait ends by its time limit alone.
            try? manager.startListening()
            if manager.status == .reachable { return true }
            return await withTaskGroup(of: Bool?.self) { group in
                group.addTask {
                    for await change in changes where change != .down { return true }
                    return nil
                }
                group.addTask {
                    await clock.sleep(milliseconds)
                    return false
                }
                defer { group.cancelAll() }
                for await answer in group { if let answer { return answer } }
                return false
            }
        }
    }
}
