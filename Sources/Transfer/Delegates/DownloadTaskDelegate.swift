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
    }

    private let state: Mutex<State>
    /// One value for all attempts.
    public let progress: TransferProgress

    init(resumeData: ResumeData?, progress: TransferProgress) {
        state = Mutex(State(resumeData: resumeData))
        self.progress = progress
        super.init()
    }

    /// What the next attempt, or another request, can begin with.
    public var resumeData: ResumeData? { state.withLock { $0.resumeData } }
    /// Bytes that the last attempt found there and did not fetch again.
    public var resumedAtOffset: Int64? { state.withLock { $0.resumedAtOffset } }
    /// The finished file, in its final place.
    public var file: PublishedFile? { state.withLock { $0.file } }
    /// Where the bytes lie until they are whole.
    public var temporaryPath: String? {
        (task as? DownloadTask).map { $0.target.directory.path(of: $0.target.partName) }
    }

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

    /// Nothing of what attempts brought is to stay.
    func forgetBytes() {
        let hasBytes = state.withLock { state in
            defer { state.resumeData = nil }
            return state.resumeData != nil
        }
        if hasBytes, let task = task as? DownloadTask { try? task.target.directory.remove(task.target.partName) }
    }

    func didResume(at offset: Int64) { state.withLock { $0.resumedAtOffset = offset } }

    override func finish(_ task: any SessionTask, _ error: TransferError?) {
        state.withLock { state in
            state.file = (task as? DownloadTask)?.file
            state.resumeData = error?.resumeData
        }
        super.finish(task, error)
    }
}
