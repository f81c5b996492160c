import Synchronization

/// Receives what concerns one request, over all its attempts.
///
/// Operations that were added run once the request is complete, in the order they were added; one that comes later
/// runs at once.
///
/// `@unchecked`, since a class with subclasses cannot be checked: every stored property here and in the subclasses is
/// a `let` of a `Sendable` type.
public class TaskDelegate: @unchecked Sendable {
    private struct State {
        var task: (any SessionTask)?
        var operations: [@Sendable () -> Void] = []
        var isComplete = false
        var error: TransferError?
        var retryCount = 0
        var isStarted = false
        var isCancelled = false
        /// Waits for the next attempt.
        var delay: Task<Void, Never>?
    }

    private let state = Mutex(State())

    init() {}

    /// The task of the current attempt.
    public var task: (any SessionTask)? { state.withLock { $0.task } }
    /// Why the request failed; the first reason is kept.
    public var error: TransferError? { state.withLock { $0.error } }
    /// Attempts after the first.
    public var retryCount: Int { state.withLock { $0.retryCount } }
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Runs `operation` when the request is complete.
    func whenComplete(_ operation: @escaping @Sendable () -> Void) {
        let isComplete = state.withLock { state in
            if !state.isComplete { state.operations.append(operation) }
            return state.isComplete
        }
        if isComplete { operation() }
    }

    /// - Returns: whether this was the first to start the request.
    func claimStart() -> Bool {
        state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
    }

    /// A new attempt begins.
    ///
    /// - Returns: whether the request still wants one.
    func begin(_ task: any SessionTask, isRetry: Bool) -> Bool {
        state.withLock { state in
            guard !state.isCancelled else { return false }
            state.task = task
            if isRetry { state.retryCount += 1 }
            return true
        }
    }

    /// - Returns: the task to cancel, where one is under way.
    func cancel() -> (any SessionTask)? {
        let (task, delay) = state.withLock { state in
            state.isCancelled = true
            return (state.task, state.delay)
        }
        delay?.cancel()
        return task
    }

    /// The next attempt waits in `delay`; cancelling the request cuts that short.
    func wait(in delay: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.delay = delay
            return state.isCancelled
        }
        if isCancelled { delay.cancel() }
    }

    func complete(error: TransferError?) {
        state.withLock { $0.error = $0.error ?? error }
        // One after the other and outside the lock, since an operation may add another; complete only when none is
        // left, so that one added meanwhile is not lost.
        while true {
            let next = state.withLock { state -> [@Sendable () -> Void] in
                state.isComplete = state.operations.isEmpty
                defer { state.operations = [] }
                return state.operations
            }
            if next.isEmpty { return }
            for operation in next { operation() }
        }
    }
}

/// Receives what concerns one download.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
public final class DownloadTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var resumeData: ResumeData?
        var file: PublishedFile?
        var wantsCheckpoint: (@Sendable () -> Void)?
        var received: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>

    init(resumeData: ResumeData?) {
        state = Mutex(State(resumeData: resumeData))
        super.init()
    }

    /// What the next attempt can begin with.
    public var resumeData: ResumeData? { state.withLock { $0.resumeData } }
    /// The finished file.
    public var file: PublishedFile? { state.withLock { $0.file } }

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

    func note(_ outcome: DownloadOutcome) {
        state.withLock { state in
            switch outcome {
            case .finished(let file):
                state.file = file
                state.resumeData = nil
            case .failed(_, let resumeData): state.resumeData = resumeData
            }
        }
    }
}

/// Receives what concerns one upload.
///
/// `@unchecked` for the reason that ``TaskDelegate`` gives.
public final class UploadTaskDelegate: TaskDelegate, @unchecked Sendable {
    override init() { super.init() }
}
