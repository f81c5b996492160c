public import HTTPMessages
public import HTTPTypes

/// A substitute for HTTP servers, for tests without a network. The product `StubTransport` has one that is ready to
/// use.
///
/// With a stub as ``SessionConfiguration/transportStub``, every HTTP request of the session goes to the stub when it is
/// about to be sent: the first one, one after a redirect, one with credentials, one for the rest of a file. The engine
/// handles the response as if a server had sent it. No name is resolved and no connection is made, unless the stub
/// returns ``StubResult/network``.
///
/// A stub does not take part in what belongs to a connection: TLS and server trust, proxies, denied networks, the
/// choice of the HTTP version, and time-outs. It can return the errors of these as ``StubResult/failure(_:)``. Requests
/// to file servers and streams fail with ``TransferError/Code/protocolNotAllowed``.
public protocol StubResponder: Sendable {
    /// Returns the result of a request. It may take its time; cancelling the request does not cancel the call, but its
    /// result is then ignored.
    func result(of request: SentRequest) async -> StubResult
}

/// A request as it is about to be sent.
public struct SentRequest: Sendable {
    /// The request method.
    public var method: HTTPRequest.Method
    /// The absolute URL, as libcurl normalises it. It may contain secrets.
    public var url: String
    /// The header fields that the request, the session and the engine set, in order. libcurl adds `Host`, `Accept` and
    /// the fields that frame the body only to a request that it sends.
    public var headerFields: HTTPFields
    /// The complete body, from wherever it comes; empty if there is none.
    public var body: [UInt8]

    /// Creates a request, for example for a test of a stub.
    ///
    /// - Parameters:
    ///   - method: the request method.
    ///   - url: the absolute URL.
    ///   - headerFields: the header fields.
    ///   - body: the body.
    public init(
        method: HTTPRequest.Method = .get, url: String, headerFields: HTTPFields = [:], body: [UInt8] = []
    ) {
        self.method = method
        self.url = url
        self.headerFields = headerFields
        self.body = body
    }
}

/// The result of a request to a ``StubResponder``.
public enum StubResult: Sendable {
    /// The request goes to the network. A body that is a stream is produced again.
    case network
    /// A response arrives.
    case response(StubbedResponse)
    /// The request fails without a response, as with ``TransferError/Code/cannotConnect``.
    case failure(TransferError)
}

/// A response of a ``StubResponder``.
///
/// The engine evaluates it like the response of a server. Bytes beyond the head's `Content-Length` are dropped; a
/// body that is shorter fails with ``TransferError/Code/truncated``. Responses to `HEAD` and those with the status 204
/// or 304 have no body (RFC 9112, section 6.3). Where libcurl would decode the body by `Content-Encoding` (gzip and
/// deflate), the engine does.
public struct StubbedResponse: Sendable {
    /// The head. Its status is 200 or more.
    public var head: ResponseHead
    /// The body.
    public var body: [UInt8]
    /// The time until the response arrives, in milliseconds.
    public var delay: Int64
    /// The error with which the connection breaks after the body; `nil` for a complete response.
    public var failure: TransferError?

    /// Creates a response.
    ///
    /// - Parameters:
    ///   - head: the head.
    ///   - body: the body.
    ///   - delay: the time until the response arrives, in milliseconds.
    ///   - failure: the error with which the connection breaks after the body; `nil` for a complete response.
    public init(head: ResponseHead, body: [UInt8] = [], delay: Int64 = 0, failure: TransferError? = nil) {
        self.head = head
        self.body = body
        self.delay = delay
        self.failure = failure
    }
}
