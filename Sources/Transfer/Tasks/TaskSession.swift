import Curl

/// The session of a task, as seen by the task and by its run.
protocol TaskSession: AnyObject, Sendable {
    var resources: SessionResources { get }
    /// The receiver of the callbacks of tasks.
    var callbacks: any TaskCallbacks { get }
    var runs: any RunFactory { get }
    /// The trust policies by host.
    var serverTrustPolicyManager: ServerTrustPolicyManager { get }

    // MARK: Life cycle

    /// Starts a task: at once, or when its host's connection limit allows it.
    func start(_ task: any LoopTask)
    /// Cancels a task that was started.
    func cancel(_ task: any LoopTask)
    /// Runs `work` on the loop's thread if the task is still running.
    func perform(_ task: any LoopTask, _ work: @escaping @Sendable (any LoopRun) -> Void)
    /// Completes a task that never ran. Its resume data remain unchanged.
    func complete(unstarted task: any LoopTask, _ error: TransferError)
    /// Completes a task and notifies its delegate. A second call has no effect.
    func complete(_ task: any LoopTask, _ error: TransferError?)
    /// Replaces a task by its successor.
    ///
    /// - Returns: `false` if the task could no longer be replaced.
    func replace(_ task: any LoopTask, by successor: any LoopTask) -> Bool

    // MARK: Connections

    /// Releases a task's place at its host before the task completes, since it no longer uses the network. A task that
    /// waits for the place starts.
    func releaseConnection(of task: any LoopTask)

    /// Reserves an additional connection for a download.
    ///
    /// - Returns: Whether the host's limit allows it. If so, ``giveBackConnection(at:)`` must be called later.
    ///   Otherwise ``DownloadTaskRun/mayBorrow(at:)`` is called as soon as there is room.
    func borrowConnection(at origin: String, for task: DownloadTask) -> Bool
    /// Registers a download for a connection that others may release. ``DownloadTaskRun/mayBorrow(at:)`` is then
    /// called.
    func expectConnection(at origin: String, for task: DownloadTask)
    func giveBackConnection(at origin: String)
    /// Notifies the download that has waited longest for a connection, if there is room for one now.
    func offerConnection(at origin: String)
    /// Returns whether a task waits for a borrowed connection at `origin`.
    func wantsConnection(at origin: String) -> Bool
}

extension TaskSession {
    var configuration: SessionConfiguration { _read { yield resources.configuration } }
    var resolver: Resolver { resources.resolver }

    /// Returns the event loop of a task; `nil` before the task runs.
    func loop(for task: any LoopTask) -> TransferLoop? { task.core.loop?.loop }
}

/// The creator of the runs of tasks.
protocol RunFactory: Sendable {
    func makeRun(for task: DataTask, on loop: LoopCore) -> any LoopRun
    func makeRun(for task: DownloadTask, on loop: LoopCore) -> any DownloadTaskRun
    func makeRun(for task: StreamTask, on loop: LoopCore) -> any StreamTaskRun
}
