import Curl

/// A run of a task that cannot start.
final class FailedRun: LoopRun {
    private let task: any LoopTask
    private let error: TransferError
    private unowned let core: LoopCore

    init(_ task: any LoopTask, _ error: TransferError, core: LoopCore) {
        self.task = task
        self.error = error
        self.core = core
    }

    func start() { end(error) }
    func cancel() { end(.cancelled) }
    func suspend() {}
    func goOn() {}

    private func end(_ error: TransferError) {
        core.release(task.identifier)
        if let download = task as? DownloadTask {
            return task.session.fail(download, error, part: nil, version: ResourceVersion())
        }
        task.session.networkEnded()
        task.session.complete(task, error)
    }
}

extension RemoteScheme {
    /// Creates the run of a task whose URL names a file server.
    ///
    /// - Returns: `nil` if the URL's scheme is not that of a file server.
    static func makeRun(for task: DownloadTask, on core: LoopCore) -> (any LoopRun)? {
        run(for: task, on: core) { RemoteDownloadRun(task: task, file: $0, core: core) }
    }

    /// Creates the run of a task whose URL names a file server. An upload task sends the file; any other task reads it.
    ///
    /// - Returns: `nil` if the URL's scheme is not that of a file server.
    static func makeRun(for task: DataTask, on core: LoopCore) -> (any LoopRun)? {
        run(for: task, on: core) { (file: RemoteFile) throws(TransferError) in
            if task is UploadTask { return RemoteUploadRun(task: task, file: file, core: core) }
            guard case .none = task.body else {
                throw TransferError(.invalidRequest, "\(file.scheme.rawValue) takes a body by an upload alone")
            }
            return RemoteDataRun(task: task, file: file, core: core)
        }
    }

    private static func run(
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
