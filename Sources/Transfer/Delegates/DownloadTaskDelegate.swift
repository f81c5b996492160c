import Synchronization

/// The delegate of one download.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
open class DownloadTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var placement = DownloadPlacement.decided(by: .temporary)
        var progress = TransferProgress()
        var resumeData: CopyOnWrite<ResumeData>?
        var resumedAtOffset: Int64?
        var file: PublishedFile?
        var wantsCheckpoint: (@Sendable () -> Void)?
        var wantsFirstCheckpoint = false
        var received: (@Sendable () -> Void)?
        var leavesNothing = false
        var mismatches = Mismatches()
        var doubt: String?
    }

    private let state = Mutex(State())

    /// Creates a delegate without a task.
    override public init() { super.init() }

    /// Sets the properties of the request.
    func prepare(placement: DownloadPlacement, resumeData: ResumeData?, progress: TransferProgress) {
        state.withLock { state in
            state.placement = placement
            state.progress = progress
            state.resumeData = resumeData.map { CopyOnWrite($0) }
            state.mismatches = resumeData?.mismatches ?? Mismatches()
        }
    }

    /// The progress of the download; shared by all attempts.
    public var progress: TransferProgress { state.withLock { $0.progress } }

    private var placement: DownloadPlacement { state.withLock { $0.placement } }

    /// Resume data for the next attempt or for another request.
    public var resumeData: ResumeData? { state.withLock { $0.resumeData?.value } }
    /// The number of bytes that the last attempt found on disk and did not fetch again.
    public var resumedAtOffset: Int64? { state.withLock { $0.resumedAtOffset } }
    /// The finished file under its final name.
    public var file: PublishedFile? { state.withLock { $0.file } }
    /// The destination given to the request; `nil` if the request has a ``DownloadTarget``.
    public var destination: DownloadDestination? {
        if case .decided(let destination) = placement { destination } else { nil }
    }
    /// The path of the part file, which holds the bytes until the download is complete; `nil` while it is undecided.
    public var temporaryPath: String? {
        (task as? DownloadTask)?.target.map { $0.directory.path(of: $0.partName) }
    }
    /// The path of the finished file or, before that, of the destination once it is decided; `nil` until then.
    public var finalPath: String? { file?.path ?? (task as? DownloadTask)?.target?.decision?.path }

    /// The last warning about the server's statements on the file; see ``SessionDelegate/downloadTask(_:didDoubt:)``.
    public var doubt: String? { state.withLock { $0.doubt } }

    /// A record of the attempts whose bytes did not match their digest.
    var mismatches: Mismatches { state.withLock { $0.mismatches } }

    /// The callback for a checkpoint: as many bytes as the session's `checkpointInterval` were written since the last
    /// call, and stored resume data may be renewed. Called on an event loop's thread.
    public var wantsCheckpoint: (@Sendable () -> Void)? {
        get { state.withLock { $0.wantsCheckpoint } }
        set { state.withLock { $0.wantsCheckpoint = newValue } }
    }

    /// Whether a checkpoint is due as soon as the part file exists, so that resume data name the part from then on.
    var wantsFirstCheckpoint: Bool {
        get { state.withLock { $0.wantsFirstCheckpoint } }
        set { state.withLock { $0.wantsFirstCheckpoint = newValue } }
    }

    /// The callback for the receipt of the last byte. What follows uses only the disk. Called on an event loop's
    /// thread.
    public var received: (@Sendable () -> Void)? {
        get { state.withLock { $0.received } }
        set { state.withLock { $0.received = newValue } }
    }

    func didDoubt(_ reason: String) { state.withLock { $0.doubt = reason } }

    func didResume(at offset: Int64) { state.withLock { $0.resumedAtOffset = offset } }

    /// Marks the download so that no partial data stay on disk when it fails.
    func setLeavesNothing() { state.withLock { $0.leavesNothing = true } }

    /// The placement of the next attempt's file: the destination that an earlier attempt decided on, if any.
    var nextPlacement: DownloadPlacement {
        guard let last = task as? DownloadTask else { return placement }
        if let decision = last.target?.decision { return .decided(by: decision.destination) }
        guard case .fixed(var target) = last.placement else { return last.placement }
        target.isNew = false
        return .fixed(target)
    }

    /// Returns `error` with the resume data that match what is on disk. Removes the part file if ``setLeavesNothing()``
    /// was called.
    func settle(_ error: TransferError) -> TransferError {
        let (resumeData, leavesNothing) = state.withLock { state in
            defer { if state.leavesNothing { state.resumeData = nil } }
            return (state.resumeData?.value, state.leavesNothing)
        }
        var error = error
        error.resumeData = error.resumeData ?? resumeData
        guard leavesNothing else { return error }
        _ = try? error.resumeData?.discard()
        if case .fixed(let target) = placement { _ = try? target.directory.removePart(target.partName) }
        error.resumeData = nil
        return error
    }

    override func reopen() -> Bool {
        guard super.reopen() else { return false }
        state.withLock { state in
            state.file = nil
            state.doubt = nil
            state.leavesNothing = false
        }
        return true
    }

    override func finish(_ task: any SessionTask, _ error: TransferError?) {
        state.withLock { state in
            state.file = (task as? DownloadTask)?.file
            state.resumeData = (error?.resumeData).map { CopyOnWrite($0) }
            if error?.code == .checksumMismatch {
                let task = task as? DownloadTask
                state.mismatches.add(of: task?.soleSource, stated: task?.stated)
            }
        }
        super.finish(task, error)
    }
}
