import Curl

/// The execution of a task on its event loop's thread.
protocol LoopRun: AnyObject, SendableMetatype {
    func start()
    /// Cancels the run on behalf of the user or the session.
    func cancel()
    /// Suspends the run, possibly before it has started.
    func suspend()
    /// Resumes the run after ``suspend()``.
    func resume()
}

/// The execution of a download task.
protocol DownloadTaskRun: LoopRun {
    /// Records that a checkpoint covering `count` bytes has been written.
    func confirm(_ count: Int64, of generation: String)
    /// Writes the bytes that are gathered in memory for a large write to the part file.
    ///
    /// - Returns: the writer that has blocks still to write; `nil` if there are none.
    func flushGathered() -> BlockWriter?
    /// Returns the connections and the written bytes.
    func snapshot() -> DownloadSnapshot
    /// Notifies the run that the connection limit of `origin` has room.
    func mayBorrow(at origin: String)
    /// Notifies the run that the disk has written queued blocks, or that a write failed.
    func diskDidMove(_ error: TransferError?)
}

/// A weak reference to the run of a task, for closures that other threads hold and call.
///
/// `@unchecked`: the run is reached on its loop's thread only, as with ``LoopReference``.
struct RunReference<Run: LoopRun>: @unchecked Sendable {
    private weak var run: Run?
    private let task: any LoopTask
    private let loop: TransferLoop

    init(_ run: Run, of task: any LoopTask, on core: LoopCore) {
        self.run = run
        loop = core.loop
        self.task = task
    }

    /// Runs `work` on the loop's thread soon, unless the run has ended by then.
    func perform(_ work: @escaping @Sendable (Run) -> Void) {
        loop.post { core in
            if let run, task.run(on: core) === run { work(run) }
        }
    }
}
