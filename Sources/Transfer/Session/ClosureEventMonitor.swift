public import HTTPMessages

/// An event monitor made of closures. Each closure is called as the method of ``EventMonitor`` that it is named after.
///
///     var monitor = ClosureEventMonitor()
///     monitor.requestDidComplete = { request, error in print(request, error?.message ?? "done") }
///     let manager = try SessionManager(eventMonitors: [monitor])
public struct ClosureEventMonitor: EventMonitor {
    /// The closure for the creation of a request.
    public var requestDidCreate: (@Sendable (Request) -> Void)?
    /// The closure for the start of a request, or its resumption.
    public var requestDidResume: (@Sendable (Request) -> Void)?
    /// The closure for the suspension of a request.
    public var requestDidSuspend: (@Sendable (Request) -> Void)?
    /// The closure for the cancellation of a request.
    public var requestDidCancel: (@Sendable (Request) -> Void)?
    /// The closure for the completion of a request.
    public var requestDidComplete: (@Sendable (Request, _ error: TransferError?) -> Void)?
    /// The closure for the result of adapters.
    public var requestDidAdapt: (@Sendable (Request, _ original: TransferRequest, _ adapted: TransferRequest) -> Void)?
    /// The closure for the failure of an adapter.
    public var requestDidFailToAdapt:
        (@Sendable (Request, _ original: TransferRequest, _ error: TransferError) -> Void)?
    /// The closure for the creation of an attempt's task.
    public var requestDidCreateTask: (@Sendable (Request, any SessionTask) -> Void)?
    /// The closure for the head of a response.
    public var requestDidReceiveResponse: (@Sendable (Request, ResponseHead) -> Void)?
    /// The closure for the judgement of validators.
    public var requestDidValidate: (@Sendable (Request, ResponseHead, _ error: TransferError?) -> Void)?
    /// The closure for the metrics of an attempt.
    public var requestDidCollectMetrics: (@Sendable (Request, TransferMetrics) -> Void)?
    /// The closure for the completion of an attempt's task.
    public var requestDidCompleteTask: (@Sendable (Request, any SessionTask, _ error: TransferError?) -> Void)?
    /// The closure for the end of an attempt.
    public var requestAttemptDidEnd: (@Sendable (Request, _ error: TransferError?) -> Void)?
    /// The closure for the beginning of another attempt.
    public var requestWillRetry: (@Sendable (Request, _ error: TransferError) -> Void)?

    /// Creates a monitor without closures.
    public init() {}

    public func requestDidCreate(_ request: Request) { requestDidCreate?(request) }
    public func requestDidResume(_ request: Request) { requestDidResume?(request) }
    public func requestDidSuspend(_ request: Request) { requestDidSuspend?(request) }
    public func requestDidCancel(_ request: Request) { requestDidCancel?(request) }

    public func request(_ request: Request, didCompleteWith error: TransferError?) {
        requestDidComplete?(request, error)
    }

    public func request(_ request: Request, didAdapt original: TransferRequest, to adapted: TransferRequest) {
        requestDidAdapt?(request, original, adapted)
    }

    public func request(_ request: Request, didFailToAdapt original: TransferRequest, with error: TransferError) {
        requestDidFailToAdapt?(request, original, error)
    }

    public func request(_ request: Request, didCreate task: any SessionTask) { requestDidCreateTask?(request, task) }

    public func request(_ request: Request, didReceive head: ResponseHead) {
        requestDidReceiveResponse?(request, head)
    }

    public func request(_ request: Request, didValidate head: ResponseHead, with error: TransferError?) {
        requestDidValidate?(request, head, error)
    }

    public func request(_ request: Request, didCollect metrics: TransferMetrics) {
        requestDidCollectMetrics?(request, metrics)
    }

    public func request(_ request: Request, didComplete task: any SessionTask, with error: TransferError?) {
        requestDidCompleteTask?(request, task, error)
    }

    public func request(_ request: Request, attemptDidEndWith error: TransferError?) {
        requestAttemptDidEnd?(request, error)
    }

    public func request(_ request: Request, willRetryAfter error: TransferError) {
        requestWillRetry?(request, error)
    }
}
