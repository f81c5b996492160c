public import FoundationEssentials

extension StreamTask {
    /// Writes data.
    ///
    /// - Parameters:
    ///   - data: the bytes to write.
    ///   - timeout: the time limit in milliseconds, in place of the session's `stallTimeout`.
    /// - Throws: ``TransferError``, as for an array of bytes.
    @_disfavoredOverload
    public func write(_ data: Data, timeout: Int64? = nil) async throws(TransferError) {
        try await write(Array(data), timeout: timeout)
    }
}

extension StreamWriter {
    /// Writes data as a ``StreamTask`` does.
    @_disfavoredOverload
    public func write(_ data: Data, timeout: Int64? = nil) async throws(TransferError) {
        try await write(Array(data), timeout: timeout)
    }
}
