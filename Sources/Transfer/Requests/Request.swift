import HTTPTypes
import Synchronization

/// What a caller holds: one wish, over all the attempts that it takes.
///
/// Returned at once, whatever is wrong with it; failures arrive through its handlers. With the manager's
/// `startRequestsImmediately` it starts as soon as somebody wants to hear of its end (a `response…` handler, an
/// awaited value, a body that is read), so that validators attached before that are never too late; without it, or
/// where nobody wants to hear, ``resume()`` starts it.
///
/// `@unchecked`, since a class with subclasses cannot be checked: every stored property here and in the subclasses is
/// a `let` of a `Sendable` type.
public class Request: @unchecked Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    public let delegate: TaskDelegate
    /// One value for all attempts; as a sequence, what it becomes.
    public let progress: TransferProgress
    /// What was asked for, before adapters; `nil` where it could not be made.
    public let original: TransferRequest?

    let session: Session
    private let adapters: AdapterHolder
    private let startsByItself: Bool
    private let intention: Result<TransferRequest, TransferError>
    /// Makes the task of an attempt, from the request as it was adapted.
    private let makeTask: @Sendable (TransferRequest) -> any SessionTask
    private let validators = Mutex<[Validator]>([])

    init(
        _ intention: Result<TransferRequest, TransferError>, delegate: TaskDelegate, progress: TransferProgress,
        manager: SessionManager, makeTask: @escaping @Sendable (TransferRequest) -> any SessionTask
    ) {
        self.intention = intention
        original = try? intention.get()
        self.makeTask = makeTask
        self.delegate = delegate
        self.progress = progress
        // Not the manager itself: releasing it is how everything is cancelled.
        session = manager.session
        adapters = manager.adapters
        startsByItself = manager.startRequestsImmediately
    }

    public var task: (any SessionTask)? { delegate.task }
    /// As the last attempt sent it: adapted, and after redirects.
    public var request: TransferRequest? { task?.currentRequest ?? original }
    public var response: ResponseHead? { task?.response }
    public var retryCount: Int { delegate.retryCount }
    /// Of all attempts.
    public var metrics: TransferMetrics { delegate.metrics }
    public var isCancelled: Bool { delegate.isCancelled }

    // MARK: Description

    /// `METHOD URL (status)`, without secrets.
    public var description: String {
        guard let request else { return "(a request that could not be made)" }
        return "\(request.method.rawValue) \(URLRedaction.redact(request.url))" + (response.map { " (\($0.status))" } ?? "")
    }

    /// As a command of curl's, without secrets: what to try by hand.
    public var debugDescription: String { request.map { CurlCommand.text(for: $0) } ?? description }

    // MARK: Its life

    /// Gives `credential` to whoever challenges this request.
    @discardableResult
    public func authenticate(with credential: Credential) -> Self {
        delegate.credential = credential
        return self
    }

    /// Gives a name and password to whoever challenges this request.
    @discardableResult
    public func authenticate(user: String, password: String) -> Self {
        authenticate(with: Credential(user: user, password: password))
    }

    /// Starts the request, or lets it go on after ``suspend()``.
    @discardableResult
    public func resume() -> Self {
        if delegate.start() {
            session.events.tell(.didResume(self))
            startAttempt()
        }
        return self
    }

    /// Stands still until ``resume()``; what has come is kept, and no timeout runs.
    @discardableResult
    public func suspend() -> Self {
        delegate.suspend()
        session.events.tell(.didSuspend(self))
        return self
    }

    /// Ends the request; its handlers hear ``TransferError/Code/cancelled``.
    @discardableResult
    public func cancel() -> Self {
        session.events.tell(.didCancel(self))
        if delegate.cancel() { complete(.cancelled) }
        return self
    }

    /// Somebody wants to hear of the end.
    func startIfImmediate() {
        if startsByItself { resume() }
    }

    private func startAttempt() {
        switch intention {
        case .failure(let error): complete(error)
        case .success(let request):
            guard let adapter = adapters.adapter, !delegate.isCancelled else {
                return start(request)
            }
            Task.immediate {
                do throws(TransferError) {
                    start(try await adapter.adapt(request))
                } catch {
                    attemptDidEnd(error, retrier: session.delegate.retrier)
                }
            }
        }
    }

    private func start(_ request: TransferRequest) {
        let task = makeTask(request)
        guard delegate.begin(task) else { return complete(.cancelled) }
        // Known before it can complete: however quick, it finds its request.
        session.delegate[task] = self
        if !delegate.isSuspended { task.resume() }
        // Cancelled, or stopped, between `begin` and `resume`.
        if delegate.isCancelled { task.cancel() }
        if delegate.isSuspended { task.suspend() }
    }

    // MARK: The end of an attempt

    /// - Parameter error: of the transport, which validators do not get to mask.
    func attemptDidEnd(_ error: TransferError?, retrier: (any RequestRetrier)?) {
        guard let error = error ?? judge() else { return complete(nil) }
        guard let retrier, error.code != .cancelled, error.code != .invalidated, canTryAgain else {
            return complete(error)
        }
        // It holds the request, and with it the handlers, until there is an answer.
        let delay = Task {
            switch await retrier.retry(self, after: error) {
            case .doNotRetry: complete(error)
            case .fail(let other): complete(other)
            case .retry(let milliseconds):
                delegate.setWaiting()
                if milliseconds > 0 { try? await Task.sleep(for: .milliseconds(milliseconds)) }
                delegate.countRetry()
                session.events.tell(.willRetry(self, error))
                startAttempt()
            }
        }
        delegate.wait(in: delay)
    }

    func retryByHand() -> Bool { original != nil && delegate.endWaiting() }

    /// Whether another attempt could do what the first should.
    var canTryAgain: Bool { !delegate.isCancelled && original != nil }

    /// What the validators say of an attempt that brought an answer.
    func judge() -> TransferError? { nil }

    func complete(_ error: TransferError?) {
        progress.finish()
        session.events.tell(.didComplete(self, error))
        delegate.complete(error: error)
    }

    // MARK: Validators

    func add(_ validator: Validator) { validators.withLock { $0.append(validator) } }

    /// Judges the head of an answer before its body counts.
    func validate(_ head: ResponseHead, isEmpty: Bool, data: [UInt8]? = nil) -> TransferError? {
        guard let request else { return nil }
        for validator in validators.withLock({ $0 }) {
            if let error = validator.judge(Validator.Answer(request: request, head: head, isEmpty: isEmpty, data: data))
            {
                return error
            }
        }
        return nil
    }
}
