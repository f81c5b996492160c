import Curl
public import HTTPMessages

/// An observer of the requests of a session, for example for logs and counts. A session has any number of them; see
/// ``SessionManager/init(configuration:delegate:serverTrustPolicyManager:startRequestsImmediately:eventMonitors:queue:)``.
///
/// Every method has an empty default. Each monitor is called on a thread of its own, one event after another and in the
/// order of the events, so it may block without delaying a transfer. Events that wait for a slow monitor are kept in
/// memory. What a method reads from a request may be newer than its event. Tasks that are created by a ``Session``
/// itself belong to no request and have no events.
///
/// The order of a request's events: created, resumed; for each attempt adapted, task created, responses received,
/// validated, metrics collected, task completed, attempt ended; then another attempt, or the completion.
public protocol EventMonitor: Sendable {
    // MARK: The request

    /// Called when the request is created. It starts when it is resumed.
    func requestDidCreate(_ request: Request)
    /// Called when the request is started, or resumed after a suspension.
    func requestDidResume(_ request: Request)
    /// Called when the request is suspended.
    func requestDidSuspend(_ request: Request)
    /// Called when the request is cancelled. Its completion follows unless it was complete already.
    func requestDidCancel(_ request: Request)
    /// Called when the request is complete. Its handlers run next.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - error: the reason why it failed; `nil` after success.
    func request(_ request: Request, didCompleteWith error: TransferError?)
    /// Called when a body has been converted to a value, once for each handler or awaited value.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - response: the result of the conversion.
    func request<Value: Sendable>(_ request: DataRequest, didSerialize response: DataResponse<Value>)

    // MARK: An attempt

    /// Called when adapters have changed the request, or have left it as it is.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - original: the request before adapters.
    ///   - adapted: the request after adapters.
    func request(_ request: Request, didAdapt original: TransferRequest, to adapted: TransferRequest)
    /// Called when an adapter has failed.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - original: the request before adapters.
    ///   - error: the error of the adapter.
    func request(_ request: Request, didFailToAdapt original: TransferRequest, with error: TransferError)
    /// Called when the task of an attempt is created, or when a data task has become a download task.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - task: the task.
    func request(_ request: Request, didCreate task: any SessionTask)
    /// Called for the head of each response, redirects and challenges included, and for one from the cache.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - head: the head. Of a download with several connections, it is the head of the first one.
    func request(_ request: Request, didReceive head: ResponseHead)
    /// Called when validators have judged a response. A download without a known length may be judged again when its
    /// first byte arrives.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - head: the head of the response.
    ///   - error: the error of the first validator that rejected it; `nil` if none did.
    func request(_ request: Request, didValidate head: ResponseHead, with error: TransferError?)
    /// Called with the metrics of an attempt, when its task is complete.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - metrics: the metrics of the attempt alone.
    func request(_ request: Request, didCollect metrics: TransferMetrics)
    /// Called when the task of an attempt is complete, before the attempt is validated.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - task: the task.
    ///   - error: the error of the transport.
    func request(_ request: Request, didComplete task: any SessionTask, with error: TransferError?)
    /// Called when an attempt has ended and has been validated.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - error: the error of the adapter, the transport or a validator; `nil` after success.
    func request(_ request: Request, attemptDidEndWith error: TransferError?)
    /// Called when another attempt begins.
    ///
    /// - Parameters:
    ///   - request: the request. Its ``Request/retryCount`` includes the new attempt.
    ///   - error: the error of the last attempt.
    func request(_ request: Request, willRetryAfter error: TransferError)
}

extension EventMonitor {
    public func requestDidCreate(_ request: Request) {}
    public func requestDidResume(_ request: Request) {}
    public func requestDidSuspend(_ request: Request) {}
    public func requestDidCancel(_ request: Request) {}
    public func request(_ request: Request, didCompleteWith error: TransferError?) {}
    public func request<Value: Sendable>(_ request: DataRequest, didSerialize response: DataResponse<Value>) {}
    public func request(_ request: Request, didAdapt original: TransferRequest, to adapted: TransferRequest) {}
    public func request(_ request: Request, didFailToAdapt original: TransferRequest, with error: TransferError) {}
    public func request(_ request: Request, didCreate task: any SessionTask) {}
    public func request(_ request: Request, didReceive head: ResponseHead) {}
    public func request(_ request: Request, didValidate head: ResponseHead, with error: TransferError?) {}
    public func request(_ request: Request, didCollect metrics: TransferMetrics) {}
    public func request(_ request: Request, didComplete task: any SessionTask, with error: TransferError?) {}
    public func request(_ request: Request, attemptDidEndWith error: TransferError?) {}
    public func request(_ request: Request, willRetryAfter error: TransferError) {}
}

/// The event monitors of a session, each with a thread of its own.
final class EventMonitorGroup: Sendable {
    private struct Member {
        let monitor: any EventMonitor
        /// A single thread, so that events keep their order.
        let thread = WorkerThreads(name: "dld-monitor", limit: 1, stack: SystemThread.largeStack)
    }

    private let members: [Member]

    /// - Returns: `nil` for an empty list, so that an event without monitors costs a comparison.
    init?(_ monitors: [any EventMonitor]) {
        guard !monitors.isEmpty else { return nil }
        members = monitors.map { Member(monitor: $0) }
    }

    deinit {
        for member in members { member.thread.stop() }
    }

    /// Calls each monitor soon.
    func notify(_ event: @escaping @Sendable (any EventMonitor) -> Void) {
        for member in members {
            let monitor = member.monitor
            member.thread.perform { event(monitor) }
        }
    }
}
