import CLinux
import ControlProtocol
import ControlServer
import Glibc
import Logging
import ServiceLifecycle
import Synchronization
import TaskFiles
import TaskModel
import TaskQueue
import TaskStore
import Transfer
import UnixSignals

/// The daemon: opens the store, serves the socket and runs the queue. It shuts all of them down in an order that loses
/// nothing.
struct Daemon: Service {
    let plan: DaemonPlan
    let logger: Logger
    private let access: CurrentAccess
    private let reloader: Reloader
    private let status = ServiceStatus()
    private let metrics: MetricsReporter
    let store: TaskStore
    let queue: TaskQueue
    /// The limits on the open files that users pass.
    private let descriptors = DescriptorQuota()
    /// The request that ends the daemon as SIGTERM does.
    let stopRequest: StopRequest

    init(plan: DaemonPlan, planner: DaemonPlanner, descriptorStore: DescriptorStore, logger: Logger) throws {
        self.plan = plan
        self.logger = logger
        stopRequest = StopRequest()
        store = try TaskStore(directory: plan.stateDirectory, version: ProductVersion.version) {
            logger.critical("\($0)")
        }
        queue = try TaskQueue(
            store: store, settings: plan.queueSettings, session: plan.session, agent: plan.session.userAgent,
            logger: logger, descriptors: descriptors, keeper: descriptorStore)
        access = CurrentAccess(plan.access)
        let file = MetricsFile(path: plan.configuration.metrics.textfile)
        metrics = MetricsReporter(
            queue: queue, registry: .shared, file: file, instance: planner.environment.instance?.description,
            libcurl: Session.libraryVersion, logger: logger)
        reloader = Reloader(
            planner: planner, plan: plan, queue: queue, access: access, status: status, metricsFile: file,
            logger: logger)
    }

    func run() async throws {
        let warnings = plan.warnings + store.notes + (await queue.layoutWarnings(plan.queueSettings))
        for warning in warnings { logger.warning("\(warning)") }
        let unusable = await PlannedPlaces(plan).problems(on: queue, plan.queueSettings.inspector)
        for (place, problem) in unusable { logger.warning("\(place.text(problem.description))") }
        let problems = warnings + unusable.map(\.problem.description)
        await queue.startWebhooks()
        let server = makeServer()
        try await server.start()
        await queue.start()
        await reloader.startWatching()
        status.ready(.problems(problems))
        let reports = reportToServiceManager(server)
        let metricsReports = Task { [metrics] in await metrics.run() }
        logger.info(
            "ready",
            metadata: [
                "version": "\(ProductVersion.version)", "socket": "\(plan.socket ?? DaemonStatus.inheritedSocket)",
                "config": "\(plan.configurationText)", "state": "\(plan.stateDirectory)",
                "downloads": "\(queue.downloadDirectory)",
            ])
        linux_release_program_pages()
        // From here on the signal is received, also while queue files are being applied.
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        let reloads = Task { [reloader] in
            await reloader.applyQueueFiles()
            for await _ in hangUps { _ = await reloader.reload() }
        }
        await stopRequest.wait()
        reloads.cancel()
        reports?.cancel()
        metricsReports.cancel()
        let extensions = Task { await ServiceReporter.extendStopTimeout() }
        defer { extensions.cancel() }
        ServiceManager.notify("STOPPING=1\nSTATUS=Saving the progress of running tasks")
        logger.info("stopping")
        queue.endBackups()
        await server.shutdown()
        await reloader.stopWatching()
        await queue.stop()
        await metrics.finish()
        try store.close()
        logger.info("stopped")
    }

    /// Starts the reports to the service manager, if there is one.
    private func reportToServiceManager(_ server: ControlServer) -> Task<Void, Never>? {
        guard ServiceManager.isPresent else { return nil }
        let watchdog = Watchdog([
            .init(name: "transfer loops") { [queue] in await queue.eventLoopsTurn() },
            .init(name: "scheduler") { [queue] in await queue.schedulerTurn() },
            .init(name: "database") { [queue] in await queue.databaseTurn() },
            .init(name: "control server") { await server.turn() },
        ])
        let reporter = ServiceReporter(queue: queue, status: status, watchdog: watchdog, logger: logger) { [reloader] in
            await reloader.problems()
        }
        return Task { await reporter.run() }
    }

    private func makeServer() -> ControlServer {
        let (access, socket) = (access, plan.access)
        var sockets = plan.inheritedSockets.map { ControlServer.Socket.descriptor($0) }
        if sockets.isEmpty, let path = plan.socket {
            sockets.append(
                .path(ListeningSocketPath(path: path, mode: socket.mode, group: socket.group, replacesStale: true)))
        }
        let started = QueueClock.system.monotonic()
        let (plan, queue, reloader, metrics, stopRequest) = (plan, queue, reloader, metrics, stopRequest)
        let handler = CommandHandler(
            queue: queue, descriptors: descriptors, isAdministrator: { access.rule.isAdministrator($0) },
            description: {
                CommandHandler.DaemonDescription(
                    version: ProductVersion.version, pid: getpid(), uptime: QueueClock.system.monotonic() - started,
                    socket: plan.socket ?? DaemonStatus.inheritedSocket, stateDirectory: plan.stateDirectory,
                    configurationFile: await reloader.configurationFile, downloadDirectory: queue.downloadDirectory,
                    libcurl: Session.libraryVersion)
            },
            problems: { await reloader.problems() }, metrics: { await metrics.metrics() },
            reload: { await reloader.reload() },
            shutDown: { stopRequest.request() })
        var configuration = ControlServer.Configuration(sockets: sockets, authorize: { access.rule.mayConnect($0) })
        configuration.limits.fit(
            intoDescriptors: DescriptorPlan().descriptorsForClients(besideActive: plan.configuration.limits.activeTasks)
        )
        return ControlServer(configuration: configuration, handler: handler, logger: logger)
    }
}

/// A request to end the daemon, made by a signal, a client or the end of a batch.
final class StopRequest: Sendable {
    private let stream: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() {
        (stream, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    func request() {
        continuation.yield()
        continuation.finish()
    }

    /// Waits until the daemon is to end.
    func wait() async {
        await cancelWhenGracefulShutdown { [stream] in
            for await _ in stream { return }
        }
    }
}
