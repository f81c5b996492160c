public import FoundationEssentials

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
