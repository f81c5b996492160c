import Curl

/// A run of a task that cannot start.
final class FailedRun: DownloadTaskRun, StreamTaskRun {
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
    func resume() {}
    func confirm(_ count: Int64, of generation: String) {}
    func flushGathered() -> BlockWriter? { nil }
    func snapshot() -> DownloadSnapshot { DownloadSnapshot(connections: [], ranges: ByteRangeSet()) }
    func mayBorrow(at origin: String) {}
    func routesDidChange() {}

    private func end(_ error: TransferError) {
        task.endRun(on: core)
        if let download = task as? DownloadTask {
            return DownloadCompletion(download).fail(error, part: nil, version: ResourceVersion())
        }
        task.session.resources.networkEnded(task.core)
        task.session.complete(task, error)
    }
}
