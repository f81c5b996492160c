import Curl

/// The removal of what the last attempt at an upload left on a file server. It runs after the request has completed,
/// and nothing waits for it.
///
/// Used on the loop's thread only. Best effort: on a server that cannot be reached, the file remains.
final class RemainsRemoval: RemoteRun, RemoteExchangeClient {
    private(set) lazy var exchange = RemoteExchange(file, task: task, client: self, core: core)
    private let task: DataTask
    private let file: RemoteFile
    private let remains: UploadRemains
    private unowned let core: LoopCore

    init(_ remains: UploadRemains, task: DataTask, file: RemoteFile, core: LoopCore) {
        self.remains = remains
        self.task = task
        self.file = file
        self.core = core
    }

    func start() {
        let removal = file.path.temporary(token: remains.token).removal(mayFail: true)
        exchange.begin(RemoteStep(work: .command, commandsBefore: [removal], isCleanUp: true))
    }

    func didEnd(_ ending: RemoteEnding) { task.endRun(on: core) }
}

extension Session {
    /// Starts the removal of an upload's remains.
    ///
    /// - Parameter task: the task of the last attempt, which has completed.
    func remove(_ remains: UploadRemains, of task: any SessionTask) {
        guard let task = task as? DataTask, let file = try? RemoteFile(task.originalRequest.url) else { return }
        remains.isLeft = false
        loop(for: task)?.post { core in
            let removal = RemainsRemoval(remains, task: task, file: file, core: core)
            task.setRun(removal, on: core)
            removal.start()
        }
    }
}
