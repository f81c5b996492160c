import HTTPTypes
import Synchronization

/// What a caller holds: one wish, over all the attempts that it takes.
///
/// Returned at once, whatever is wrong with it; failures arrive through its handlers. With the manager's
/// `startRequestsImmediately` it starts as soon as somebody wants to hear of it (a `response…` handler, an awaited
/// value, a body or progress that is read), so that validators attached before that are never too late; without it, or
/// where nobody wants to hear, ``resume()`` starts it.
///
/// `@unchecked`, since a class with subclasses cannot be checked: every stored property here and in the subclasses is
/// a `let` of a `Sendable` type.
public class Request: @unchecked Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// Receives what concerns this request alone.
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
    private let own = Mutex(Own())
    /// What retriers keep of it, so that they need not remember requests.
    let retryRecord = Mutex(RetryRecord())

    private struct Own {
        var adapter: (any RequestAdapter)?
        var retrier: (any RequestRetrier)?
        /// Set while the request was there, in place of what it was made with.
        var rate: Int64??
    }

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
        progress.goOn()
        if startsByItself { progress.whenRead { [weak self] in self?.startIfImmediate() } }
    }

    /// Of the current attempt, or the last one; `nil` before the first.
    public var task: (any SessionTask)? { delegate.task }
    /// As the last attempt sent it: adapted, and after redirects.
    public var request: TransferRequest? { task?.currentRequest ?? original }
    /// The head of the last attempt's answer.
    public var response: ResponseHead? { task?.response }
    /// Attempts after the first.
    public var retryCount: Int { delegate.retryCount }
    /// Of all attempts.
    public var metrics: TransferMetrics { delegate.metrics }
    /// Whether somebody called ``cancel()``, which is not to say that it did not complete before.
    public var isCancelled: Bool { delegate.isCancelled }

    // MARK: Description

    /// `METHOD URL (status)`, without secrets.
    public var description: String {
        guard let request else { return "(a request that could not be made)" }
        return "\(request.method.rawValue) \(URLRedaction.redact(request.url))"
            + (response.map { " (\($0.status))" } ?? "")
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

    /// Has `adapter` change this request alone, before each of its attempts and before the manager's adapter does.
    @discardableResult
    public func adapt(with adapter: any RequestAdapter) -> Self {
        own.withLock { $0.adapter = adapter }
        return self
    }

    /// Has `retrier` asked about this request alone, before the manager's retrier is.
    @discardableResult
    public func retry(with retrier: any RequestRetrier) -> Self {
        own.withLock { $0.retrier = retrier }
        return self
    }

    /// Holds it to so many bytes a second from now on, over all its attempts, within what the session allows; a change
    /// counts within half a second.
    ///
    /// - Parameter rate: `nil`: any number.
    @discardableResult
    public func limit(to rate: Int64?) -> Self {
        own.withLock { $0.rate = .some(rate) }
        task?.maximumRate = rate
        return self
    }

    /// Starts the request, or lets it go on after ``suspend()``.
    @discardableResult
    public func resume() -> Self {
        switch delegate.start() {
        case .begin:
            session.enter(self)
            // Cancelled meanwhile, it has left already.
            if delegate.isComplete, session.leave(self) { return settle() }
            session.events.tell(.didResume(self))
            startAttempt()
        case .goOn: session.events.tell(.didResume(self))
        case .nothing: break
        }
        return self
    }

    private func settle() -> Self {
        session.settle()
        session.endIfFinished()
        return self
    }

    /// Stands still until ``resume()``; what has come is kept, and no timeout runs.
    @discardableResult
    public func suspend() -> Self {
        if delegate.suspend() { session.events.tell(.didSuspend(self)) }
        return self
    }

    /// Ends the request; its handlers hear ``TransferError/Code/cancelled``.
    @discardableResult
    public func cancel() -> Self {
        end { $0.cancel() }
        return self
    }

    /// - Parameter task: ends the attempt under way, where there is one.
    func end(_ task: (any SessionTask) -> Void) {
        let action = delegate.cancel {
            session.events.tell(.didCancel(self))
            task($0)
        }
        guard case .complete = action else { return }
        session.events.tell(.didCancel(self))
        complete(.cancelled)
    }

    /// Somebody wants to hear of the end; a request that stands still goes on doing so.
    func startIfImmediate() {
        if startsByItself, !delegate.isStarted { resume() }
    }

    /// Whatever has to be there before the first attempt; said at once before the later ones.
    func prepare(
        _ request: TransferRequest, then: @escaping @Sendable (Result<TransferRequest, TransferError>) -> Void
    ) {
        then(.success(request))
    }

    private func startAttempt() {
        switch intention {
        case .failure(let error): complete(error)
        case .success(let request):
            prepare(request) { [self] prepared in
                switch prepared {
                case .failure(let error): complete(error)
                case .success(let request): adaptAndStart(request)
                }
            }
        }
    }

    private func adaptAndStart(_ request: TransferRequest) {
        let adapter = AdapterChain.of(own.withLock { $0.adapter }, adapters.adapter)
        guard let adapter, !delegate.isCancelled else { return start(request) }
        let waits = delegate.waits
        let adapting = Task.immediate {
            let adapted: TransferRequest
            do throws(TransferError) {
                adapted = try await adapter.adapt(request)
            } catch {
                return attemptDidEnd(error, retrier: session.delegate.retrier)
            }
            start(adapted)
        }
        delegate.wait(in: adapting, after: waits)
    }

    private func start(_ request: TransferRequest) {
        let task = makeTask(request)
        // Before anyone else can get at it: however soon it is cancelled or done, it finds its request.
        session.delegate[task] = self
        guard delegate.begin(task) else {
            session.delegate[task] = nil
            return complete(.cancelled)
        }
        delegate.keepInStep()
        if let rate = own.withLock({ $0.rate }) { task.maximumRate = rate }
    }

    // MARK: The end of an attempt

    /// - Parameter error: of the transport, which validators do not get to mask.
    func attemptDidEnd(_ error: TransferError?, retrier: (any RequestRetrier)?) {
        delegate.endAttempt()
        let retrier = RetrierChain.of(own.withLock { $0.retrier }, retrier)
        let failure = error ?? judge()
        retrier?.attemptDidEnd(of: self, with: failure)
        guard let failure else { return complete(nil) }
        guard let retrier, failure.code != .cancelled, failure.code != .invalidated, canTryAgain else {
            return fail(failure)
        }
        // It holds the request, and with it the handlers, until there is an answer.
        delegate.wait {
            Task { await tryAgain(after: failure, asking: retrier) }
        }
    }

    private func tryAgain(after error: TransferError, asking retrier: any RequestRetrier) async {
        switch await retrier.retry(self, after: error) {
        case .doNotRetry: fail(error)
        case .fail(let other): fail(other)
        case .retry(let milliseconds):
            delegate.setWaiting()
            if milliseconds > 0 { await CancellableSleep.sleep(milliseconds) }
            guard session.isOpen else { return fail(error) }
            guard delegate.countRetry() else { return }
            session.events.tell(.willRetry(self, error))
            startAttempt()
        }
    }

    func retryByHand() -> Bool { original != nil && delegate.endWaiting() }

    /// Whether another attempt could do what the first should.
    var canTryAgain: Bool { !delegate.isCancelled && original != nil && session.isOpen }

    /// Somebody will be asked whether there is another attempt, should this one fail.
    var mayBeTriedAgain: Bool {
        canTryAgain && (own.withLock { $0.retrier } ?? session.delegate.retrier) != nil
    }

    /// What the validators say of an attempt that brought an answer.
    func judge() -> TransferError? { nil }

    /// No attempt follows. What was found wanting after it was cancelled matters to nobody.
    private func fail(_ error: TransferError) {
        let isCancelled = delegate.isCancelled || (session.isCancelling && error.code != .invalidated)
        guard isCancelled else { return complete(error) }
        var cancelled = TransferError.cancelled
        // A data request that became a download has them from here alone.
        cancelled.resumeData = error.resumeData
        complete(cancelled)
    }

    func complete(_ error: TransferError?) {
        delegate.complete(error: error) {
            cleanUp()
            progress.finish()
            session.events.tell(.didComplete(self, error))
            guard session.leave(self) else { return nil }
            return { [session] in session.settle() }
        }
        session.endIfFinished()
    }

    /// The request is complete: what it made for itself goes.
    func cleanUp() {}

    // MARK: Validators

    func add(_ validator: Validator) { validators.withLock { $0.append(validator) } }

    /// Judges the head of an answer before its body counts.
    func validate(_ head: ResponseHead, isEmpty: Bool, data: [UInt8]? = nil) -> TransferError? {
        guard let request else { return nil }
        for validator in validators.withLock({ $0 }) {
            if let error = validator.judge(Validator.Answer(request: request, head: head, isEmpty: isEmpty, data: data))
            {
                return error.named(byServerOf: request.url)
            }
        }
        return nil
    }
}
