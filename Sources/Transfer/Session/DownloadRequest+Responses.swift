public import FoundationEssentials
import Glibc

/// The results of a download whose file is converted to a value. The file is read when the download is complete, and
/// stays where it is. Files larger than ``SessionConfiguration/maximumCollectedBytes`` are not read: the response then
/// fails with ``TransferError/Code/tooLarge``.
extension DownloadRequest {
    // MARK: Handlers

    /// Runs `handler` when the download is complete and its file is converted to a value.
    @discardableResult
    public func response<Serializer: ResponseSerializer>(
        queue: HandlerQueue? = nil, using serializer: Serializer,
        _ handler: @escaping @Sendable (DownloadResponse<Serializer.Value>) -> Void
    ) -> Self {
        response(queue: queue) { handler($0.converted(by: serializer, upTo: self.largestRead)) }
    }

    /// Runs `handler` when the download is complete, with the bytes of its file; see ``DataSerializer``.
    @discardableResult
    public func responseData(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (DownloadResponse<Data>) -> Void
    ) -> Self {
        response(queue: queue, using: DataSerializer(), handler)
    }

    /// Runs `handler` when the download is complete, with its file as text; see ``StringSerializer``.
    ///
    /// - Parameters:
    ///   - encoding: the encoding of the text; `nil` for that of the response.
    ///   - queue: the context of the handler; `nil` for the manager's.
    ///   - handler: takes the result.
    @discardableResult
    public func responseString(
        encoding: String.Encoding? = nil, queue: HandlerQueue? = nil,
        _ handler: @escaping @Sendable (DownloadResponse<String>) -> Void
    ) -> Self {
        response(queue: queue, using: StringSerializer(encoding: encoding), handler)
    }

    /// Runs `handler` when the download is complete, with its file as JSON of any shape; see ``JSONSerializer``.
    @discardableResult
    public func responseJSON(
        queue: HandlerQueue? = nil, _ handler: @escaping @Sendable (DownloadResponse<JSONValue>) -> Void
    ) -> Self {
        response(queue: queue, using: JSONSerializer(), handler)
    }

    /// Runs `handler` when the download is complete, with a value decoded from its file; see ``DecodableSerializer``.
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - queue: the context of the handler; `nil` for the manager's.
    ///   - decoder: decodes the file, by default from JSON.
    ///   - handler: takes the result.
    @discardableResult
    public func responseDecodable<Value: Decodable & Sendable>(
        of type: Value.Type = Value.self, queue: HandlerQueue? = nil, decoder: any DataDecoder = JSONDecoder(),
        _ handler: @escaping @Sendable (DownloadResponse<Value>) -> Void
    ) -> Self {
        response(queue: queue, using: DecodableSerializer<Value>(decoder: decoder), handler)
    }

    // MARK: Awaiting

    /// Returns the result of the download, with its file converted to a value.
    public func serialized<Serializer: ResponseSerializer>(
        using serializer: Serializer
    ) async -> DownloadResponse<Serializer.Value> {
        await withCheckedContinuation { continuation in
            // The file is read on a thread that may block.
            response(queue: .shared, using: serializer) { continuation.resume(returning: $0) }
        }
    }

    /// The bytes of the file, once the download is complete.
    public var data: Data {
        get async throws(TransferError) { try await serialized(using: DataSerializer()).result.get() }
    }

    /// The file as text; see ``StringSerializer``.
    public var string: String {
        get async throws(TransferError) { try await serialized(using: StringSerializer()).result.get() }
    }

    /// Returns the file decoded as a type of the caller's; see ``DecodableSerializer``.
    ///
    /// - Parameters:
    ///   - type: the type of the value.
    ///   - decoder: decodes the file, by default from JSON.
    public func decoded<Value: Decodable & Sendable>(
        as type: Value.Type = Value.self, decoder: any DataDecoder = JSONDecoder()
    ) async throws(TransferError) -> Value {
        try await serialized(using: DecodableSerializer<Value>(decoder: decoder)).result.get()
    }

    private var largestRead: Int64 { Int64(session.configuration.maximumCollectedBytes) }
}

extension DownloadResponse<PublishedFile> {
    /// Returns the response with the contents of its file converted to a value. Blocks.
    fileprivate func converted<Serializer: ResponseSerializer>(
        by serializer: Serializer, upTo limit: Int64
    ) -> DownloadResponse<Serializer.Value> {
        let value = result.flatMap { file in
            Result { () throws(TransferError) in try file.contents(upTo: limit) }
                .flatMap { serializer.result($0, of: head) }
        }
        return DownloadResponse<Serializer.Value>(
            request: request, head: head, file: file, result: value, resumeData: resumeData, metrics: metrics)
    }
}

extension PublishedFile {
    /// Reads the file.
    fileprivate func contents(upTo limit: Int64) throws(TransferError) -> Data {
        guard size <= limit else {
            throw TransferError(.tooLarge, "the file has \(size) bytes, more than the \(limit) that are kept in memory")
        }
        let raw = open(path, O_RDONLY | O_CLOEXEC)
        guard raw >= 0 else { throw .file(errno, doing: "read \(path)") }
        let descriptor = FileDescriptorOwner(raw)
        var data = Data(count: Int(size))
        let result = data.withUnsafeMutableBytes { space in
            Result { () throws(TransferError) in try descriptor.read(into: space, at: 0) }
        }
        // Somebody else may have shortened the file.
        data.removeLast(data.count - (try result.get()))
        return data
    }
}
