import Curl
import FoundationEssentials
import HTTPTypes
import Synchronization

/// A request over all its attempts; the object that a caller holds.
///
/// It is returned at once, even if it is invalid; failures arrive at its handlers. With the manager's
/// `startRequestsImmediately` it starts when its result is first needed (a `response…` handler, an awaited value, a
/// body or progress that is read), so that validators attached before that are always in time. Without it, or if its
/// result is never needed, ``resume()`` starts it.
///
/// `@unchecked`, since the compiler cannot check a class with subclasses: every stored property here and in the
/// subclasses is a `let` of a `Sendable` type.
public class Request: @unchecked Sendable, Identifiable, CustomStringConvertible, CustomDebugStringConvertible {
    /// The delegate of this request alone.
    public let delegate: TaskDelegate
    /// The progress of all attempts; as a sequence, its values over time.
    public let progress: TransferProgress
    /// The request before adapters; `nil` if it could not be created.
    public let original: TransferRequest?

    /// The number of the request, unique within the process.
    public let id: Int = Request.lastID.wrappingAdd(1, ordering: .relaxed).newValue

    let session: Session
    private let adapters: AdapterHolder
    private let startsByItself: Bool
    /// The context of handlers that name none.
    let callbackQueue: HandlerQueue
    private let intention: Result<TransferRequest, TransferError>
    /// Creates the task of an attempt from the adapted request.
    private let makeTask: @Sendable (TransferRequest) -> any SessionTask
    private let validators = Mutex<[Validator]>([])
    private let own = Mutex(Own())
    private let deadline = RequestDeadline()
    private static let lastID = Atomic<Int>(0)
    /// The counts that retriers keep for this request, so that they need not remember requests.
    let retryRecord = Mutex(RetryRecord())

    private struct Own {
        var adapter: (any RequestAdapter)?
        var retrier: (any RequestRetrier)?
        /// The rate limit set by ``limit(to:)``, in place of the one in the request; `nil` if it was never set.
        var rate: Int64??
        /// Whether the request is cancelled because the manager was released.
        var isReleased = false
        /// The failure because of which the request is cancelled.
        var failure: TransferError?
    }

    init(
        _ intention: Result<TransferRequest, TransferError>, delegate: TaskDelegate, progress: TransferProgress,
        manager: SessionManager, makeTask: @escaping @Sendable (TransferRequest) -> any SessionTask
    ) {
        self.intention = intention.flatMap(\.checked)
        original = try? self.intention.get()
        self.makeTask = makeTask
        self.delegate = delegate
        self.progress = progress
        // The request must not retain the manager, since releasing the manager cancels everything.
        session = manager.session
        adapters = manager.adapters
        startsByItself = manager.startRequestsImmediately
        callbackQueue = manager.callbackQueue
        starts(when: progress)
        session.requestDidCreate(self)
    }

    /// Makes the request start when `progress` is first read, if the manager starts requests immediately.
    func starts(when progress: TransferProgress) {
        progress.resume()
        if startsByItself { progress.whenRead { [weak self] in self?.startIfImmediate() } }
    }

    /// The progress that counts the bytes which the request is made for: the sent ones of an upload, otherwise the
    /// received ones.
    package var mainProgress: TransferProgress { progress }

    /// The task of the current attempt, or of the last one; `nil` before the first.
    public var task: (any SessionTask)? { delegate.task }
    /// The request as the last attempt sent it: adapted, and after redirects.
    public var request: TransferRequest? { task?.currentRequest ?? original }
    /// The head of the last attempt's response.
    public var response: ResponseHead? { task?.response }
    /// The number of attempts after the first.
    public var retryCount: Int { delegate.retryCount }
    /// The metrics of all attempts.
    public var metrics: TransferMetrics { delegate.metrics }
    /// The attempts that further attempts followed, the oldest first: the last 32 of them.
    public var failedAttempts: [FailedAttempt] { delegate.failedAttempts }
    /// Whether ``cancel()`` was called. The request may have completed before that.
    public var isCancelled: Bool {
        delegate.isCancelled && !deadline.isExpired && own.withLock { $0.failure == nil }
    }

    // MARK: Description

    /// The text `METHOD URL (status)`, without secrets.
    public var description: String {
        guard let request else { return "(a request that could not be made)" }
        return "\(request.method.rawValue) \(URLRedaction.redact(request.url))"
            + (response.map { " (\($0.status))" } ?? "")
    }

    /// The request as a curl command for a test by hand: ``cURLDescription(includingSecrets:)`` without secrets and
    /// without the body.
    public var debugDescription: String { request.map { curlCommand(for: $0) } ?? description }

    // MARK: Life cycle

    /// Sets the credential for any challenge of this request.
    @discardableResult
    public func authenticate(with credential: Credential) -> Self {
        delegate.credential = credential
        return self
    }

    /// Sets a name and password for any challenge of this request.
    @discardableResult
    public func authenticate(user: String, password: String) -> Self {
        authenticate(with: Credential(user: user, password: password))
    }

    /// Sets an adapter for this request only. It is called before each attempt, before the manager's adapter.
    @discardableResult
    public func adapt(with adapter: any RequestAdapter) -> Self {
        own.withLock { $0.adapter = adapter }
        return self
    }

    /// Sets a retrier for this request only. It is consulted before the manager's retrier.
    @discardableResult
    public func retry(with retrier: any RequestRetrier) -> Self {
        own.withLock { $0.retrier = retrier }
        return self
    }

    /// Limits the request's rate, over all its attempts and within what the session allows. A change takes effect
    /// within half a second.
    ///
    /// - Parameter rate: the limit in bytes per second; `nil` removes it.
    @discardableResult
    public func limit(to rate: Int64?) -> Self {
        own.withLock { $0.rate = .some(rate) }
        task?.maximumRate = rate
        return self
    }

    /// Starts the request, or resumes it after ``suspend()``.
    @discardableResult
    public func resume() -> Self {
        switch delegate.start() {
        case .begin:
            session.enter(self)
            // A cancellation before `enter` has already completed the request, so it leaves the session here.
            if delegate.isComplete, session.remove(self) { return reportEnd() }
            session.requestDidResume(self)
            startAttempt()
        case .resume: session.requestDidResume(self)
        case .nothing: break
        }
        return self
    }

    private func reportEnd() -> Self {
        session.callbacksDidEnd()
        session.endIfFinished()
        return self
    }

    /// Suspends the request until ``resume()``. Received bytes are kept, and no time-out runs.
    @discardableResult
    public func suspend() -> Self {
        if delegate.suspend() { session.requestDidSuspend(self) }
        return self
    }

    /// Cancels the request; its handlers receive ``TransferError/Code/cancelled``.
    @discardableResult
    public func cancel() -> Self {
        end { $0.cancel() }
        return self
    }

    /// Cancels the request, since the manager is released.
    func release() {
        let isReleased = !delegate.isCancelled
        own.withLock { $0.isReleased = isReleased }
        cancel()
    }

    /// Ends the request with a failure that is not the transfer's own. The attempt ends as with ``cancel()``, so that
    /// its bytes are kept.
    func cancel(because failure: TransferError) {
        own.withLock { $0.failure = failure }
        if case .complete = delegate.cancel() { complete(.cancelled) }
    }

    /// Cancels the request.
    ///
    /// - Parameter task: ends the attempt under way, if there is one.
    func end(_ task: (any SessionTask) -> Void) {
        let action = delegate.cancel {
            session.requestDidCancel(self)
            task($0)
        }
        guard case .complete = action else { return }
        session.requestDidCancel(self)
        complete(.cancelled)
    }

    /// Ends the request because its time is over. The attempt ends as with ``cancel()``, so that its bytes are kept.
    private func expire() {
        if case .complete = delegate.cancel() { complete(.cancelled) }
    }

    /// Starts the request if the manager starts requests immediately and it is not started. A suspended request stays
    /// so.
    func startIfImmediate() {
        if startsByItself, !delegate.isStarted { resume() }
    }

    /// Prepares what has to exist before the first attempt, then calls `then`. Later attempts call `then` at once.
    func prepare(
        _ request: TransferRequest, then: @escaping @Sendable (Result<TransferRequest, TransferError>) -> Void
    ) {
        then(.success(request))
    }

    private func startAttempt() {
        startDeadline()
        let generation = delegate.generation
        // The request may have been completed just before.
        if delegate.isComplete { _ = deadline.stop(with: nil) }
        switch intention {
        case .failure(let error): complete(error)
        case .success(let request):
            prepare(request) { [self] prepared in
                guard delegate.generation == generation else { return }
                switch prepared {
                case .failure(let error): complete(error)
                case .success(let request): adaptAndStart(request, in: generation)
                }
            }
        }
    }

    private func adaptAndStart(_ request: TransferRequest, in generation: Int) {
        let adapter = AdapterChain.of(own.withLock { $0.adapter }, adapters.adapter)
        guard let adapter, !delegate.isCancelled else { return start(request, in: generation) }
        let waits = delegate.waits
        let adapting = Task.immediate {
            let adapted: TransferRequest
            do throws(TransferError) {
                adapted = try await adapter.adapt(request)
            } catch {
                guard delegate.generation == generation else { return }
                session.monitors?.notify { [self] in $0.request(self, didFailToAdapt: request, with: error) }
                return attemptDidEnd(error, retrier: session.delegate.retrier)
            }
            guard delegate.generation == generation else { return }
            session.monitors?.notify { [self] in $0.request(self, didAdapt: request, to: adapted) }
            start(adapted, in: generation)
        }
        delegate.wait(in: adapting, after: waits)
    }

    private func start(_ request: TransferRequest, in generation: Int) {
        if let last = delegate.task { session.delegate[last] = nil }
        let task = makeTask(request)
        // Registered first, so that a task that is cancelled or completes at once finds its request.
        session.delegate[task] = self
        guard delegate.begin(task, in: generation) else {
            session.delegate[task] = nil
            if delegate.generation == generation { complete(.cancelled) }
            return
        }
        session.monitors?.notify { [self] in $0.request(self, didCreate: task) }
        // Before the task starts: its first bytes obey the limit. Under the lock: an older limit replaces no newer one.
        own.withLock { own in
            if let rate = own.rate { task.maximumRate = rate }
        }
        delegate.synchronizeTaskState()
    }

    // MARK: The end of an attempt

    /// Handles the end of an attempt.
    ///
    /// - Parameter error: the error of the transport; validators cannot mask it.
    func attemptDidEnd(_ error: TransferError?, retrier: (any RequestRetrier)?) {
        delegate.endAttempt()
        let retrier = RetrierChain.of(own.withLock { $0.retrier }, retrier)
        let failure = error ?? evaluate()
        session.monitors?.notify { [self] in $0.request(self, attemptDidEndWith: failure) }
        retrier?.attemptDidEnd(of: self, with: failure)
        guard let failure else { return complete(nil) }
        guard let retrier, failure.code != .cancelled, failure.code != .invalidated, canTryAgain else {
            return fail(failure)
        }
        let generation = delegate.generation
        // The Swift task retains the request, and with it the handlers, until the retrier has decided.
        delegate.wait {
            Task { await tryAgain(after: failure, asking: retrier, in: generation) }
        }
    }

    private func tryAgain(after error: TransferError, asking retrier: any RequestRetrier, in generation: Int) async {
        let ended = MonotonicTime.now().nanoseconds
        let decision = await retrier.retry(self, after: error)
        guard delegate.generation == generation else { return }
        switch decision {
        case .doNotRetry: fail(error)
        case .fail(let other): fail(other)
        case .retry(let milliseconds):
            delegate.setWaiting()
            if milliseconds > 0 { await CancellableSleep.sleep(milliseconds) }
            guard session.isOpen else { return fail(error) }
            let failed = FailedAttempt(
                error: error, metrics: task?.metrics ?? TransferMetrics(),
                transferredBytes: mainProgress.transferredBytes, ended: ended)
            guard delegate.countRetry(in: generation, after: failed) else { return }
            session.request(self, willRetryAfter: error)
            startAttempt()
        }
    }

    /// Starts another attempt: the one that the request waits for, or a further one after the end.
    func retryByHand() -> Bool {
        guard original != nil else { return false }
        return delegate.endWaiting() || startOver()
    }

    private func startDeadline() {
        guard let limit = original?.totalTimeout else { return }
        deadline.start(limit) { [weak self] in self?.expire() }
    }

    /// Starts another attempt of a complete request.
    private func startOver() -> Bool {
        guard session.isOpen, delegate.reopen() else { return false }
        deadline.reset()
        own.withLock { $0.failure = nil }
        startsOver()
        session.enter(self)
        // As in `resume()`.
        if delegate.isComplete, session.remove(self) {
            _ = reportEnd()
            return true
        }
        session.requestDidResume(self)
        startAttempt()
        return true
    }

    /// Called before a further attempt of a complete request.
    func startsOver() { starts(when: progress) }

    /// Starts another attempt at once: the one that the request waits for, or a further one after the end, as if a
    /// retrier had asked for it. Handlers that have run are not called again; those added from now on wait for the new
    /// end.
    ///
    /// - Returns: `false` if the request could not be created, is running or was never started, if its end is just
    ///   being announced, or if its session has ended.
    @discardableResult
    public func retry() -> Bool { retryByHand() }

    /// Whether another attempt could achieve what the first should have.
    var canTryAgain: Bool { !delegate.isCancelled && original != nil && session.isOpen }

    /// Whether a retrier will be consulted if this attempt fails.
    var mayBeTriedAgain: Bool {
        canTryAgain && (own.withLock { $0.retrier } ?? session.delegate.retrier) != nil
    }

    /// Returns the validators' error for an attempt that received a response; `nil` if they accept it.
    func evaluate() -> TransferError? { nil }

    /// Completes the request with a failure that no attempt follows. A cancelled request completes as cancelled,
    /// whatever error came after.
    private func fail(_ error: TransferError) {
        let isCancelled = delegate.isCancelled || (session.isCancelling && error.code != .invalidated)
        guard isCancelled else { return complete(error) }
        var cancelled = TransferError.cancelled
        // For a data request that became a download, this is the only source of resume data.
        cancelled.resumeData = error.resumeData
        complete(cancelled)
    }

    func complete(_ error: TransferError?) {
        let error = deadline.stop(with: error.map(explained))
        delegate.complete(error: error) {
            if let task {
                session.delegate.task(task, didCompleteWithError: error)
                session.delegate[task] = nil
            }
            cleanUp()
            progress.finish()
            session.request(self, didCompleteWith: error)
            guard session.remove(self) else { return nil }
            return { [session] in session.callbacksDidEnd() }
        }
        session.endIfFinished()
    }

    /// Returns the error with the reason of a cancellation that the request's owner did not order.
    private func explained(_ error: TransferError) -> TransferError {
        guard error.code == .cancelled else { return error }
        let (failure, isReleased) = own.withLock { ($0.failure, $0.isReleased) }
        var explained = failure ?? error
        explained.resumeData = error.resumeData
        if failure == nil, isReleased { explained.message = TransferError.released.message }
        return explained
    }

    /// Removes what the request created for itself, since it is complete.
    func cleanUp() {}

    // MARK: Validators

    func add(_ validator: Validator) { validators.withLock { $0.append(validator) } }

    /// Validates the head of a response before its body is accepted.
    func validate(_ head: ResponseHead, isEmpty: Bool, data: Data? = nil) -> TransferError? {
        let validators = validators.withLock { $0 }
        guard let request, !validators.isEmpty else { return nil }
        let answer = Validator.Answer(
            request: request, head: head, isEmpty: isEmpty, data: data,
            sentCredential: (task as? any LoopTask)?.core.sentCredential)
        var error: TransferError?
        for validator in validators {
            error = validator.evaluate(answer)?.named(byServerOf: request.url)
            if error != nil { break }
        }
        session.monitors?.notify { [self, error] in $0.request(self, didValidate: head, with: error) }
        return error
    }
}

extension TransferError {
    /// The error of a request whose manager is gone, with the advice that its author needs.
    static let released = TransferError(
        .invalidated, "the session was released: keep a reference to its manager while its requests run")
}
