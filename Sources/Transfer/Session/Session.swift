import Curl
import Synchronization

/// A session that creates and runs tasks: the counterpart of Foundation's `URLSession`, on libcurl.
///
/// A session distributes its transfers over a few event loop threads. It also has resolver threads, threads for disk
/// syncs and a thread that publishes finished files.
public final class Session: Sendable {
    /// The configuration with which the session was created.
    public let configuration: SessionConfiguration
    /// The delegate, which receives every callback of this session.
    public let delegate: SessionDelegate
    /// The events of the requests on this session.
    public let events = EventMonitor()

    /// The limiter of the download rate, which can be changed at any time.
    public let downloadLimiter: RateLimiter
    /// The limiter of the upload rate, which can be changed at any time.
    public let uploadLimiter: RateLimiter
    let hostRates: HostRates
    let lines = HostLines()

    let resolver: Resolver
    private let disks = Disks()
    let spaceNeeds = SpaceNeeds()
    /// The threads that read files to compute their digests.
    let digestThreads: WorkerThreads
    private let loops: [TransferLoop]
    private let remoteLoops: RemoteLoops
    private let faults: LoopFaults
    private let running = Atomic<Int>(0)

    private struct State {
        var tasks: [Int: any LoopTask] = [:]
        /// The requests that have started and are not complete. Between two attempts they have no task.
        var requests: [ObjectIdentifier: Request] = [:]
        /// The number of tasks that are not complete and of requests whose handlers have not run.
        var unsettled = 0
        var phase = Phase.open
        var gate: HostConnectionLimiter?
        /// The origins whose HTTP/2 failed.
        var plainOrigins: Set<String> = []
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

    /// Creates a session and starts its threads.
    ///
    /// - Parameters:
    ///   - configuration: The configuration. It is copied and not read again.
    ///   - delegate: The receiver of every callback. It must belong to this session only.
    /// - Throws: ``TransferError`` if the system has no free threads or file descriptors.
    public convenience init(
        configuration: SessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate()
    ) throws(TransferError) {
        try self.init(configuration: configuration, delegate: delegate, resolver: Resolver())
    }

    /// Creates a session with a resolver.
    ///
    /// - Parameter resolver: The resolver of host names. Tests supply their own.
    package init(
        configuration: SessionConfiguration, delegate: SessionDelegate, resolver: Resolver
    ) throws(TransferError) {
        var configuration = configuration
        // Five minutes are libcurl's default; `Int32.max` is the maximum that it accepts.
        configuration.connectTimeout =
            configuration.connectTimeout > 0 ? min(configuration.connectTimeout, Int64(Int32.max)) : 300_000
        self.configuration = configuration
        self.delegate = delegate
        self.resolver = resolver
        downloadLimiter = configuration.downloadLimiter ?? RateLimiter(rate: configuration.downloadRate)
        uploadLimiter = configuration.uploadLimiter ?? RateLimiter(rate: configuration.uploadRate)
        hostRates = HostRates(configuration.hostRates)
        if configuration.limitsConnections {
            let gate = HostConnectionLimiter(
                limit: configuration.maximumConnectionsPerHost ?? .max, limits: configuration.connectionLimits)
            state.withLock { $0.gate = gate }
        }
        let faults = LoopFaults { [weak delegate] description in delegate?.session(didFindFault: description) }
        self.faults = faults
        remoteLoops = RemoteLoops(faults: faults)
        digestThreads = WorkerThreads(name: "dld-digest", limit: 4, stack: SystemThread.largeStack)
        do {
            loops = try (0..<max(1, configuration.loops)).map {
                try TransferLoop(name: "dld-loop-\($0)", faults: faults)
            }
        } catch let error as TransferError {
            throw error
        } catch {
            throw TransferError(.internal, "a session cannot start: \(error)")
        }
    }

    deinit { stop() }

    /// Stops the threads, which closes the connections kept for reuse.
    private func stop() {
        for loop in loops { loop.stop() }
        remoteLoops.stop()
        disks.stop()
        digestThreads.stop()
    }

    /// The version of the libcurl in use, such as `libcurl/7.88.1`.
    public static var libraryVersion: String { CurlLibrary.version }

    /// Whether libcurl supports HTTP/3. Without support, ``HTTPVersion/http3`` uses HTTP/2.
    public static var speaksHTTP3: Bool { CurlLibrary.hasHTTP3 }

    /// The number of internal faults since the session was created: stalled transfers with pending work that had to be
    /// resumed by a watchdog. A value other than 0 indicates a defect of this library or of libcurl;
    /// ``SessionDelegate/Overrides/sessionDidFindFault`` describes each.
    public var internalFaults: Int { faults.count }

    /// Replaces the configuration's ``SessionConfiguration/hostRates``, also for running transfers.
    public func setHostRates(_ rates: HostTable<TransferRates>) { hostRates.table = rates }

    // MARK: Tasks

    /// Creates a task that downloads a file; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - target: The destination of the bytes.
    ///   - resumeData: The state left by an earlier attempt at the same target.
    ///   - progress: The progress of an earlier task, to continue its counts.
    public func downloadTask(
        with request: TransferRequest, target: DownloadTarget, resumeData: ResumeData? = nil,
        progress: TransferProgress = TransferProgress()
    ) -> DownloadTask {
        DownloadTask(
            request, placement: .fixed(target), resumeData: resumeData, progress: progress, session: self)
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
    public func uploadTask(
        with request: TransferRequest, from body: RequestBody, progress: TransferProgress = TransferProgress()
    ) -> UploadTask {
        uploadTask(with: request, body: body, sink: .collect, progress: progress)
    }

    func dataTask(
        with request: TransferRequest, body: RequestBody, sink: BodySink, progress: TransferProgress
    ) -> DataTask {
        DataTask(request, body: body, sink: sink, progress: progress, session: self)
    }

    func uploadTask(
        with request: TransferRequest, body: RequestBody, sink: BodySink, progress: TransferProgress
    ) -> UploadTask {
        UploadTask(request, body: body, sink: sink, progress: progress, session: self)
    }

    /// Rejects new tasks and cancels the existing ones.
    public func invalidateAndCancel() {
        let (requests, tasks) = close(.cancelling)
        for request in requests { request.cancel() }
        for task in tasks { task.cancel() }
        endIfFinished()
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

    func endIfFinished() {
        let ends = state.withLock { state in
            guard state.phase == .finishing || state.phase == .cancelling else { return false }
            guard state.tasks.isEmpty, state.requests.isEmpty else { return false }
            state.phase = .invalid
            return true
        }
        guard ends else { return }
        stop()
        delegate.session(didBecomeInvalid: self)
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
    /// - Returns: Whether it was present. If so, ``settle()`` must be called once its handlers have run.
    func leave(_ request: Request) -> Bool {
        state.withLock { $0.requests.removeValue(forKey: ObjectIdentifier(request)) != nil }
    }

    /// Records that all callbacks for a task or a request have been made.
    func settle() {
        let isIdle = state.withLock { state in
            state.unsettled -= 1
            return state.unsettled == 0
        }
        if isIdle { delegate.session(didFinishEvents: self) }
    }

    private enum Entrance { case goes, waits, refused }

    private func enter(_ task: any LoopTask) -> Entrance {
        // The URL is parsed only if connections are limited.
        let host = configuration.limitsConnections ? (try? CurlURL(task.originalRequest.url))?.origin : nil
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
    ///   Otherwise ``DownloadRun/mayBorrow(at:)`` is called as soon as there is room.
    func borrowConnection(at origin: String, for task: DownloadTask) -> Bool {
        state.withLock { $0.gate?.borrow(origin, for: task.identifier) ?? true }
    }

    /// Registers a download for a connection that others may release; ``DownloadRun/mayBorrow(at:)`` is then called.
    func expectConnection(at origin: String, for task: DownloadTask) {
        guard configuration.limitsConnections else { return }
        state.withLock { $0.gate?.expect(origin, for: task.identifier) }
    }

    func giveBackConnection(at origin: String) {
        let next = state.withLock { state in state.gate?.giveBack(origin).flatMap { state.tasks[$0] } }
        if let next { launch(next) } else { offerConnection(at: origin) }
    }

    /// Notifies the download that has waited longest for a connection, if there is room for one now.
    func offerConnection(at origin: String) {
        let task = state.withLock { state in state.gate?.offer(origin).flatMap { state.tasks[$0] } }
        if let task { perform(task) { ($0 as? DownloadRun)?.mayBorrow(at: origin) } }
    }

    /// Returns whether a task waits for a borrowed connection at `origin`.
    func wantsConnection(at origin: String) -> Bool {
        guard configuration.limitsConnections else { return false }
        return state.withLock { $0.gate?.isWanted(origin) ?? false }
    }

    /// Uses HTTP/1.1 with an origin from now on.
    func avoidHTTP2(at origin: String) {
        state.withLock { state in
            if state.plainOrigins.count >= Self.largestPlainOrigins { state.plainOrigins.removeAll() }
            state.plainOrigins.insert(origin)
        }
    }

    func avoidsHTTP2(at origin: String) -> Bool { state.withLock { $0.plainOrigins.contains(origin) } }

    private static let largestPlainOrigins = 1024

    private static let invalidated = TransferError(.invalidated, "the session no longer takes tasks")

    /// Replaces a task by its successor.
    ///
    /// - Returns: `false` if the task could no longer be replaced.
    func replace(_ task: any LoopTask, by successor: any LoopTask) -> Bool {
        guard task.core.handOver(to: successor.core) else { return false }
        state.withLock { state in
            state.tasks[task.identifier] = nil
            state.tasks[successor.identifier] = successor
            // The successor keeps the place at the host and releases it under its own number.
            state.gate?.rename(task.identifier, to: successor.identifier)
        }
        return true
    }

    func start(_ task: any LoopTask) {
        switch enter(task) {
        case .refused: complete(unstarted: task, Self.invalidated)
        case .waits: break
        case .goes: launch(task)
        }
    }

    private func launch(_ task: any LoopTask) {
        running.wrappingAdd(1, ordering: .relaxed)
        loop(for: task).post { core in
            let run = task.makeRun(on: core)
            core.adopt(run, as: task.identifier)
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

    /// Runs `work` on the loop's thread if the task is still running.
    func perform(_ task: any LoopTask, _ work: @escaping @Sendable (any LoopRun) -> Void) {
        loop(for: task).post { core in
            if let run = core.client(task.identifier) as? any LoopRun { work(run) }
        }
    }

    func loop(for task: any LoopTask) -> TransferLoop {
        let loop = loops[task.core.home % loops.count]
        let url = task.originalRequest.url
        guard RemoteScheme(of: url) != nil else { return loop }
        return task.core.lease { remoteLoops.lease(for: url, task: task.core.home, otherwise: loop) }.loop
    }

    /// Returns the size in bytes of the receive buffer for the next exchange on `core`. libcurl keeps one per exchange.
    func receiveBuffer(on core: LoopCore) -> Int {
        // A download may have many connections.
        switch max(running.load(ordering: .relaxed), core.exchangeCount) {
        // Larger buffers would evict from the processor's cache the data being written from them.
        case ...16: 128 * 1024
        case ...64: 32 * 1024
        case ...256: 16 * 1024
        case ...512: 8 * 1024
        default: 4 * 1024
        }
    }

    /// Returns the disk of a part file or, if there is none yet, of its target.
    func disk(of part: PartFile?, or target: DownloadTarget? = nil) -> Disk {
        disks.disk(of: part?.directory ?? target?.directory)
    }

    // MARK: The ends of tasks

    /// Records that a task no longer uses the network.
    func networkEnded() {
        if running.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { disks.hurry() }
    }

    /// Verifies and publishes a download after its last byte was received.
    ///
    /// - Parameter verification: The verification of the digest; `nil` if no digest is known.
    func publish(
        _ task: DownloadTask, _ part: PartFile, size: Int64, destination: FileDestination, _ verification: Verification?
    ) {
        running.wrappingSubtract(1, ordering: .relaxed)
        task.progress.setPhase(verification == nil && destination.pieces == nil ? .publishing : .verifying)
        delegate.downloadTask(didReceiveAll: task)
        do throws(TransferError) {
            try destination.check(size: size)
        } catch {
            verification?.abandon()
            return disk(of: part).threads.perform { [self] in refuse(task, part, size, nil, error) }
        }
        if let verification {
            verification.finish(size: size) { [self] error in
                guard let error else { return publish(task, part, size, destination, isVerified: true) }
                refuse(task, part, size, destination.pieces, error)
            }
        } else if let pieces = destination.pieces {
            digestThreads.perform { [self] in
                if (try? pieces.goodRanges(of: part.descriptor, size: size))?.count == size {
                    return publish(task, part, size, destination, isVerified: true)
                }
                let error = TransferError(.checksumMismatch, "not every piece of what arrived is what it should be")
                refuse(task, part, size, pieces, error)
            }
        } else {
            publish(task, part, size, destination, isVerified: false)
        }
    }

    private func publish(
        _ task: DownloadTask, _ part: PartFile, _ size: Int64, _ destination: FileDestination, isVerified: Bool
    ) {
        let item = Publisher.Item(
            part: part, destination: destination, owner: task.target?.owner ?? "", size: size, isVerified: isVerified
        ) { [self] result in
            switch result {
            case .success(let file):
                task.setFile(file)
                delegate.downloadTask(task, didFinishDownloading: file)
                complete(task, nil)
            case .failure(let error): keep(task, part, ranges: part.durable, error)
            }
        }
        disk(of: part).publish(item, isUrgent: running.load(ordering: .relaxed) == 0)
    }

    /// Handles a failed verification. Pieces with correct digests are kept. Blocks.
    private func refuse(
        _ task: DownloadTask, _ part: PartFile, _ size: Int64, _ pieces: PieceDigests?, _ error: TransferError
    ) {
        guard error.code == .checksumMismatch else { return keep(task, part, ranges: part.durable, error) }
        if let good = try? pieces?.goodRanges(of: part.descriptor, size: size), good.count > 0, good.count < size,
            (try? part.synchronize()) != nil
        {
            return keep(task, part, ranges: good, error)
        }
        try? part.directory.remove(part.name)
        complete(task, error)
    }

    /// Handles a taken destination name. The existing file is kept. The task succeeds unless the file's digest is
    /// wrong.
    private func skip(_ task: DownloadTask, _ part: PartFile?, _ taken: TakenName) {
        task.progress.setPhase(.verifying)
        digestThreads.perform { [self] in
            if let part { try? part.directory.remove(part.name) } else { task.removePart() }
            do throws(TransferError) {
                let file = try taken.file()
                task.progress.setTotal(file.size)
                task.setFile(file)
                delegate.downloadTask(task, didFinishDownloading: file)
                complete(task, nil)
            } catch {
                complete(task, error)
            }
        }
    }

    /// Completes a task whose file was not renamed to its final name, and keeps its part file where possible.
    private func keep(_ task: DownloadTask, _ part: PartFile, ranges: ByteRangeSet, _ error: TransferError) {
        if let taken = error.underlying as? TakenName { return skip(task, part, taken) }
        var error = error
        // A file with the part's name then belongs to another owner.
        if error.code != .remoteChanged {
            if !task.leavesNothing {
                part.leave()
                error.resumeData = task.resumeData(for: part, task.version, ranges: ranges)
            }
            if error.resumeData == nil, task.leavesNoLitter { task.removePart() }
        }
        complete(task, error)
    }

    /// Completes a failed download after a sync (fsync) of its received bytes, so that they need not be fetched again.
    ///
    /// - Parameter isAtRest: Whether no blocks remain to be written to the part.
    func fail(
        _ task: DownloadTask, _ error: TransferError, part: PartFile?, version: ResourceVersion, isAtRest: Bool = true
    ) {
        networkEnded()
        if let taken = error.underlying as? TakenName { return skip(task, part, taken) }
        var error = error
        guard let part else {
            // No part was started, so the earlier resume data remain valid unless a response has invalidated them.
            error.resumeData = task.response == nil && !task.leavesNothing ? task.resumeData : nil
            guard error.resumeData == nil, task.leavesNoLitter else { return complete(task, error) }
            return disk(of: nil, or: task.target).threads.perform { [self, error] in
                task.removePart()
                complete(task, error)
            }
        }
        disk(of: part).threads.perform { [self, error] in
            var error = error
            if !task.leavesNothing {
                if isAtRest { part.leave() }
                let ranges = (try? part.synchronize()) ?? part.durable
                error.resumeData = task.resumeData(for: part, version, ranges: ranges)
            }
            if error.resumeData == nil, task.leavesNoLitter { task.removePart() }
            complete(task, error)
        }
    }

    /// Completes a task that never ran. Its resume data remain unchanged.
    func complete(unstarted task: any LoopTask, _ error: TransferError) {
        guard let download = task as? DownloadTask else { return complete(task, error) }
        var error = error
        if download.leavesNothing { download.removePart() } else { error.resumeData = download.resumeData }
        complete(task, error)
    }

    func complete(_ task: any LoopTask, _ error: TransferError?) {
        let error = error?.named(byServerOf: task.originalRequest.url)
        guard task.core.complete(error) else { return }
        task.didEnd(error)
        let wasThere = leave(task)
        delegate.task(task, didCompleteWith: error)
        if wasThere { settle() }
        endIfFinished()
    }

    private func leave(_ task: any LoopTask) -> Bool {
        let (wasThere, host, next) = state.withLock { state -> (Bool, String?, (any LoopTask)?) in
            let wasThere = state.tasks.removeValue(forKey: task.identifier) != nil
            let host = state.gate?.host(of: task.identifier)
            return (wasThere, host, state.gate?.leave(task.identifier).flatMap { state.tasks[$0] })
        }
        if let next { launch(next) } else if let host { offerConnection(at: host) }
        return wasThere
    }
}
