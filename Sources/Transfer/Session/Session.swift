package import Curl
import Synchronization

/// A session that creates and runs tasks: the counterpart of Foundation's `URLSession`, on libcurl.
///
/// A session distributes its transfers over a few event loop threads. It also has resolver threads, threads for disk
/// syncs and a thread that publishes finished files.
public final class Session: Sendable {
    /// The delegate, which receives every callback of this session.
    public let delegate: SessionDelegate
    /// The events of the requests on this session.
    public let events = SessionEventStream()
    /// The monitors of the requests; `nil` without any.
    let monitors: EventMonitorGroup?
    let resources: SessionResources

    /// The configuration with which the session was created.
    public var configuration: SessionConfiguration { _read { yield resources.configuration } }
    /// The limiter of the download rate, which can be changed at any time.
    public var downloadLimiter: RateLimiter { resources.downloadLimiter }
    /// The limiter of the upload rate, which can be changed at any time.
    public var uploadLimiter: RateLimiter { resources.uploadLimiter }
    var resolver: Resolver { resources.resolver }

    private struct State {
        var tasks: [Int: any LoopTask] = [:]
        /// The requests that have started and are not complete. Between two attempts they have no task.
        var requests: [ObjectIdentifier: Request] = [:]
        /// The number of tasks that are not complete and of requests whose handlers have not run.
        var unsettled = 0
        var phase = Phase.open
        /// Whether the manager was released.
        var isReleased = false
        var gate: HostConnectionLimiter?

        mutating func releasePlace(of task: any LoopTask) -> LeftPlace {
            let host = gate?.host(of: task.identifier)
            return LeftPlace(host: host, next: gate?.release(task.identifier).flatMap { tasks[$0] })
        }
    }

    /// A place at a host that a task has left.
    private struct LeftPlace {
        /// The host; `nil` if the task had no place.
        var host: String?
        /// The task that was waiting for the place.
        var next: (any LoopTask)?
    }

    private enum Phase {
        case open
        /// New tasks are rejected; the session ends after its last one.
        case finishing
        /// New tasks are rejected, and the remaining ones are being cancelled.
        case cancelling
        case invalid
    }

    private let state = Mutex(State())
    private let policies: Mutex<ServerTrustPolicyManager>

    /// The trust policies by host; initially those of the configuration. A change applies to new connections.
    public var serverTrustPolicyManager: ServerTrustPolicyManager {
        get { policies.withLock { $0 } }
        set { policies.withLock { $0 = newValue } }
    }

    /// Creates a session and starts its threads.
    ///
    /// - Parameters:
    ///   - configuration: The configuration. It is copied and not read again.
    ///   - delegate: The receiver of every callback. It must belong to this session only.
    ///   - eventMonitors: The observers of the requests on this session.
    /// - Throws: ``TransferError`` if the system has no free threads or file descriptors.
    public convenience init(
        configuration: SessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate(),
        eventMonitors: [any EventMonitor] = []
    ) throws(TransferError) {
        try self.init(
            configuration: configuration, delegate: delegate, eventMonitors: eventMonitors, resolver: Resolver())
    }

    /// Creates a session with a resolver.
    ///
    /// - Parameter resolver: The resolver of host names. Tests supply their own.
    package init(
        configuration: SessionConfiguration, delegate: SessionDelegate, eventMonitors: [any EventMonitor] = [],
        resolver: Resolver
    ) throws(TransferError) {
        self.delegate = delegate
        policies = Mutex(configuration.trustPolicies)
        monitors = EventMonitorGroup(eventMonitors)
        let faults = LoopFaults { description in delegate.session(didFindFault: description) }
        resources = try SessionResources(configuration, resolver: resolver, faults: faults)
        if configuration.limitsConnections {
            let gate = HostConnectionLimiter(
                limit: configuration.maximumConnectionsPerHost ?? .max, limits: configuration.connectionLimits)
            state.withLock { $0.gate = gate }
        }
        delegate.attach(to: self)
    }

    deinit { resources.stop() }

    /// The version of the libcurl in use, such as `libcurl/7.88.1`.
    public static var libraryVersion: String { CurlLibrary.version }

    /// Whether libcurl supports HTTP/3. Without support, ``HTTPVersion/http3`` uses HTTP/2.
    public static var speaksHTTP3: Bool { CurlLibrary.hasHTTP3 }

    /// The number of internal faults since the session was created: stalled transfers with pending work that had to be
    /// resumed by a watchdog. A value other than 0 indicates a defect of this library or of libcurl;
    /// ``SessionDelegate/Overrides/sessionDidFindFault`` describes each.
    public var internalFaults: Int { resources.faults.count }

    /// Replaces the configuration's ``SessionConfiguration/hostRates``, also for running transfers.
    public func setHostRates(_ rates: HostTable<TransferRates>) { resources.hostRates.table = rates }

    // MARK: Tasks

    /// Creates a task that downloads a file; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - target: The destination of the bytes.
    ///   - body: The request's body; `.none` for no body. See ``DownloadRequest`` for methods other than `GET`.
    ///   - resumeData: The state left by an earlier attempt at the same target.
    ///   - progress: The progress of an earlier task, to continue its counts.
    public func downloadTask(
        with request: TransferRequest, target: DownloadTarget, body: RequestBody = .none,
        resumeData: ResumeData? = nil, progress: TransferProgress = TransferProgress()
    ) -> DownloadTask {
        DownloadTask(
            request, body: body, placement: .fixed(target), resumeData: resumeData, progress: progress, session: self)
    }

    /// Creates a task that keeps its response in memory; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - body: The request's body; `.none` for no body.
    ///   - progress: The progress of an earlier task, to continue its counts.
    public func dataTask(
        with request: TransferRequest, body: RequestBody = .none, progress: TransferProgress = TransferProgress()
    ) -> DataTask {
        dataTask(with: request, body: body, sink: .collect, progress: progress)
    }

    /// Creates a task that sends `body`, again for each redirect and challenge; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - body: The request's body.
    ///   - progress: The progress of the sent body.
    ///   - responseProgress: The progress of the response body.
    public func uploadTask(
        with request: TransferRequest, from body: RequestBody, progress: TransferProgress = TransferProgress(),
        responseProgress: TransferProgress = TransferProgress()
    ) -> UploadTask {
        uploadTask(
            with: request, body: body, sink: .collect, progress: progress, responseProgress: responseProgress)
    }

    func dataTask(
        with request: TransferRequest, body: RequestBody, sink: BodySink, progress: TransferProgress
    ) -> DataTask {
        DataTask(request, body: body, sink: sink, progress: progress, session: self)
    }

    func uploadTask(
        with request: TransferRequest, body: RequestBody, sink: BodySink, progress: TransferProgress,
        responseProgress: TransferProgress
    ) -> UploadTask {
        UploadTask(
            request, body: body, sink: sink, progress: progress, responseProgress: responseProgress, session: self)
    }

    /// Rejects new tasks and cancels the existing ones.
    public func invalidateAndCancel() {
        let (requests, tasks) = close(.cancelling)
        for request in requests { request.cancel() }
        for task in tasks { task.cancel() }
        endIfFinished()
    }

    /// Does what ``invalidateAndCancel()`` does, since the manager is released. The errors of the requests say so.
    func release() {
        state.withLock { $0.isReleased = true }
        for request in close(.cancelling).requests { request.release() }
        invalidateAndCancel()
    }

    /// Rejects new tasks and lets the existing ones finish. A request that waits for its next attempt fails with the
    /// error of the last one. A request whose first attempt still waits for an adapter fails with
    /// ``TransferError/Code/invalidated``.
    public func finishTasksAndInvalidate() {
        for request in close(.finishing).requests { _ = request.retryByHand() }
        endIfFinished()
    }

    private func close(_ phase: Phase) -> (requests: [Request], tasks: [any LoopTask]) {
        state.withLock { state in
            if state.phase == .open || state.phase == .finishing { state.phase = phase }
            return (Array(state.requests.values), Array(state.tasks.values))
        }
    }

    /// Whether the session accepts new tasks.
    var isOpen: Bool { state.withLock { $0.phase == .open } }

    /// Whether the remaining tasks are being cancelled.
    var isCancelling: Bool { state.withLock { $0.phase == .cancelling } }

    /// Makes every stream check whether the kernel now has a better route for it, after a change of the machine's
    /// routes or addresses. If so, `streamTaskBetterRouteDiscovered` is called.
    public func routesDidChange() {
        for case let task as StreamTask in state.withLock({ Array($0.tasks.values) }) {
            perform(task) { ($0 as? StreamRun)?.routesDidChange() }
        }
    }

    /// The requests that have started and are not complete, and the tasks that are not complete.
    var contents: (requests: [Request], tasks: [any SessionTask]) {
        state.withLock { (Array($0.requests.values), Array($0.tasks.values)) }
    }

    func endIfFinished() {
        let ends = state.withLock { state in
            guard state.phase == .finishing || state.phase == .cancelling else { return false }
            guard state.tasks.isEmpty, state.requests.isEmpty else { return false }
            state.phase = .invalid
            return true
        }
        guard ends else { return }
        resources.stop()
        delegate.session(self, didBecomeInvalidWithError: nil)
        events.finish()
    }

    // MARK: What is under way

    func enter(_ request: Request) {
        state.withLock { state in
            state.requests[ObjectIdentifier(request)] = request
            state.unsettled += 1
        }
    }

    /// Removes a request.
    ///
    /// - Returns: Whether it was present. If so, ``callbacksDidEnd()`` must be called once its handlers have run.
    func remove(_ request: Request) -> Bool {
        state.withLock { $0.requests.removeValue(forKey: ObjectIdentifier(request)) != nil }
    }

    /// Records that all callbacks for a task or a request have been made.
    func callbacksDidEnd() {
        let isIdle = state.withLock { state in
            state.unsettled -= 1
            return state.unsettled == 0
        }
        if isIdle { delegate.session(didFinishEventsOf: self) }
    }

    private enum AdmissionResult { case goes, waits, refused }

    private func enter(_ task: any LoopTask) -> AdmissionResult {
        // The URL is parsed only if connections are limited.
        let counts = configuration.limitsConnections && !(task is StreamTask)
        let host = counts ? (try? CurlURL(task.originalRequest.url))?.origin : nil
        return state.withLock { state in
            guard state.phase == .open else { return .refused }
            state.tasks[task.identifier] = task
            state.unsettled += 1
            guard let host else { return .goes }
            let goes = state.gate?.enter(task.identifier, host: host, priority: task.priority) ?? true
            return goes ? .goes : .waits
        }
    }

    /// Cancels a task that was started.
    func cancel(_ task: any LoopTask) {
        if state.withLock({ $0.gate?.giveUp(task.identifier) ?? false }) {
            complete(unstarted: task, .cancelled)
        } else {
            perform(task) { $0.cancel() }
        }
    }

    /// Reserves an additional connection for a download.
    ///
    /// - Returns: Whether the host's limit allows it. If so, ``giveBackConnection(at:)`` must be called later.
    ///   Otherwise ``DownloadTaskRun/mayBorrow(at:)`` is called as soon as there is room.
    func borrowConnection(at origin: String, for task: DownloadTask) -> Bool {
        state.withLock { $0.gate?.borrow(origin, for: task.identifier) ?? true }
    }

    /// Registers a download for a connection that others may release. ``DownloadTaskRun/mayBorrow(at:)`` is then
    /// called.
    func expectConnection(at origin: String, for task: DownloadTask) {
        guard configuration.limitsConnections else { return }
        state.withLock { $0.gate?.expect(origin, for: task.identifier) }
    }

    func giveBackConnection(at origin: String) {
        passOn(
            state.withLock { state in
                LeftPlace(host: origin, next: state.gate?.giveBack(origin).flatMap { state.tasks[$0] })
            })
    }

    /// Notifies the download that has waited longest for a connection, if there is room for one now.
    func offerConnection(at origin: String) {
        let task = state.withLock { state in state.gate?.offer(origin).flatMap { state.tasks[$0] } }
        if let download = task as? DownloadTask { download.perform { $0.mayBorrow(at: origin) } }
    }

    /// Releases a task's place at its host before the task completes, since it no longer uses the network. A task that
    /// waits for the place starts.
    func releaseConnection(of task: any LoopTask) {
        passOn(state.withLock { $0.releasePlace(of: task) })
    }

    private func passOn(_ left: LeftPlace) {
        if let next = left.next { launch(next) } else if let host = left.host { offerConnection(at: host) }
    }

    /// Returns whether a task waits for a borrowed connection at `origin`.
    func wantsConnection(at origin: String) -> Bool {
        guard configuration.limitsConnections else { return false }
        return state.withLock { $0.gate?.isWanted(origin) ?? false }
    }

    private static let invalidated = TransferError(.invalidated, "the session no longer takes tasks")

    /// Replaces a task by its successor.
    ///
    /// - Returns: `false` if the task could no longer be replaced.
    func replace(_ task: any LoopTask, by successor: any LoopTask) -> Bool {
        guard task.core.passState(to: successor.core) else { return false }
        state.withLock { state in
            state.tasks[task.identifier] = nil
            state.tasks[successor.identifier] = successor
            // The successor keeps the place at the host and releases it under its own number.
            state.gate?.rename(task.identifier, to: successor.identifier)
        }
        return true
    }

    /// Starts a task: at once, or when its host's connection limit allows it.
    func start(_ task: any LoopTask) {
        switch enter(task) {
        case .refused:
            complete(unstarted: task, state.withLock { $0.isReleased } ? .released : Self.invalidated)
        case .waits: break
        case .goes: launch(task)
        }
    }

    private func launch(_ task: any LoopTask) {
        resources.networkBegan(task.core).post { [self] core in
            let run: any LoopRun
            do throws(TransferError) {
                run = try task.makeRun(on: core)
            } catch {
                return completeAtStart(task, task.state == .canceling ? .cancelled : error)
            }
            task.setRun(run, on: core)
            // A state change before the run existed was not delivered to it, so it is applied here.
            switch task.state {
            case .canceling: run.cancel()
            case .suspended:
                run.suspend()
                run.start()
            case .running, .completed: run.start()
            }
        }
    }

    /// Returns the event loop of a task; `nil` before the task runs.
    func loop(for task: any LoopTask) -> TransferLoop? { task.core.loop?.loop }

    /// Runs `work` on the loop's thread if the task is still running.
    func perform(_ task: any LoopTask, _ work: @escaping @Sendable (any LoopRun) -> Void) {
        loop(for: task)?.post { core in
            if let run = task.run(on: core) { work(run) }
        }
    }

    // MARK: The ends of tasks

    /// Completes a task that never ran. Its resume data remain unchanged.
    func complete(unstarted task: any LoopTask, _ error: TransferError) {
        guard let download = task as? DownloadTask else { return complete(task, error) }
        var error = error
        if download.leavesNothing { download.removePart() } else { error.resumeData = download.resumeData }
        complete(task, error)
    }

    /// Completes a task that has a loop and cannot run.
    private func completeAtStart(_ task: any LoopTask, _ error: TransferError) {
        if let download = task as? DownloadTask {
            return DownloadCompletion(download).fail(error, part: nil, version: ResourceVersion())
        }
        resources.networkEnded(task.core)
        complete(task, error)
    }

    /// Completes a task and notifies its delegate. A second call has no effect.
    func complete(_ task: any LoopTask, _ error: TransferError?) {
        let error = error?.named(byServerOf: task.originalRequest.url)
        guard task.core.complete(error) else { return }
        task.didEnd(error)
        let wasThere = remove(task)
        delegate.task(task, didEndWith: error)
        if wasThere { callbacksDidEnd() }
        endIfFinished()
    }

    private func remove(_ task: any LoopTask) -> Bool {
        let (wasThere, left) = state.withLock { state in
            (state.tasks.removeValue(forKey: task.identifier) != nil, state.releasePlace(of: task))
        }
        passOn(left)
        return wasThere
    }
}

extension Session {
    /// Creates a task for a connection; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - host: a name or an address; IPv6 with or without brackets. An invalid host fails the task.
    ///   - port: a port from 1 to 65535.
    ///   - progress: counts the received bytes.
    public func streamTask(host: String, port: Int, progress: TransferProgress = TransferProgress()) -> StreamTask {
        streamTask(with: TransferRequest(url: StreamAddress.url(host: host, port: port)), progress: progress)
    }

    /// Creates a task for a connection; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: a request whose URL is `tcp://host:port`; ``StreamTask`` describes which other properties apply.
    ///   - progress: counts the received bytes.
    public func streamTask(
        with request: TransferRequest, progress: TransferProgress = TransferProgress()
    ) -> StreamTask {
        StreamTask(request, progress: progress, session: self)
    }
}

/// Checks that the session's threads work, for a supervisor such as systemd's watchdog.
extension Session {
    /// Returns once each event loop has finished its present turn and begun another. If a loop hangs, this does not
    /// return.
    ///
    /// The loops of FTP and SFTP transfers are not waited for: they may wait within libcurl for a slow server's reply.
    public func eventLoopsTurn() async { await resources.loops.turn() }
}

/// The events of requests, for the stream of events and for monitors.
extension Session {
    func requestDidCreate(_ request: Request) { monitors?.notify { $0.requestDidCreate(request) } }

    func requestDidResume(_ request: Request) {
        events.send(.didResume(request))
        monitors?.notify { $0.requestDidResume(request) }
    }

    func requestDidSuspend(_ request: Request) {
        events.send(.didSuspend(request))
        monitors?.notify { $0.requestDidSuspend(request) }
    }

    func requestDidCancel(_ request: Request) {
        events.send(.didCancel(request))
        monitors?.notify { $0.requestDidCancel(request) }
    }

    func request(_ request: Request, willRetryAfter error: TransferError) {
        events.send(.willRetry(request, error))
        monitors?.notify { $0.request(request, willRetryAfter: error) }
    }

    func request(_ request: Request, didCompleteWith error: TransferError?) {
        events.send(.didComplete(request, error))
        monitors?.notify { $0.request(request, didCompleteWith: error) }
    }
}
