import Synchronization

/// The keeper of a download's checkpoints: it makes one at a time, and the request is complete only when the last one
/// has been kept.
final class CheckpointKeeper: Sendable {
    private struct State {
        var isRunning = false
        /// Whether another checkpoint came due while one is being made.
        var isDue = false
        var isOver = false
        /// Whether a checkpoint has been kept.
        var hasKept = false
        var retry: Task<Void, Never>?
        var whenDone: (@Sendable () -> Void)?
    }

    /// Milliseconds after which a checkpoint that failed is made again.
    private static let retryDelay: Int64 = 1_000

    private let keep: @Sendable (ResumeData) async throws -> Void
    /// Whether the request fails if its first checkpoint cannot be kept.
    private let isRequired: Bool
    private let state = Mutex(State())

    init(isRequired: Bool = false, _ keep: @escaping @Sendable (ResumeData) async throws -> Void) {
        self.isRequired = isRequired
        self.keep = keep
    }

    /// Makes a checkpoint, at once or after the one that is being made.
    func checkpointIsDue(of request: DownloadRequest) {
        let starts = state.withLock { state in
            guard !state.isOver else { return false }
            state.isDue = true
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if starts { Task { await makeCheckpoints(of: request) } }
    }

    /// Ends the keeping.
    ///
    /// - Parameter whenDone: called when the last checkpoint has been kept.
    func finish(whenDone: @escaping @Sendable () -> Void) {
        let (isRunning, retry) = state.withLock { state in
            state.isOver = true
            if state.isRunning { state.whenDone = whenDone }
            return (state.isRunning, state.retry)
        }
        retry?.cancel()
        if !isRunning { whenDone() }
    }

    /// Keeps checkpoints again, after the end of an earlier attempt.
    func restart() {
        state.withLock { state in
            state.isOver = false
            state.isDue = false
        }
    }

    private func makeCheckpoints(of request: DownloadRequest) async {
        while begin() {
            do {
                guard let resumeData = try await request.checkpoint() else { continue }
                do {
                    try await keep(resumeData)
                } catch let error as TransferError where isRequired && state.withLock({ !$0.hasKept }) {
                    // A place that has never taken a checkpoint is wrong, such as a directory that does not exist.
                    // The resume data cannot be kept, so a part that did not exist before would never be found.
                    let delegate = request.downloadDelegate
                    if delegate.resumedAtOffset == nil { delegate.setLeavesNothing() }
                    request.cancel(because: error)
                    continue
                }
                state.withLock { $0.hasKept = true }
                request.confirm(resumeData)
            } catch {
                // The download may wait for the checkpoint (`checkpointLimit`), so that none would ever come due.
                await pause()
            }
        }
    }

    private func begin() -> Bool {
        let (goesOn, whenDone) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            if state.isDue, !state.isOver {
                state.isDue = false
                return (true, nil)
            }
            state.isRunning = false
            defer { state.whenDone = nil }
            return (false, state.whenDone)
        }
        whenDone?()
        return goesOn
    }

    private func pause() async {
        let retry = Task { await CancellableSleep.sleep(Self.retryDelay) }
        let isOver = state.withLock { state in
            state.retry = retry
            state.isDue = true
            return state.isOver
        }
        if isOver { retry.cancel() }
        await retry.value
        state.withLock { $0.retry = nil }
    }
}

extension DownloadRequest {
    /// Makes a checkpoint each time the session's `checkpointInterval` has been written: syncs the bytes to the disk
    /// and passes resume data for them to `keep`, which stores them. Checkpoints do not overlap, and the handlers of
    /// the request run only after the last call of `keep` has ended.
    ///
    /// - Parameter keep: stores the resume data crash-safely. If it throws, it is called again after a second with
    ///   current resume data; the earlier ones stay valid.
    @discardableResult
    public func onCheckpoint(_ keep: @escaping @Sendable (ResumeData) async throws -> Void) -> Self {
        let keeper = CheckpointKeeper(keep)
        return makeCheckpoints(keeper) { keeper.finish(whenDone: $0) }
    }

    /// Keeps the request's resume data in a file: at each checkpoint, and at the end if the download failed or was
    /// cancelled. After a successful download the file is removed. All this is done before the handlers of the request
    /// run.
    ///
    /// The first checkpoint is made as soon as bytes arrive. If the file cannot be written then, the download fails,
    /// unless it is already complete. Later checkpoints that fail are made again.
    @discardableResult
    public func keepResumeData(in file: ResumeDataFile) -> Self {
        let keeper = CheckpointKeeper(isRequired: true) { try file.store($0) }
        downloadDelegate.wantsFirstCheckpoint = true
        return makeCheckpoints(keeper) {
            // Not retained, since the work is part of it; `whenDone` retains it while the work runs.
            [unowned downloadDelegate] (whenDone: @escaping @Sendable () -> Void) in
            keeper.finish {
                // The disk may be slow, and this may be a loop's thread.
                HandlerQueue.shared.run {
                    downloadDelegate.storeFinal(in: file)
                    whenDone()
                }
            }
        }
    }

    /// Lets `keeper` make the checkpoints until the request is complete.
    ///
    /// - Parameter finish: ends the keeping; the handlers of the request wait for it.
    private func makeCheckpoints(_ keeper: CheckpointKeeper, finish: @escaping PrecedingWork.Work) -> Self {
        guard delegate.precedingWork.add(restart: { keeper.restart() }, finish) else { return self }
        return onCheckpointDue { [weak self] in
            if let self { keeper.checkpointIsDue(of: self) }
        }
    }
}

extension DownloadTaskDelegate {
    fileprivate func storeFinal(in file: ResumeDataFile) {
        // The request has its own result, so an error is not reported. Resume data of an earlier checkpoint are still
        // valid, and those of a finished download describe a part file that is gone.
        if let resumeData { try? file.store(resumeData) } else { try? file.remove() }
    }
}

extension SessionManager {
    /// Downloads a file, and keeps its resume data in `resumeDataFile`, so that the same call in a later process
    /// resumes it. See ``DownloadRequest/keepResumeData(in:)``.
    ///
    /// - Parameters:
    ///   - request: the request to send. Resume data of another URL are not used, and their part file is removed.
    ///   - destination: the place of the file.
    ///   - resumeDataFile: the file with the resume data, which need not exist.
    public func download(
        _ request: some RequestConvertible, to destination: DownloadDestination, resumeDataFile: ResumeDataFile
    ) -> DownloadRequest {
        let kept = try? resumeDataFile.load()
        // By bytes: texts that are equal for Swift may be different URLs.
        let (old, new) = (kept?.request?.url, (try? request.asRequest())?.url)
        guard let kept, kept.isSelfSufficient, old.map({ Array($0.utf8) }) == new.map({ Array($0.utf8) }) else {
            _ = try? kept?.discard()
            return download(request, to: destination).keepResumeData(in: resumeDataFile)
        }
        return download(resumingWith: kept, request: request, to: destination).keepResumeData(in: resumeDataFile)
    }

    /// Downloads a file to a path, and keeps its resume data in `resumeDataFile`; see
    /// ``download(_:to:resumeDataFile:)``.
    public func download(
        _ request: some RequestConvertible, to path: String, options: DownloadDestination.Options = [],
        resumeDataFile: ResumeDataFile
    ) -> DownloadRequest {
        download(request, to: .path(path, options: options), resumeDataFile: resumeDataFile)
    }

    /// Downloads a file with a known digest to a path, and keeps its resume data in `resumeDataFile`; see
    /// ``download(_:to:resumeDataFile:)``.
    ///
    ///     let resumeDataFile = ResumeDataFile(path: "/var/lib/app/image.resume")
    ///     let image = try await manager.download(
    ///         url, to: "/srv/image.iso", digest: .sha256("9f86…"), resumeDataFile: resumeDataFile
    ///     ).value
    ///
    /// - Parameters:
    ///   - request: the request to send. Resume data of another URL are not used, and their part file is removed.
    ///   - path: the file's final path, absolute or relative to the process's directory.
    ///   - options: permitted changes to the file system.
    ///   - digest: the required digest; see ``DownloadDestination/digest``.
    ///   - resumeDataFile: the file with the resume data, which need not exist.
    public func download(
        _ request: some RequestConvertible, to path: String, options: DownloadDestination.Options = [],
        digest: FileDigest, resumeDataFile: ResumeDataFile
    ) -> DownloadRequest {
        download(
            request, to: .path(path, options: options).verified(by: digest), resumeDataFile: resumeDataFile)
    }
}
