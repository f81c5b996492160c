public import FoundationEssentials

/// A request whose response body is kept in memory or read as it is received.
///
/// `@unchecked` for the reason that ``Request`` gives.
public class DataRequest: Request, @unchecked Sendable {
    let dataDelegate: DataTaskDelegate
    /// Returns the body to send.
    let makeBody: @Sendable () -> RequestBody

    init(
        _ intention: Result<TransferRequest, TransferError>, body: @escaping @Sendable () -> RequestBody,
        delegate: DataTaskDelegate, manager: SessionManager
    ) {
        dataDelegate = delegate
        makeBody = body
        super.init(intention, delegate: delegate, progress: delegate.progress, manager: manager) {
            [session = manager.session] request in
            let (sink, body, progress) = (delegate.sink, body(), delegate.progress)
            guard let upload = delegate as? UploadTaskDelegate else {
                return session.dataTask(with: request, body: body, sink: sink, progress: progress)
            }
            return session.uploadTask(
                with: request, body: body, sink: sink, progress: upload.uploadProgress, responseProgress: progress)
        }
    }

    /// Passes the body to `closure` piece by piece, on an event loop's thread, which the closure must not block. The
    /// body is then not kept, and an attempt that fails after the first piece is not retried.
    @discardableResult
    public func stream(_ closure: @escaping @Sendable ([UInt8]) -> Void) -> Self {
        dataDelegate.dataStream = closure
        return self
    }

    override var canTryAgain: Bool { super.canTryAgain && !dataDelegate.hasHandedOut }

    override func evaluate() -> TransferError? {
        guard let response else { return nil }
        // A body that was passed on was validated before its first byte.
        if let task = task as? DataTask, task.hasHandedOut, !task.isCollected { return nil }
        let data = dataDelegate.data
        return validate(response, isEmpty: data?.isEmpty ?? !dataDelegate.hasHandedOut, data: data)
    }

    // MARK: Handlers

    /// Runs `handler` when the request is complete.
    @discardableResult
    public func response(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (DataResponse<Data?>) -> Void
    ) -> Self {
        delegate.queue.add(on: queue ?? callbackQueue) { [self] in handler(report()) }
        startIfImmediate()
        return self
    }

    /// Runs `handler` when the request is complete and its body is converted to a value.
    @discardableResult
    public func response<Serializer: ResponseSerializer>(
        queue: HandlerQueue? = nil, using serializer: Serializer,
        _ handler: @escaping @Sendable (DataResponse<Serializer.Value>) -> Void
    ) -> Self {
        delegate.queue.add(on: queue ?? callbackQueue) { [self] in handler(report(serializer)) }
        startIfImmediate()
        return self
    }

    /// Runs `handler` when the request is complete, with the body as bytes; see ``DataSerializer``.
    @discardableResult
    public func responseData(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (DataResponse<Data>) -> Void
    ) -> Self {
        response(queue: queue, using: DataSerializer(), handler)
    }

    /// Runs `handler` when the request is complete, with the body as text; see ``StringSerializer``.
    ///
    /// - Parameters:
    ///   - encoding: the encoding of the text; `nil` for that of the response.
    ///   - queue: the context of the handler.
    ///   - handler: takes the result.
    @discardableResult
    public func responseString(
        encoding: String.Encoding? = nil, queue: HandlerQueue? = nil,
        _ handler: @escaping @Sendable (DataResponse<String>) -> Void
    ) -> Self {
        response(queue: queue, using: StringSerializer(encoding: encoding), handler)
    }

    /// Runs `handler` when the request is complete, with the body as JSON of any shape; see ``JSONSerializer``.
    @discardableResult
    public func responseJSON(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (DataResponse<JSONValue>) -> Void
    ) -> Self {
        response(queue: queue, using: JSONSerializer(), handler)
    }

    /// Runs `handler` when the request is complete, with a value decoded from its body; see ``DecodableSerializer``.
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - queue: the context of the handler.
    ///   - decoder: decodes the body, by default from JSON.
    ///   - handler: takes the result.
    @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: HandlerQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        _ handler: @escaping @Sendable (DataResponse<Value>) -> Void
    ) -> Self {
        response(queue: queue, using: DecodableSerializer<Value>(decoder: decoder), handler)
    }

    // MARK: Awaiting

    /// The result of the request, once it is complete. Cancelling the Swift task that waits cancels the request.
    public var outcome: DataResponse<Data?> {
        get async {
            await completion()
            return report()
        }
    }

    /// Returns the result of the request, with its body converted to a value.
    public func serialized<Serializer: ResponseSerializer>(
        using serializer: Serializer
    ) async -> DataResponse<Serializer.Value> {
        await completion()
        return report(serializer)
    }

    /// The body, once the request is complete.
    ///
    /// - Throws: the reason why there is none.
    public var value: Data {
        get async throws(TransferError) {
            await completion()
            return try report().result.get() ?? Data()
        }
    }

    /// The body as text; see ``StringSerializer``.
    public var string: String {
        get async throws(TransferError) { try await serialized(using: StringSerializer()).result.get() }
    }

    /// Returns the body as text of the given encoding, whatever the response says; see ``StringSerializer``.
    public func string(encoding: String.Encoding) async throws(TransferError) -> String {
        try await serialized(using: StringSerializer(encoding: encoding)).result.get()
    }

    /// Returns the body decoded as a type of the caller's; see ``DecodableSerializer``.
    ///
    ///     let decoder = JSONDecoder()
    ///     decoder.keyDecodingStrategy = .convertFromSnakeCase
    ///     let item = try await request.decoded(as: Item.self, decoder: decoder)
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - decoder: decodes the body, by default from JSON.
    public func decoded<Value: Decodable & Sendable>(
        as type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) async throws(TransferError) -> Value {
        try await serialized(using: DecodableSerializer<Value>(decoder: decoder)).result.get()
    }

    /// The body as it is received, readable once: `for try await bytes in request.body`. A slow reader makes the server
    /// wait. Releasing the sequence early, or cancelling the Swift task, cancels the request. A second reader of a
    /// complete body gets ``TransferError/Code/invalidRequest``.
    ///
    /// If the request was started before this property was used, the part of the body kept in memory comes in one
    /// piece.
    public var body: BodySequence {
        let channel = dataDelegate.openChannel { [weak self] in
            guard let self else { return false }
            cancel()
            return true
        }
        return BodySequence(request: self, channel: channel)
    }

    private func report() -> DataResponse<Data?> {
        let data = dataDelegate.data
        let result: Result<Data?, TransferError> = delegate.error.map { .failure($0) } ?? .success(data)
        return DataResponse(request: request, head: response, data: data, result: result, metrics: metrics)
    }

    private func report<Serializer: ResponseSerializer>(_ serializer: Serializer) -> DataResponse<Serializer.Value> {
        let plain = report()
        let result = plain.result.flatMap { serializer.result($0 ?? Data(), of: plain.head) }
        let response = DataResponse(
            request: plain.request, head: plain.head, data: plain.data, result: result, metrics: plain.metrics)
        session.monitors?.notify { [self] in $0.request(self, didSerialize: response) }
        return response
    }
}

extension Request {
    /// Waits until the request is complete. Cancelling the Swift task cancels the request.
    func completion() async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                delegate.queue.add(on: .inline) { continuation.resume() }
                startIfImmediate()
            }
        } onCancel: {
            cancel()
        }
    }
}

/// A response body as it is received.
public struct BodySequence: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = TransferError

    let request: DataRequest
    let channel: BodyChannel

    public func makeAsyncIterator() -> Iterator {
        request.startIfImmediate()
        return Iterator(channel: channel)
    }

    /// The iterator over the body. Releasing it cancels the request, unless the body has ended.
    public final class Iterator: AsyncIteratorProtocol {
        private let channel: BodyChannel
        private var isFirst = true

        init(channel: BodyChannel) {
            self.channel = channel
        }

        deinit { channel.release() }

        public func next() async throws(TransferError) -> [UInt8]? { try await next(isolation: nil) }

        public func next(isolation actor: isolated (any Actor)?) async throws(TransferError) -> [UInt8]? {
            defer { isFirst = false }
            return try await channel.next(isFirst: isFirst)
        }
    }
}

extension DataRequest {
    /// The body, once the request is complete; the same as ``value``.
    ///
    /// - Throws: the reason why there is none.
    public var data: Data {
        get async throws(TransferError) { try await value }
    }

    /// Passes the body to `closure` piece by piece as `Data`, on an event loop's thread, which the closure must not
    /// block. The body is then not kept, and an attempt that fails after the first piece is not retried.
    @_disfavoredOverload
    @discardableResult
    public func stream(_ closure: @escaping @Sendable (Data) -> Void) -> Self {
        stream { (bytes: [UInt8]) in closure(Data(bytes)) }
    }
}

extension SessionManager {
    /// Returns a request to send data as the body of `request`; a URL alone is sent to with `POST`.
    public func upload(
        _ data: Data, with request: some RequestConvertible, progress: TransferProgress = TransferProgress()
    ) -> UploadRequest {
        upload(.data(Array(data)), with: request, progress: progress)
    }
}

extension StreamRequest {
    /// Writes data as a ``StreamTask`` does. The time-out runs only during an attempt.
    @_disfavoredOverload
    public func write(_ data: Data, timeout: Int64? = nil) async throws(TransferError) {
        try await write(Array(data), timeout: timeout)
    }
}
