public import FoundationEssentials

/// A WebSocket (RFC 6455): messages in both directions, over all the attempts needed to establish the connection.
///
/// The request starts when its messages are first read, when something is sent, or when its result is needed. Calls made
/// before the connection is established wait for it. A connection that was established and then broke is not made again.
///
/// Messages are received in ``messages`` and sent with ``send(_:)-(WebSocketMessage)``. A reader that is slow makes the
/// server wait, and a server that is slow makes ``send(_:)-(WebSocketMessage)`` wait. Pings of the server are answered
/// while messages are being received. ``close(code:reason:)`` closes the WebSocket; ``outcome`` has the code and the
/// reason of the server's Close frame.
///
/// The session's `connectTimeout` applies to connecting and to TLS. Its `stallTimeout` applies while a call waits: after
/// half of the time without traffic the server is sent a ping, and if nothing comes in the rest of the time, the request
/// fails with ``TransferError/Code/stalled``. A WebSocket that no call waits for may be silent indefinitely.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class WebSocketRequest: Request, @unchecked Sendable {
    /// The limit for the size of a received message in bytes, unless another is given.
    public static let defaultMaximumMessageSize = 16 << 20

    private let channel: WebSocketChannel

    init(
        _ intention: Result<TransferRequest, TransferError>, protocols: [String], maximumMessageSize: Int,
        manager: SessionManager
    ) {
        let (channel, progress) = (
            WebSocketChannel(protocols: protocols, maximumMessageSize: maximumMessageSize), TransferProgress()
        )
        let delegate = WebSocketTaskDelegate(channel: channel)
        self.channel = channel
        super.init(intention, delegate: delegate, progress: progress, manager: manager) {
            [session = manager.session, weak delegate] request in
            var request = request
            // The handshake has one request, so the credential cannot wait for a challenge.
            request.credential = request.credential ?? delegate?.credential
            return StreamTask(request, progress: progress, session: session, link: channel)
        }
    }

    override var canTryAgain: Bool { super.canTryAgain && !channel.hasConnected }

    /// The head of the server's response to the opening handshake; `nil` before it.
    override public var response: ResponseHead? { channel.head }

    /// The subprotocol that the server chose from those on offer; `nil` if it chose none.
    public var subprotocol: String? { channel.subprotocol }

    // MARK: Completion

    /// Runs `handler` when the request is complete: the WebSocket is closed, has failed, was cancelled, or could not be
    /// established.
    @discardableResult
    public func response(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (WebSocketResponse) -> Void
    ) -> Self {
        delegate.queue.add(on: queue ?? callbackQueue) { [self] in handler(report()) }
        startIfImmediate()
        return self
    }

    /// The result of the request, once it is complete. Cancelling the Swift task that waits cancels the request.
    public var outcome: WebSocketResponse {
        get async {
            await completion()
            return report()
        }
    }

    private func report() -> WebSocketResponse {
        let closure = channel.closure ?? WebSocketClosure(code: .noStatus)
        return WebSocketResponse(
            request: request, result: delegate.error.map { .failure($0) } ?? .success(closure), metrics: metrics)
    }

    // MARK: Messages

    /// The received messages, up to the end; see ``WebSocketMessages``. Reading this property starts the request.
    public var messages: WebSocketMessages {
        startIfImmediate()
        return WebSocketMessages(channel: channel)
    }

    /// Sends a message, after those of earlier calls. Returns when the system has accepted all of it, which a server
    /// that does not read delays. Await each call, so that little memory is used.
    ///
    /// Cancelling the Swift task that waits withdraws a message of which nothing is sent. If a part of it is sent, the
    /// request is cancelled, since the connection is unusable then.
    ///
    /// - Throws: ``TransferError``: `streamClosed` after ``close(code:reason:)`` and after the server has closed the
    ///   WebSocket; otherwise the reason why the connection could not be established or ended.
    public func send(_ message: WebSocketMessage) async throws(TransferError) {
        startIfImmediate()
        switch message {
        case .text(let text): try await channel.send(.text, Array(text.utf8))
        case .data(let data): try await channel.send(.binary, Array(data))
        }
    }

    /// Sends a text as ``send(_:)-(WebSocketMessage)`` does.
    public func send(_ text: String) async throws(TransferError) { try await send(.text(text)) }

    /// Sends data as ``send(_:)-(WebSocketMessage)`` does.
    public func send(_ data: Data) async throws(TransferError) { try await send(.data(data)) }

    /// Sends a ping before the messages that wait, and returns when the server has answered it (RFC 6455, section
    /// 5.5.2). The answer is behind the messages that the server sent before it and that are not read.
    ///
    /// - Throws: ``TransferError``, as ``send(_:)-(WebSocketMessage)`` does.
    public func ping() async throws(TransferError) {
        startIfImmediate()
        try await channel.ping()
    }

    /// Closes the WebSocket once the messages of earlier calls are sent, and returns when the server has closed it too
    /// (RFC 6455, section 7). Messages that are received meanwhile are discarded. The server has 10 seconds. Only the
    /// first code and reason are sent.
    ///
    /// - Parameters:
    ///   - code: a code that may be sent: 1000 to 1003, 1007 to 1014, 3000 to 4999.
    ///   - reason: a reason for people, at most 123 bytes of UTF-8.
    /// - Returns: the code and the reason of the server's Close frame.
    /// - Throws: ``TransferError``: `invalid` for a code or reason that cannot be sent; `timeout` if the server does not
    ///   close; otherwise the reason why the connection could not be established or broke.
    @discardableResult
    public func close(
        code: WebSocketCloseCode = .normal, reason: String = ""
    ) async throws(TransferError) -> WebSocketClosure {
        guard code.isSendable, reason.utf8.count <= WebSocketClosure.longestReason else {
            throw TransferError(.invalidRequest, "the close code \(code.rawValue) or its reason cannot be sent")
        }
        startIfImmediate()
        try await channel.close(WebSocketClosure(code: code, reason: reason).payload)
        return channel.closure ?? WebSocketClosure(code: .noStatus)
    }
}

/// The messages of a WebSocket. The sequence ends when the WebSocket is closed by either side, and throws if the
/// connection breaks.
///
/// Iterators share the messages: each goes to one of them. Cancelling the Swift task that waits for a message cancels
/// the wait and loses no message.
public struct WebSocketMessages: AsyncSequence, Sendable {
    public typealias Element = WebSocketMessage
    public typealias Failure = TransferError

    let channel: WebSocketChannel

    public func makeAsyncIterator() -> Iterator { Iterator(channel: channel) }

    /// The iterator over the messages.
    public struct Iterator: AsyncIteratorProtocol {
        let channel: WebSocketChannel

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(TransferError) -> WebSocketMessage? { try await channel.receive() }

        public mutating func next() async throws(TransferError) -> WebSocketMessage? { try await next(isolation: nil) }
    }
}

/// The result of a WebSocket.
public struct WebSocketResponse: Sendable {
    /// The request as the last attempt sent it.
    public var request: TransferRequest?
    /// The server's Close frame, whoever closed the WebSocket; otherwise why the connection could not be established,
    /// broke or was cancelled.
    public var result: Result<WebSocketClosure, TransferError>
    /// The metrics of all attempts.
    public var metrics: TransferMetrics

    /// The server's Close frame; `nil` after a failure.
    public var closure: WebSocketClosure? { try? result.get() }

    /// The error of a failure; `nil` after success.
    public var error: TransferError? {
        if case .failure(let error) = result { error } else { nil }
    }
}

extension SessionManager {
    /// Returns a request for a WebSocket.
    ///
    /// These values of the request and of the session apply: the URL, the fields, the credential, the identity, the
    /// trusted certificates, the proxy (as a tunnel), the cookies and the time limits. A credential is sent with the
    /// handshake and without a challenge, by the Basic scheme or as a bearer token. A redirect is not followed, and
    /// rates and connection limits do not apply.
    ///
    /// - Parameters:
    ///   - request: its URL, after the adapter, is `ws://…` or `wss://…`.
    ///   - protocols: the subprotocols on offer, the preferred one first (RFC 6455, section 1.9).
    ///   - maximumMessageSize: the limit for the size of a received message in bytes. A larger one closes the WebSocket
    ///     with the code 1009, and the request fails with ``TransferError/Code/tooLarge``.
    public func webSocket(
        _ request: some RequestConvertible, protocols: [String] = [],
        maximumMessageSize: Int = WebSocketRequest.defaultMaximumMessageSize
    ) -> WebSocketRequest {
        WebSocketRequest(
            Result { () throws(TransferError) in try request.asRequest() }, protocols: protocols,
            maximumMessageSize: maximumMessageSize, manager: self)
    }
}

extension WebSocketResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// The result, as in `success: closed with 1000 (normal closure)`, or `failure:` and the message.
    public var description: String {
        ResponseText.result(result, closure.map { "closed with \($0)" } ?? "closed")
    }

    /// Lines about the request, the times and the result. Secrets are left out.
    public var debugDescription: String {
        (ResponseText.request(request) + ResponseText.end(metrics, description)).joined(separator: "\n")
    }
}
