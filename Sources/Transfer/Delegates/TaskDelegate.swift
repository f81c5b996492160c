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
        var isCancelled = false
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
        state.withLock { state in
            state.isCancelled = true
            return state.task
        }
    }

    func complete(error: TransferError?) {
        // One after the other and outside the lock: an operation may add another.
        var next = state.withLock { state -> [@Sendable () -> Void] in
            state.error = state.error ?? error
            defer { state.operations = [] }
            return state.operations
        }
        while !next.isEmpty {
            for operation in next { operation() }
            next = state.withLock { state in
                defer { state.operations = [] }
                state.isComplete = state.operations.isEmpty
                return state.operations
            }
        }
        state.withLock { $0.isComplete = true }
    }
}

/// Receives what concerns one download.
public final class DownloadTaskDelegate: TaskDelegate, @unchecked Sendable {
    private struct State {
        var resumeData: ResumeData?
        var file: PublishedFile?
        var wantsCheckpoint: (@Sendable () -> Void)?
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
public final class UploadTaskDelegate: TaskDelegate, @unchecked Sendable {
    override init() { super.init() }
}
