/// A raw connection, over all the attempts needed to establish it.
///
/// Calls made before the connection is established wait for the attempt that establishes it. A connection that was
/// established and then broke is not made again, since the engine cannot know how much its peer had processed.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class StreamRequest: Request, @unchecked Sendable {
    private let channel: StreamChannel

    init(_ intention: Result<TransferRequest, TransferError>, manager: SessionManager) {
        let delegate = manager.delegate.makeStreamTaskDelegate()
        let (channel, progress) = (delegate.channel, delegate.progress)
        self.channel = channel
        super.init(intention, delegate: delegate, progress: progress, manager: manager) {
            [session = manager.session] request in
            StreamTask(request, progress: progress, session: session, channel: channel)
        }
    }

    /// The address `tcp://host:port`, without secrets.
    override public var description: String {
        request.map { URLRedaction.redact($0.url) } ?? "(a request that could not be made)"
    }

    /// The description; curl has no equivalent command.
    override public var debugDescription: String { description }

    override var canTryAgain: Bool { super.canTryAgain && !channel.hasConnected }

    // MARK: Completion

    /// Runs `handler` when the request is complete: the connection is closed on both sides, has failed, was cancelled,
    /// or could not be established.
    @discardableResult
    public func response(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (StreamResponse) -> Void
    ) -> Self {
        delegate.queue.add(on: queue ?? callbackQueue) { [self] in handler(report()) }
        startIfImmediate()
        return self
    }

    /// The result of the request, once it is complete. Cancelling the Swift task that waits cancels the request.
    public var outcome: StreamResponse {
        get async {
            await completion()
            return report()
        }
    }

    private func report() -> StreamResponse {
        StreamResponse(
            request: request, result: delegate.error.map { .failure($0) } ?? .success(()), metrics: metrics)
    }

    // MARK: Reading and writing: all but the closing methods start the request, as a handler does

    /// Reads as ``StreamTask/readData(ofMinLength:maxLength:timeout:)`` does. The time-out runs only during an attempt.
    public func readData(
        ofMinLength least: Int = 1, maxLength most: Int = 65536, timeout: Int64? = nil
    ) async throws(TransferError) -> (data: [UInt8], atEOF: Bool) {
        startIfImmediate()
        let piece = try await channel.read(least: least, most: most, limit: timeout)
        return (piece.data, piece.atEOF)
    }

    /// Writes as ``StreamTask/write(_:timeout:)-([UInt8],_)`` does. The time-out runs only during an attempt.
    public func write(_ bytes: [UInt8], timeout: Int64? = nil) async throws(TransferError) {
        startIfImmediate()
        try await channel.write(bytes, limit: timeout)
    }

    /// Closes the read side as ``StreamTask/closeRead()`` does. Does not start the request.
    @discardableResult
    public func closeRead() -> Self {
        channel.closeRead()
        return self
    }

    /// Closes the write side as ``StreamTask/closeWrite()`` does. Does not start the request.
    @discardableResult
    public func closeWrite() -> Self {
        channel.closeWrite()
        return self
    }

    /// Starts TLS as ``StreamTask/startSecureConnection()`` does.
    public func startSecureConnection() async throws(TransferError) {
        startIfImmediate()
        try await channel.pass(.secure)
    }

    /// Converts the connection to streams as ``StreamTask/captureStreams()`` does.
    public func captureStreams() async throws(TransferError) -> (reader: StreamReader, writer: StreamWriter) {
        startIfImmediate()
        try await channel.pass(.capture)
        return (StreamReader(channel: channel), StreamWriter(channel: channel))
    }

    /// The received bytes, as ``StreamTask/bytes``. Reading this property starts the request.
    public var bytes: StreamBytes {
        startIfImmediate()
        return StreamBytes(reader: StreamReader(channel: channel, isCaptured: false))
    }
}

/// The result of a stream.
public struct StreamResponse: Sendable {
    /// The request as the last attempt sent it.
    public var request: TransferRequest?
    /// Success if both sides were closed; otherwise why the connection could not be established, broke or was
    /// cancelled.
    public var result: Result<Void, TransferError>
    /// The metrics of all attempts.
    public var metrics: TransferMetrics

    /// The error of a failure; `nil` after success.
    public var error: TransferError? {
        if case .failure(let error) = result { error } else { nil }
    }
}

extension SessionManager {
    /// Returns a request for a raw connection to a host and port.
    public func stream(host: String, port: Int) -> StreamRequest {
        stream(TransferRequest(url: StreamAddress.url(host: host, port: port)))
    }

    /// Returns a request for a raw connection.
    ///
    /// - Parameter request: its URL, before and after the adapter, is `tcp://host:port`; ``StreamTask`` describes which
    ///   other properties apply.
    public func stream(_ request: some RequestConvertible) -> StreamRequest {
        StreamRequest(Result { () throws(TransferError) in try request.asRequest() }, manager: self)
    }
}

extension StreamResponse: CustomStringConvertible, CustomDebugStringConvertible {
    /// The result: `success: closed on both sides`, or `failure:` and the message.
    public var description: String { ResponseText.result(result, "closed on both sides") }

    /// Lines about the request, the times and the result. Secrets are left out.
    public var debugDescription: String {
        (ResponseText.request(request) + ResponseText.end(metrics, description)).joined(separator: "\n")
    }
}
