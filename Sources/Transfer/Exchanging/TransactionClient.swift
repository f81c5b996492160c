import Curl

/// A client of a ``Transaction``. It contributes to the requests and receives the final response. Called on the loop's
/// thread.
protocol TransactionClient: AnyObject {
    /// Prepares an exchange with `url`: the first one, one after a redirect, or one with credentials.
    func prepare(
        _ request: TransferRequest, at url: CurlURL, of transaction: Transaction
    ) throws(TransferError) -> Transaction.Contribution
    /// Returns the stored response to use in place of a request, or `nil` to send the request. Called after
    /// ``prepare(_:at:of:)``, when all fields of the request are known.
    func storedResponse(
        for request: TransferRequest, at url: CurlURL, isAuthorized: Bool,
        _ contribution: inout Transaction.Contribution
    ) throws(TransferError) -> CachedResponse?
    /// Observes the head of any response from the server, including redirects and challenges.
    func didReceiveHead(_ head: ResponseHead)
    /// Receives the head of the final response.
    func didReceiveFinalHead(
        _ head: ResponseHead, at url: CurlURL, of transaction: Transaction
    ) -> HeadDisposition
    /// Asks a delegate about the response, after ``didReceiveFinalHead(_:at:of:)`` returned `.ask`.
    ///
    /// - Parameter answer: a closure that may be called at any time and from any thread.
    func askDelegate(about head: ResponseHead, _ answer: @escaping @Sendable (ResponseDisposition) -> Void)
    /// Applies the delegate's decision about the response.
    func didDecide(
        _ disposition: ResponseDisposition, about head: ResponseHead, at url: CurlURL, of transaction: Transaction
    ) -> HeadDisposition
    /// Receives bytes of the final response's body.
    func didReceiveBody(_ bytes: UnsafeRawBufferPointer, of transaction: Transaction) -> BodyDisposition
    /// Writes bytes of the request's body to `space`.
    func writeBody(to space: UnsafeMutableRawBufferPointer) -> BodySupply
    /// Prepares to send the request's body again from `offset`.
    func rewindBody(to offset: Int64) -> Bool
    /// Whether the response's body is discarded while the request's body is not completely sent. Received bytes are
    /// then no sign of progress.
    var isWaitingToSend: Bool { get }
    /// Returns whether the client will request the rest over its own connection after ``didEnd(_:of:)``. Called if the
    /// response is paused in a stream of a connection that is shared with other requests.
    func leavesSharedConnection(_ transaction: Transaction) -> Bool
    /// Handles the end of the transaction. `error` is `nil` if libcurl reports success; the client must check whether
    /// the body is complete.
    func didEnd(_ error: TransferError?, of transaction: Transaction)
}

extension TransactionClient {
    func storedResponse(
        for request: TransferRequest, at url: CurlURL, isAuthorized: Bool,
        _ contribution: inout Transaction.Contribution
    ) throws(TransferError) -> CachedResponse? { nil }
    func didReceiveHead(_ head: ResponseHead) {}
    func askDelegate(about head: ResponseHead, _ answer: @escaping @Sendable (ResponseDisposition) -> Void) {
        answer(.allow)
    }
    func didDecide(
        _ disposition: ResponseDisposition, about head: ResponseHead, at url: CurlURL, of transaction: Transaction
    ) -> HeadDisposition { .receive }
    func leavesSharedConnection(_ transaction: Transaction) -> Bool { false }
    var isWaitingToSend: Bool { false }
    func writeBody(to space: UnsafeMutableRawBufferPointer) -> BodySupply { .written(0) }
    func rewindBody(to offset: Int64) -> Bool { true }
}

/// A client's decision about bytes of the response's body. Returned for every chunk, so accepting allocates nothing.
enum BodyDisposition {
    case accepted
    /// The same bytes are delivered again after ``Transaction/resume(_:)`` for this reason.
    case paused(PauseReasons)
    /// The exchange is aborted for this error; `nil` reports the error of the exchange.
    indirect case refused(TransferError?)
}

/// The bytes of the request's body that a client has written. Returned for every chunk, so writing allocates nothing.
enum BodySupply {
    /// The number of bytes written; 0 at the end of the body.
    case written(Int)
    /// The client is called again after ``Transaction/resume(_:)`` for this reason.
    case paused(PauseReasons)
    indirect case failed(TransferError)
}

/// A client's decision about the head of the final response.
enum HeadDisposition {
    /// The body is received.
    case receive
    /// The body is not needed; the client is notified of its end as usual.
    case discard
    /// A delegate decides about the response.
    case ask
    /// The exchange is aborted.
    case refuse(TransferError)
}
