import Curl

// The runs of tasks, by the scheme of the URL.

extension DownloadTask {
    func makeRun(on core: LoopCore) throws(TransferError) -> any LoopRun {
        guard let file = try remoteFile() else { return DownloadRun(task: self, core: core) }
        return RemoteDownloadRun(task: self, file: file, core: core)
    }
}

extension DataTask {
    func makeRun(on core: LoopCore) throws(TransferError) -> any LoopRun {
        guard let file = try remoteFile() else { return DataRun(task: self, core: core) }
        // An upload task sends the file; any other task reads it.
        if self is UploadTask { return RemoteUploadRun(task: self, file: file, core: core) }
        guard case .none = body else {
            throw TransferError(.invalidRequest, "\(file.scheme.rawValue) sends a body only in an upload")
        }
        return RemoteDataRun(task: self, file: file, core: core)
    }
}

extension StreamTask {
    func makeRun(on core: LoopCore) throws(TransferError) -> any LoopRun {
        if session.configuration.transportStub != nil { throw .notStubbed }
        return StreamRun(task: self, core: core)
    }
}

extension LoopTask {
    /// Returns the file that the task's URL names on a file server.
    ///
    /// - Returns: `nil` if the URL's scheme is not that of a file server.
    fileprivate func remoteFile() throws(TransferError) -> RemoteFile? {
        // libcurl does not even parse the URL of a protocol that it lacks.
        if WebSocketScheme(of: originalRequest.url) != nil { throw WebSocketScheme.error }
        guard RemoteScheme(of: originalRequest.url) != nil else { return nil }
        if session.configuration.transportStub != nil { throw .notStubbed }
        return try RemoteFile(originalRequest.url)
    }
}

extension TransferError {
    fileprivate static let notStubbed = TransferError(
        .protocolNotAllowed, "the session's transport stub stands in for HTTP servers only")
}
