/// A raw connection, over all the attempts that it takes to be made.
///
/// What is asked for before there is a connection waits for the attempt that brings it. A connection that was there
/// and broke is not made again: what its peer had understood by then is not for the engine to know.
///
/// `@unchecked` for the reason that ``Request`` gives.
public final class StreamRequest: Request, @unchecked Sendable {
    private let channel: StreamChannel

    init(_ intention: Result<TransferRequest, TransferError>, manager: SessionManager) {
        let (channel, progress) = (StreamChannel(), TransferProgress())
        self.channel = channel
        let delegate = StreamTaskDelegate(channel: channel, progress: progress)
        super.init(intention, delegate: delegate, progress: progress, manager: manager) {
            [session = manager.session] request in
            StreamTask(request, progress: progress, session: session, channel: channel)
        }
    }

    /// `tcp://host:port`, without secrets.
    override public var description: String {
        request.map { URLRedaction.redact($0.url) } ?? "(a request that could not be made)"
    }

    /// No command of curl's does the same.
    override public var debugDescription: String { description }

    override var canTryAgain: Bool { super.canTryAgain && !channel.hasConnected }

    // MARK: Its end

    /// Runs `handler` when the request is complete: the connection is closed on both sides, broken or cancelled, or
    /// could not be made.
    @discardableResult
    public func response(
        queue: HandlerQueue = .shared, _ handler: @escaping @Sendable (StreamResponse) -> Void
    ) -> Self {
        delegate.queue.add(on: queue) { [self] in handler(report()) }
        startIfImmediate()
        return self
    }

    /// How the request ended. Cancelling the Swift task that waits cancels the request.
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

    // MARK: Reading and writing: each of these starts the request, as a handler does

    /// As ``StreamTask/readData(ofMinLength:maxLength:timeout:)``. Its time runs while an attempt does.
    public func readData(
        ofMinLength least: Int = 1, maxLength most: Int = 65536, timeout: Int64? = nil
    ) async throws(TransferError) -> (data: [UInt8], atEOF: Bool) {
        startIfImmediate()
        let piece = try await channel.read(least: least, most: most, limit: timeout)
        return (piece.data, piece.atEOF)
    }

    /// As ``StreamTask/write(_:timeout:)``. Its time runs while an attempt does.
    public func write(_ bytes: [UInt8], timeout: Int64? = nil) async throws(TransferError) {
        startIfImmediate()
        try await channel.write(bytes, limit: timeout)
    }

    /// As ``StreamTask/closeRead()``.
    @discardableResult
    public func closeRead() -> Self {
        channel.closeRead()
        return self
    }

    /// As ``StreamTask/closeWrite()``.
    @discardableResult
    public func closeWrite() -> Self {
        channel.closeWrite()
        return self
    }

    /// As ``StreamTask/startSecureConnection()``.
    public func startSecureConnection() async throws(TransferError) {
        startIfImmediate()
        try await channel.pass(.secure)
    }

    /// As ``StreamTask/captureStreams()``.
    public func captureStreams() async throws(TransferError) -> (reader: StreamReader, writer: StreamWriter) {
        startIfImmediate()
        try await channel.pass(.capture)
        return (StreamReader(channel: channel), StreamWriter(channel: channel))
    }

    /// As ``StreamTask/bytes``. The request is started by whoever takes the sequence.
    public var bytes: StreamBytes {
        startIfImmediate()
        return StreamBytes(reader: StreamReader(channel: channel, isCaptured: false))
    }
}

/// How a stream ended.
public struct StreamResponse: Sendable {
    /// As the last attempt had it.
    public var request: TransferRequest?
    /// A success where both sides were closed; otherwise why the connection could not be made, broke or was cancelled.
    public var result: Result<Void, TransferError>
    /// Of all attempts.
    public var metrics: TransferMetrics

    /// Of a failure.
    public var error: TransferError? {
        if case .failure(let error) = result { error } else { nil }
    }
}

extension SessionManager {
    /// A raw connection to a host and port.
    public func stream(host: String, port: Int) -> StreamRequest {
        stream(TransferRequest(url: StreamAddress.url(host: host, port: port)))
    }

    /// A raw connection.
    ///
    /// - Parameter request: its URL, before and after the adapter, is `tcp://host:port`; see ``StreamTask`` for what
    ///   else of it counts.
    public func stream(_ request: some RequestConvertible) -> StreamRequest {
        StreamRequest(Result { () throws(TransferError) in try request.asRequest() }, manager: self)
    }
}
