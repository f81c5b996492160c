import CLinux
import ControlProtocol
import CoreMetrics
import Glibc
package import Logging
import NIOCore
import NIOPosix
import TaskQueue

/// A JSON-RPC 2.0 server on Unix stream sockets, with one JSON text per line.
///
/// A single thread moves the bytes; it sleeps while no client sends a request.
package actor ControlServer {
    /// A socket that clients connect to.
    package enum Socket: Sendable {
        case path(ListeningSocketPath)
        /// A socket from systemd that is already listening. The server owns it from ``start()`` on.
        case descriptor(Int32)
    }

    package struct Configuration: Sendable {
        package var sockets: [Socket]
        /// The rule that decides whether a peer may use the server at all. Called on the event loop, so it must not
        /// block.
        package var authorize: @Sendable (Peer) -> Bool
        package var limits = ConnectionLimits()

        package init(sockets: [Socket], authorize: @escaping @Sendable (Peer) -> Bool) {
            self.sockets = sockets
            self.authorize = authorize
        }
    }

    /// The error for a second call of ``start()``.
    package struct AlreadyStarted: Error {}

    private struct Running {
        let group: MultiThreadedEventLoopGroup
        let shared: NIOLoopBound<ConnectionHandler.Shared>
        let heavyThreads: HeavyThreads
        let searchThreads: HeavyThreads
        let arrivals: NIOLoopBound<ArrivalHandler>
        var sockets: [ListeningSocket] = []
        var front: ClientFront?
    }

    private let configuration: Configuration
    private let handler: any ControlHandler
    private let logger: Logger
    private var wasStarted = false
    private var running: Running?

    package init(configuration: Configuration, handler: any ControlHandler, logger: Logger) {
        self.configuration = configuration
        self.handler = handler
        self.logger = logger
    }

    /// Creates or adopts the sockets; returns when all of them accept connections.
    ///
    /// - Throws: ``ListeningSocketError``. In that case no socket is left open and no file is left behind, except for
    ///   descriptors that were passed in.
    package func start() async throws {
        guard !wasStarted else { throw AlreadyStarted() }
        wasStarted = true
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.next()
        let (heavyThreads, searchThreads) = (HeavyThreads(), HeavyThreads(count: 1))
        let connections = Meter(label: "dld_connections")
        let subscribersDropped = Counter(label: "dld_subscribers_dropped_total")
        let shared = try await eventLoop.submit { [configuration, handler] in
            Self.shortenTimeSlice()
            let trimmer = HeapTrimmer(eventLoop: eventLoop) {
                Task(executorPreference: heavyThreads) { Heap.release() }
            }
            let limits = configuration.limits
            let table = ConnectionTable(limits: limits) { count in
                trimmer.record(connections: count)
                connections.set(count)
            }
            let shared = ConnectionHandler.Shared(
                handler: handler, table: table, workload: Workload(limits: limits, trimmer: trimmer),
                heavyThreads: heavyThreads, searchThreads: searchThreads, limits: limits,
                subscribersDropped: subscribersDropped)
            return NIOLoopBound(shared, eventLoop: eventLoop)
        }.get()
        let arrivals: ArrivalHandler.Announced
        do {
            arrivals = try await ArrivalHandler.make(on: eventLoop) { [self] arrival in
                serve(arrival, on: eventLoop, shared)
            }
        } catch {
            try? await group.shutdownGracefully()
            await heavyThreads.shutdown()
            await searchThreads.shutdown()
            throw error
        }
        running = Running(
            group: group, shared: shared, heavyThreads: heavyThreads, searchThreads: searchThreads,
            arrivals: arrivals.handler)
        do {
            try listen(eventLoop, arrivals, shared)
        } catch {
            await shutdown()
            throw error
        }
        logger.debug("control sockets are listening", metadata: ["sockets": "\(configuration.sockets.count)"])
    }

    /// Lets the calling thread run soon after it wakes up, so that a command is answered quickly while downloads use all
    /// processors.
    static func shortenTimeSlice() {
        _ = linux_set_time_slice(200_000)  // without it, answers only take longer
    }

    private func listen(
        _ eventLoop: any EventLoop, _ arrivals: ArrivalHandler.Announced,
        _ shared: NIOLoopBound<ConnectionHandler.Shared>
    ) throws {
        var sockets: [ListeningSocket] = []
        do {
            for socket in configuration.sockets {
                let made =
                    switch socket {
                    case .path(let path): try ListeningSocket(making: path)
                    case .descriptor(let descriptor): try ListeningSocket(adopting: descriptor)
                    }
                sockets.append(made)
                running?.sockets.append(made)
                try made.listen()
            }
        } catch {
            for socket in sockets { socket.close() }
            throw error
        }
        let front = try ClientFront(
            sockets: sockets, limits: configuration.limits, arrived: arrivals.notify,
            starved: { eventLoop.execute { shared.value.table.closeLongestIdle() } })
        running?.front = front
        eventLoop.execute { arrivals.handler.value.serveArrivals(at: front) }
    }

    /// Returns once the server's threads have finished their present work and taken up more, for a watchdog. If one
    /// hangs, this does not return.
    package func turn() async {
        guard let running else { return }
        await running.front?.turn()
        _ = try? await running.group.next().submit {}.get()  // fails once the loop has ended
    }

    /// Stops accepting, gives running requests and their responses ``ConnectionLimits/grace`` to complete, and closes
    /// everything. The path of a socket that was created here is removed first, so that no client connects to a server
    /// that will not respond.
    package func shutdown() async {
        guard let running else { return }
        self.running = nil
        for socket in running.sockets { socket.unlinkIfMade() }
        await running.front?.stopAccepting()
        let eventLoop = running.group.next()
        let isQuiet = try? await eventLoop.flatSubmit {
            // Clients that arrived earlier are served first.
            running.arrivals.value.serveAllArrivals()
            return running.shared.value.table.drain(on: eventLoop)
        }.get()
        guard isQuiet == true else {
            // The tasks would report to an event loop that no longer exists, so the group is not shut down. The process
            // is about to exit anyway.
            logger.warning("requests were still in progress when the control server stopped")
            await running.front?.stop()
            return
        }
        try? await running.group.shutdownGracefully()
        await running.front?.stop()
        await running.heavyThreads.shutdown()
        await running.searchThreads.shutdown()
    }

    // MARK: - Connections

    /// The size of one read from a connection, in bytes.
    private static let readSize = 1_024

    private nonisolated func serve(
        _ arrival: ClientFront.Arrival, on eventLoop: any EventLoop, _ shared: NIOLoopBound<ConnectionHandler.Shared>
    ) {
        let channel = ClientBootstrap(group: eventLoop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            // A connection keeps the buffer of its last read, so thousands of connections must not keep large ones.
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: Self.readSize))
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelInitializer { [configuration, logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    let (pipeline, peer, table) = (channel.pipeline.syncOperations, arrival.peer, shared.value.table)
                    guard configuration.authorize(peer) else {
                        logger.info("a connection was refused", metadata: Self.metadata(peer))
                        try pipeline.addHandler(RefusalHandler(.peerNotPermitted))
                        return
                    }
                    let connection = ConnectionHandler(peer: peer, link: arrival.link, shared: shared.value)
                    guard table.admit(connection) else {
                        logger.info("too many connections", metadata: Self.metadata(peer))
                        try pipeline.addHandler(RefusalHandler(.tooManyConnections))
                        return
                    }
                    channel.closeFuture.assumeIsolated().whenComplete { _ in table.remove(connection) }
                    try pipeline.addHandler(connection)
                }
            }
            .withConnectedSocket(arrival.descriptor)
        channel.whenFailure { [logger] error in
            logger.info("a connection was not served", metadata: ["error": "\(error)"])
        }
    }

    private static func metadata(_ peer: Peer) -> Logger.Metadata {
        ["uid": "\(peer.uid)", "pid": "\(peer.pid)"]
    }
}

extension Duration {
    /// The number of whole milliseconds, limited to `Int64.max`.
    var wholeMilliseconds: Int64 {
        let (seconds, isTooLong) = components.seconds.multipliedReportingOverflow(by: 1_000)
        return isTooLong
            ? .max : seconds.addingReportingOverflow(components.attoseconds / 1_000_000_000_000_000).partialValue
    }
}
