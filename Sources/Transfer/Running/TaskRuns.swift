import Curl

/// The creator of the runs of tasks. The scheme of a task's URL selects the kind of the run.
struct TaskRuns: RunFactory {
    func makeRun(for task: DownloadTask, on core: LoopCore) -> any LoopRun {
        Self.remoteRun(for: task, on: core) { RemoteDownloadRun(task: task, file: $0, core: core) }
            ?? DownloadRun(task: task, core: core)
    }

    func makeRun(for task: DataTask, on core: LoopCore) -> any LoopRun {
        let run = Self.remoteRun(for: task, on: core) { (file: RemoteFile) throws(TransferError) in
            // An upload task sends the file; any other task reads it.
            if task is UploadTask { return RemoteUploadRun(task: task, file: file, core: core) }
            guard case .none = task.body else {
                throw TransferError(.invalidRequest, "\(file.scheme.rawValue) takes a body by an upload alone")
            }
            return RemoteDataRun(task: task, file: file, core: core)
        }
        return run ?? DataRun(task: task, core: core)
    }

    func makeRun(for task: StreamTask, on core: LoopCore) -> any LoopRun { StreamRun(task: task, core: core) }

    /// Creates the run of a task whose URL names a file server.
    ///
    /// - Returns: `nil` if the URL's scheme is not that of a file server.
    private static func remoteRun(
        for task: any LoopTask, on core: LoopCore, _ make: (RemoteFile) throws(TransferError) -> any LoopRun
    ) -> (any LoopRun)? {
        guard RemoteScheme(of: task.originalRequest.url) != nil else { return nil }
        do throws(TransferError) {
            return try make(try RemoteFile(task.originalRequest.url))
        } catch {
            return FailedRun(task, error, core: core)
        }
    }
}
