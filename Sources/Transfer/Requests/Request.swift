import HTTPTypes

/// What a caller holds: one wish, over all the attempts that it takes.
///
/// Returned at once, whatever is wrong with it; failures arrive through its handlers.
///
/// `@unchecked`, since a class with subclasses cannot be checked: every stored property here and in the subclasses is
/// a `let` of a `Sendable` type.
public class Request: @unchecked Sendable, CustomStringConvertible {
    public let original: TransferRequest
    public let delegate: TaskDelegate
    /// One value for all attempts.
    public let progress: TransferProgress
    private let session: Session
    private let adapters: AdapterHolder
    /// Makes the task of an attempt, from the request as it was adapted.
    private let makeTask: @Sendable (TransferRequest) -> any SessionTask

    init(
        _ original: TransferRequest, delegate: TaskDelegate, progress: TransferProgress, manager: SessionManager,
        makeTask: @escaping @Sendable (TransferRequest) -> any SessionTask
    ) {
        self.makeTask = makeTask
        self.original = original
        self.delegate = delegate
        self.progress = progress
        // Not the manager itself: releasing it is how everything is cancelled.
        session = manager.session
        adapters = manager.adapters
    }

    public var task: (any SessionTask)? { delegate.task }
    public var response: ResponseHead? { task?.response }
    public var retryCount: Int { delegate.retryCount }

    /// `METHOD URL (status)`
    public var description: String {
        "\(original.method.rawValue) \(original.url)" + (response.map { " (\($0.status))" } ?? "")
    }

    /// Starts the request; once, after its handlers are attached.
    public func resume() {
        guard delegate.claimStart() else { return }
        startAttempt(isRetry: false)
    }

    /// Ends the request; its handlers hear ``TransferError/Code/cancelled``.
    public func cancel() {
        guard let task = delegate.cancel() else { return delegate.complete(error: .cancelled) }
        task.cancel()
    }

    func startAttempt(isRetry: Bool) {
        guard let adapter = adapters.adapter, !delegate.isCancelled else { return start(original, isRetry: isRetry) }
        Task.immediate {
            do throws(TransferError) {
                start(try await adapter.adapt(original), isRetry: isRetry)
            } catch {
                delegate.complete(error: error)
            }
        }
    }

    private func start(_ request: TransferRequest, isRetry: Bool) {
        let task = makeTask(request)
        guard delegate.begin(task, isRetry: isRetry) else { return delegate.complete(error: .cancelled) }
        // Known before it can complete: however quick, it finds its request.
        session.delegate[task] = self
        task.resume()
        // Cancelled between `begin` and `resume`.
        if delegate.isCancelled { task.cancel() }
    }
}
