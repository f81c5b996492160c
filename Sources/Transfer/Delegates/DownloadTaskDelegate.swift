import Synchronization

/// Receives what concerns one download.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
public final class DownloadTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var resumeData: ResumeData?
        var resumedAtOffset: Int64?
        var file: PublishedFile?
        var wantsCheckpoint: (@Sendable () -> Void)?
        var received: (@Sendable () -> Void)?
        var leavesNothing = false
        var mismatches = Mismatches()
    }

    private let state: Mutex<State>
    /// One value for all attempts.
    public let progress: TransferProgress

    private let placement: DownloadPlacement

    init(placement: DownloadPlacement, resumeData: ResumeData?, progress: TransferProgress) {
        self.placement = placement
        state = Mutex(State(resumeData: resumeData, mismatches: resumeData?.mismatches ?? Mismatches()))
        self.progress = progress
        super.init()
    }

    /// What the next attempt, or another request, can begin with.
    public var resumeData: ResumeData? { state.withLock { $0.resumeData } }
    /// Bytes that the last attempt found there and did not fetch again.
    public var resumedAtOffset: Int64? { state.withLock { $0.resumedAtOffset } }
    /// The finished file, in its final place.
    public var file: PublishedFile? { state.withLock { $0.file } }
    /// Where the file goes, as the request was told; `nil` where it has a ``DownloadTarget``.
    public var destination: DownloadDestination? {
        if case .decided(let destination) = placement { destination } else { nil }
    }
    /// Where the bytes lie until they are whole; `nil` while that is yet to be decided.
    public var temporaryPath: String? {
        (task as? DownloadTask)?.target.map { $0.directory.path(of: $0.partName) }
    }
    /// Where the finished file is, or what its destination came to; `nil` before that.
    public var finalPath: String? { file?.path ?? (task as? DownloadTask)?.target?.decision?.path }

    /// Attempts whose bytes were not those that their digest wants.
    var mismatches: Mismatches { state.withLock { $0.mismatches } }

    /// Called on a loop's thread when as many bytes as the session's `checkpointInterval` have been written since it
    /// was last called: whoever keeps resume data may want to renew them.
    public var wantsCheckpoint: (@Sendable () -> Void)? {
        get { state.withLock { $0.wantsCheckpoint } }
        set { state.withLock { $0.wantsCheckpoint = newValue } }
    }

    /// Called on a loop's thread when every byte is here: what follows uses the disk alone.
    public var received: (@Sendable () -> Void)? {
        get { state.withLock { $0.received } }
        set { state.withLock { $0.received = newValue } }
    }

    func didResume(at offset: Int64) { state.withLock { $0.resumedAtOffset = offset } }

    /// Nothing is to stay on disk.
    func setLeavesNothing() { state.withLock { $0.leavesNothing = true } }

    /// Where the next attempt's file goes: where an earlier one decided.
    var nextPlacement: DownloadPlacement {
        guard let last = task as? DownloadTask else { return placement }
        return last.target?.decision.map { .decided(by: $0.destination) } ?? last.placement
    }

    /// The request fails with `error`: what it says of resume data is what there is on disk.
    func settle(_ error: TransferError) -> TransferError {
        let (resumeData, leavesNothing) = state.withLock { state in
            defer { if state.leavesNothing { state.resumeData = nil } }
            return (state.resumeData, state.leavesNothing)
        }
        var error = error
        error.resumeData = error.resumeData ?? resumeData
        guard leavesNothing else { return error }
        _ = try? error.resumeData?.discard()
        if case .fixed(let target) = placement { _ = try? target.directory.removePart(target.partName) }
        error.resumeData = nil
        return error
    }

    override func finish(_ task: any SessionTask, _ error: TransferError?) {
        state.withLock { state in
            state.file = (task as? DownloadTask)?.file
            state.resumeData = error?.resumeData
            if error?.code == .checksumMismatch {
                let task = task as? DownloadTask
                state.mismatches.add(of: task?.soleSource, stated: task?.stated)
            }
        }
        super.finish(task, error)
    }
}
