import Curl
import Synchronization

/// The resources that the transfers of a session share: loops, threads, disks, the resolver and the rate limits.
final class SessionResources: Sendable {
    let configuration: SessionConfiguration
    let downloadLimiter: RateLimiter
    let uploadLimiter: RateLimiter
    let hostRates: HostRates
    let requestPacer: RequestPacer
    let lines = HostPaths()
    let resolver: Resolver
    let spaceNeeds = SpaceNeeds()
    /// The threads that read files to compute their digests.
    let digestThreads: WorkerThreads
    let faults: LoopFaults
    private let disks = Disks()
    let loops: SharedLoops
    private let remoteLoops: RemoteLoops
    /// The number of tasks that use the network.
    private let active = Atomic<Int>(0)
    /// The origins whose HTTP/2 failed.
    private let plainOrigins = Mutex<Set<String>>([])

    /// The origins that refused `Expect: 100-continue`.
    private let unexpectingOrigins = Mutex<Set<String>>([])

    /// The proxies that asked for a user name and password and closed the connection before libcurl could send them.
    private let impatientProxies = Mutex<Set<String>>([])

    /// The limit of each of these sets.
    private static let largestOrigins = 1024

    /// Creates the resources and starts the threads of the loops.
    ///
    /// - Throws: ``TransferError`` if the system has no free threads or file descriptors.
    init(_ configuration: SessionConfiguration, resolver: Resolver, faults: LoopFaults) throws(TransferError) {
        var configuration = configuration
        configuration.connectTimeout = SessionConfiguration.connectTimeout(configuration.connectTimeout)
        self.configuration = configuration
        self.resolver = resolver
        self.faults = faults
        downloadLimiter = configuration.downloadLimiter ?? RateLimiter(rate: configuration.downloadRate)
        uploadLimiter = configuration.uploadLimiter ?? RateLimiter(rate: configuration.uploadRate)
        hostRates = HostRates(configuration.hostRates)
        requestPacer = configuration.requestPacer ?? RequestPacer()
        remoteLoops = RemoteLoops(faults: faults)
        digestThreads = WorkerThreads(name: "dld-digest", limit: 4, stack: SystemThread.largeStack)
        do {
            loops = try SharedLoops(count: configuration.loops, faults: faults)
        } catch let error as TransferError {
            throw error
        } catch {
            throw TransferError(.internal, "a session cannot start: \(error)")
        }
    }

    /// Stops the threads, which closes the connections kept for reuse.
    func stop() {
        loops.stop()
        remoteLoops.stop()
        disks.stop()
        digestThreads.stop()
    }

    // MARK: Loops

    /// Records that a task begins to use the network, and chooses its event loop.
    func networkBegan(_ task: TaskCore) -> TransferLoop {
        active.wrappingAdd(1, ordering: .relaxed)
        let url = task.originalRequest.url
        let loop: AssignedLoop =
            RemoteScheme(of: url) == nil
            ? .shared(loops.begin())
            : .leased(remoteLoops.lease(for: url, task: task.identifier, otherwise: loops.first.loop))
        task.setLoop(loop)
        return loop.loop
    }

    /// Records that a task no longer uses the network; called once for each call of ``networkBegan(_:)``. Pending
    /// publications are no longer delayed after the last one.
    ///
    /// - Parameter isPublished: whether the task's file is published next.
    func networkEnded(_ task: TaskCore, isPublished: Bool = false) {
        if case .shared(let member) = task.loop { member.end() }
        if active.wrappingSubtract(1, ordering: .relaxed).newValue == 0, !isPublished { disks.publishNow() }
    }

    /// Whether so many tasks use the network that small files are likely to complete together and to share their syncs.
    var isBusy: Bool { active.load(ordering: .relaxed) >= Publisher.sharedSyncThreshold }

    /// Whether no task uses the network.
    var isIdle: Bool { active.load(ordering: .relaxed) == 0 }

    /// Returns the size in bytes of the receive buffer for the next exchange on `core`. libcurl keeps one per exchange.
    func receiveBuffer(on core: LoopCore) -> Int {
        // A download may have many connections.
        switch max(active.load(ordering: .relaxed), core.exchangeCount) {
        // Larger buffers would evict from the processor's cache the data being written from them.
        case ...16: 128 * 1024
        case ...64: 32 * 1024
        case ...256: 16 * 1024
        case ...512: 8 * 1024
        case ...2048: 4 * 1024
        default: 3 * 1024
        }
    }

    // MARK: Disks

    /// Returns the disk of a part file or, if there is none yet, of its target.
    func disk(of part: PartFile?, or target: DownloadTarget? = nil) -> Disk {
        disks.disk(of: part?.directory ?? target?.directory)
    }

    // MARK: Origins

    /// Uses HTTP/1.1 with an origin from now on.
    func avoidHTTP2(at origin: String) { plainOrigins.withLock { Self.insert(origin, into: &$0) } }

    func avoidsHTTP2(at origin: String) -> Bool { plainOrigins.withLock { $0.contains(origin) } }

    /// Sends no `Expect` to an origin from now on, since it responded with 417.
    func omitExpectation(at origin: String) { unexpectingOrigins.withLock { Self.insert(origin, into: &$0) } }

    func omitsExpectation(at origin: String) -> Bool { unexpectingOrigins.withLock { $0.contains(origin) } }

    /// Sends a proxy the password unasked from now on, by the Basic scheme.
    func recordImpatience(ofProxy origin: String) { impatientProxies.withLock { Self.insert(origin, into: &$0) } }

    func isImpatient(proxy origin: String) -> Bool { impatientProxies.withLock { $0.contains(origin) } }

    private static func insert(_ origin: String, into origins: inout Set<String>) {
        if origins.count >= largestOrigins { origins.removeAll() }
        origins.insert(origin)
    }
}

/// The event loop of a running task.
enum AssignedLoop {
    case shared(SharedLoops.Member)
    /// A loop of ``RemoteLoops``, which is kept as long as the lease.
    case leased(LoopLease)

    var loop: TransferLoop {
        switch self {
        case .shared(let member): member.loop
        case .leased(let lease): lease.loop
        }
    }
}
