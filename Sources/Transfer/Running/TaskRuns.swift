import Curl

/// The creator of the runs of tasks. The scheme of a task's URL selects the kind of the run.
struct TaskRuns: RunFactory {
    func makeRun(for task: DownloadTask, on core: LoopCore) -> any DownloadTaskRun {
        do throws(TransferError) {
            guard let file = try Self.remoteFile(of: task) else { return DownloadRun(task: task, core: core) }
            return RemoteDownloadRun(task: task, file: file, core: core)
        } catch {
            return FailedRun(task, error, core: core)
        }
    }

    func makeRun(for task: DataTask, on core: LoopCore) -> any LoopRun {
        do throws(TransferError) {
            guard let file = try Self.remoteFile(of: task) else { return DataRun(task: task, core: core) }
            // An upload task sends the file; any other task reads it.
            if task is UploadTask { return RemoteUploadRun(task: task, file: file, core: core) }
            guard case .none = task.body else {
                throw TransferError(.invalidRequest, "\(file.scheme.rawValue) sends a body only in an upload")
            }
            return RemoteDataRun(task: task, file: file, core: core)
        } catch {
            return FailedRun(task, error, core: core)
        }
    }

    func makeRun(for task: StreamTask, on core: LoopCore) -> any StreamTaskRun {
        if task.session.configuration.transportStub != nil { return FailedRun(task, .notStubbed, core: core) }
        return StreamRun(task: task, core: core)
    }

    /// Returns the file that a task's URL names on a file server.
    ///
    /// - Returns: `nil` if the URL's scheme is not that of a file server.
    private static func remoteFile(of task: any LoopTask) throws(TransferError) -> RemoteFile? {
        // libcurl does not even parse the URL of a protocol that it lacks.
        if WebSocketScheme(of: task.originalRequest.url) != nil { throw WebSocketScheme.error }
        guard RemoteScheme(of: task.originalRequest.url) != nil else { return nil }
        if task.session.configuration.transportStub != nil { throw .notStubbed }
        return try RemoteFile(task.originalRequest.url)
    }
}

extension TransferError {
    fileprivate static let notStubbed = TransferError(
        .protocolNotAllowed, "the session's transport stub stands in for HTTP servers only")
}
