import Curl
import Synchronization

/// Makes tasks and carries them out: the counterpart of Foundation's `URLSession`, on libcurl.
///
/// A session has a few loop threads with its transfers spread over them, resolver threads, threads for disk syncs and
/// one that publishes finished files.
public final class Session: Sendable {
    /// As it was when the session was made.
    public let configuration: SessionConfiguration
    /// Receives every callback of this session.
    public let delegate: SessionDelegate
    /// What becomes of the requests on this session.
    public let events = EventMonitor()

    /// The rate of what comes in; may be changed at any time.
    public let downloadLimiter: RateLimiter
    /// The rate of what goes out; may be changed at any time.
    public let uploadLimiter: RateLimiter
    let hostRates: HostRates
    let lines = HostLines()

    let resolver: Resolver
    private let disks = Disks()
    let spaceNeeds = SpaceNeeds()
    /// Read files for their digests.
    let digestThreads: WorkerThreads
    private let loops: [TransferLoop]
    private let remoteLoops: RemoteLoops
    private let faults: LoopFaults
    private let running = Atomic<Int>(0)

    private struct State {
        var tasks: [Int: any LoopTask] = [:]
        /// Started and not complete: between two attempts they have no task.
        var requests: [ObjectIdentifier: Request] = [:]
        /// Tasks that are not complete, and requests whose handlers have not run.
        var unsettled = 0
        var phase = Phase.open
        var gate: HostGate?
        /// Origins whose HTTP/2 broke.
        var plainOrigins: Set<String> = []
    }

    private enum Phase {
        case open
        /// No new tasks; the session ends with its last one.
        case finishing
        /// As `finishing`, and what is left is being cancelled.
        case cancelling
        case invalid
    }

    private let state = Mutex(State())

    /// Starts the session's threads.
    ///
    /// - Parameters:
    ///   - configuration: copied, and not read again.
    ///   - delegate: receives every callback, and belongs to this session alone.
    /// - Throws: ``TransferError`` where the system has no threads or descriptors to give.
    public convenience init(
        configuration: SessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate()
    ) throws(TransferError) {
        try self.init(configuration: configuration, delegate: delegate, resolver: Resolver())
    }

    /// - Parameter resolver: looks names up; tests bring their own.
    package init(
        configuration: SessionConfiguration, delegate: SessionDelegate, resolver: Resolver
    ) throws(TransferError) {
        var configuration = configuration
        // What libcurl grants anyone, and the most that it takes.
        configuration.connectTimeout =
            configuration.connectTimeout > 0 ? min(configuration.connectTimeout, Int64(Int32.max)) : 300_000
        self.configuration = configuration
        self.delegate = delegate
        self.resolver = resolver
        downloadLimiter = configuration.downloadLimiter ?? RateLimiter(rate: configuration.downloadRate)
        uploadLimiter = configuration.uploadLimiter ?? RateLimiter(rate: configuration.uploadRate)
        hostRates = HostRates(configuration.hostRates)
        if configuration.limitsConnections {
            let gate = HostGate(
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

    /// Ends the threads, and with them the connections that were kept.
    private func stop() {
        for loop in loops { loop.stop() }
        remoteLoops.stop()
        disks.stop()
        digestThreads.stop()
    }

    /// `libcurl/7.88.1`: the library that is at work.
    public static var libraryVersion: String { CurlLibrary.version }

    /// Whether that library has HTTP/3: without it, ``HTTPVersion/http3`` asks for HTTP/2.
    public static var speaksHTTP3: Bool { CurlLibrary.hasHTTP3 }

    /// Internal faults since the session was made: transfers that stood still although there was work for them, and
    /// that had to be kicked. Anything but 0 is a defect of this library or of libcurl;
    /// ``SessionDelegate/Overrides/sessionDidFindFault`` describes each.
    public var internalFaults: Int { faults.count }

    /// Takes the place of the configuration's ``SessionConfiguration/hostRates``, for what runs already too.
    public func setHostRates(_ rates: HostTable<TransferRates>) { hostRates.table = rates }

    // MARK: Tasks

    /// A task that fetches a file; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: what to ask for.
    ///   - target: where the bytes go.
    ///   - resumeData: what an earlier attempt at the same target left.
    ///   - progress: for counts that go on from an earlier task's.
    public func downloadTask(
        with request: TransferRequest, target: DownloadTarget, resumeData: ResumeData? = nil,
        progress: TransferProgress = TransferProgress()
    ) -> DownloadTask {
        DownloadTask(
            request, placement: .fixed(target), resumeData: resumeData, progress: progress, session: self)
    }

    /// A task that keeps its answer in memory; ``SessionTask/resume()`` starts it.
    ///
    /// - Parameters:
    ///   - request: what to ask for.
    ///   - body: goes along; `.none` for what has none.
    ///   - progress: for counts that go on from an earlier task's.
    public func dataTask(
        with request: TransferRequest, body: RequestBody = .none, progress: TransferProgress = TransferProgress()
    ) -> DataTask {
        dataTask(with: request, body: body, sink: .collect, progress: progress)
    }

    /// A task that sends `body`, anew for each redirect and challenge; ``SessionTask/resume()`` starts it.
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

    /// Takes no new tasks, and cancels those there are.
    public func invalidateAndCancel() {
        let (requests, tasks) = close(.cancelling)
        for request in requests { request.cancel() }
        for task in tasks { task.cancel() }
        endIfFinished()
    }

    /// Takes no new tasks; those there are go on. A request that waits for its next attempt fails as the last one did,
    /// and one whose first still waits for an adapter as ``TransferError/Code/invalidated``.
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

    /// Whether it takes new tasks.
    var isOpen: Bool { state.withLock { $0.phase == .open } }

    /// Whether all that is left is being cancelled, or was.
    var isCancelling: Bool { state.withLock { $0.phase == .cancelling } }

    /// Has every stream look whether the kernel would now send it another way: for whoever watches the machine's routes
    /// and addresses. `streamTaskBetterRouteDiscovered` follows where it would.
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

    /// - Returns: whether it was there; ``settle()`` follows then, once its handlers have run.
    func leave(_ request: Request) -> Bool {
        state.withLock { $0.requests.removeValue(forKey: ObjectIdentifier(request)) != nil }
    }

    /// All that was to be said of a task or a request has been.
    func settle() {
        let isIdle = state.withLock { state in
            state.unsettled -= 1
            return state.unsettled == 0
        }
        if isIdle { delegate.session(didFinishEvents: self) }
    }

    private enum Entrance { case goes, waits, refused }

    private func enter(_ task: any LoopTask) -> Entrance {
        // Its URL is read only where that matters.
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

    /// Ends a task that was started.
    func cancel(_ task: any LoopTask) {
        if state.withLock({ $0.gate?.giveUp(task.identifier) ?? false }) {
            complete(unstarted: task, .cancelled)
        } else {
            perform(task) { $0.cancel() }
        }
    }

    /// A download wants a connection more than its own.
    ///
    /// - Returns: whether the host's limit allows it. ``giveBackConnection(at:)`` follows then, and otherwise
    ///   ``DownloadRun/mayBorrow(at:)``, as soon as there is room.
    func borrowConnection(at origin: String, for task: DownloadTask) -> Bool {
        state.withLock { $0.gate?.borrow(origin, for: task.identifier) ?? true }
    }

    /// A download waits for connections that others may give back: ``DownloadRun/mayBorrow(at:)`` follows then.
    func expectConnection(at origin: String, for task: DownloadTask) {
        guard configuration.limitsConnections else { return }
        state.withLock { $0.gate?.expect(origin, for: task.identifier) }
    }

    func giveBackConnection(at origin: String) {
        let next = state.withLock { state in state.gate?.giveBack(origin).flatMap { state.tasks[$0] } }
        if let next { launch(next) } else { offerConnection(at: origin) }
    }

    /// Tells the download that has waited longest for a connection where there is room for one now.
    func offerConnection(at origin: String) {
        let task = state.withLock { state in state.gate?.offer(origin).flatMap { state.tasks[$0] } }
        if let task { perform(task) { ($0 as? DownloadRun)?.mayBorrow(at: origin) } }
    }

    /// Whether a task waits for a connection that was lent at `origin`.
    func wantsConnection(at origin: String) -> Bool {
        guard configuration.limitsConnections else { return false }
        return state.withLock { $0.gate?.isWanted(origin) ?? false }
    }

    /// An origin is to be spoken to in HTTP/1.1 from now on.
    func avoidHTTP2(at origin: String) {
        state.withLock { state in
            if state.plainOrigins.count >= Self.largestPlainOrigins { state.plainOrigins.removeAll() }
            state.plainOrigins.insert(origin)
        }
    }

    func avoidsHTTP2(at origin: String) -> Bool { state.withLock { $0.plainOrigins.contains(origin) } }

    private static let largestPlainOrigins = 1024

    private static let invalidated = TransferError(.invalidated, "the session no longer takes tasks")

    /// A task goes over into another.
    ///
    /// - Returns: whether it still could.
    func replace(_ task: any LoopTask, by successor: any LoopTask) -> Bool {
        guard task.core.handOver(to: successor.core) else { return false }
        state.withLock { state in
            state.tasks[task.identifier] = nil
            state.tasks[successor.identifier] = successor
            // Whoever follows takes the place along: it is given back under the new number.
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
            // What was said to it on its way to the loop found nobody there.
            switch task.state {
            case .canceling: run.cancel()
            case .suspended:
                run.suspend()
                run.start()
            case .running, .completed: run.start()
            }
        }
    }

    /// Has `work` done on the loop's thread, where the task is still at work.
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

    /// Bytes of receive buffer for the next exchange on `core`: libcurl keeps one for each of them.
    func receiveBuffer(on core: LoopCore) -> Int {
        // A download may have many connections.
        switch max(running.load(ordering: .relaxed), core.exchangeCount) {
        // Larger ones leave no room in the processor's cache for what is written from them.
        case ...16: 128 * 1024
        case ...64: 32 * 1024
        case ...256: 16 * 1024
        case ...512: 8 * 1024
        default: 4 * 1024
        }
    }

    /// The disk that a part lies on, or would.
    func disk(of part: PartFile?, or target: DownloadTarget? = nil) -> Disk {
        disks.disk(of: part?.directory ?? target?.directory)
    }

    // MARK: The ends of tasks

    /// A task uses the network no longer.
    func networkEnded() {
        if running.wrappingSubtract(1, ordering: .relaxed).newValue == 0 { disks.hurry() }
    }

    /// Every byte is here.
    ///
    /// - Parameter verification: who says whether they are right; `nil` where no digest is known.
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

    /// The bytes are not those that they should be: those of right pieces are kept. Blocks.
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

    /// Another file has the name, and is left as it is: the task is done, where that is the one that was wanted.
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

    /// The file has not got its name.
    private func keep(_ task: DownloadTask, _ part: PartFile, ranges: ByteRangeSet, _ error: TransferError) {
        if let taken = error.underlying as? TakenName { return skip(task, part, taken) }
        var error = error
        // What has the part's name by then is someone else's.
        if error.code != .remoteChanged {
            if !task.leavesNothing {
                part.leave()
                error.resumeData = task.resumeData(for: part, task.version, ranges: ranges)
            }
            if error.resumeData == nil, task.leavesNoLitter { task.removePart() }
        }
        complete(task, error)
    }

    /// Syncs what came, so that it need not come again, and completes.
    ///
    /// - Parameter isAtRest: no block is on its way to the part any more.
    func fail(
        _ task: DownloadTask, _ error: TransferError, part: PartFile?, version: ResourceVersion, isAtRest: Bool = true
    ) {
        networkEnded()
        if let taken = error.underlying as? TakenName { return skip(task, part, taken) }
        var error = error
        guard let part else {
            // Nothing was begun: what there was before is all there is, unless it turned out to be of no use.
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

    /// A task that never ran ends: what it was to go on with is there as it was.
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
