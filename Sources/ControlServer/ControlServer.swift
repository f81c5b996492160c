import ControlProtocol
import Glibc
import Logging
import NIOCore
import NIOPosix
import TaskQueue

/// JSON-RPC 2.0, one JSON text a line, over Unix stream sockets.
///
/// One thread moves the bytes; it sleeps while no client asks for anything.
package actor ControlServer {
    /// Where clients connect.
    package enum Socket: Sendable {
        case path(SocketPath)
        /// A socket that listens already, from systemd. The server owns it from ``start()`` on.
        case descriptor(Int32)
    }

    package struct Configuration: Sendable {
        package var sockets: [Socket]
        /// Who may use the server at all. Called on the event loop: it must not block.
        package var authorize: @Sendable (Peer) -> Bool
        package var limits = ConnectionLimits()

        package init(sockets: [Socket], authorize: @escaping @Sendable (Peer) -> Bool) {
            self.sockets = sockets
            self.authorize = authorize
        }
    }

    /// ``start()`` was called a second time.
    package struct AlreadyStarted: Error {}

    private struct Running {
        let group: MultiThreadedEventLoopGroup
        let parts: NIOLoopBound<ServerParts>
        let heavyThreads: HeavyThreads
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

    /// Makes or takes over the sockets; returns when all of them accept.
    ///
    /// - Throws: ``ListeningSocketError``; nothing is left open or lying about then, save descriptors passed in.
    package func start() async throws {
        guard !wasStarted else { throw AlreadyStarted() }
        wasStarted = true
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let eventLoop = group.next()
        let heavyThreads = HeavyThreads()
        let parts = try await eventLoop.submit { [configuration, handler] in
            let relief = HeapRelief(eventLoop: eventLoop) {
                Task(executorPreference: heavyThreads) { Heap.giveBack() }
            }
            let limits = configuration.limits
            let parts = ServerParts(
                handler: handler, table: ConnectionTable(limits: limits) { relief.note(connections: $0) },
                workload: Workload(limits: limits, relief: relief), heavyThreads: heavyThreads, limits: limits)
            return NIOLoopBound(parts, eventLoop: eventLoop)
        }.get()
        let arrivals: ArrivalHandler.Announced
        do {
            arrivals = try await ArrivalHandler.make(on: eventLoop) { [self] arrival in
                serve(arrival, on: eventLoop, parts.value)
            }
        } catch {
            try? await group.shutdownGracefully()
            await heavyThreads.shutdown()
            throw error
        }
        running = Running(group: group, parts: parts, heavyThreads: heavyThreads, arrivals: arrivals.handler)
        do {
            try listen(eventLoop, arrivals)
        } catch {
            await shutdown()
            throw error
        }
        logger.debug("control sockets accept", metadata: ["sockets": "\(configuration.sockets.count)"])
    }

    private func listen(_ eventLoop: any EventLoop, _ arrivals: ArrivalHandler.Announced) throws {
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
        let front = try ClientFront(sockets: sockets, limits: configuration.limits, arrived: arrivals.tell)
        running?.front = front
        eventLoop.execute { arrivals.handler.value.serveArrivals(at: front) }
    }

    /// Stops accepting, lets answers under way go out for ``ConnectionLimits/grace``, and closes everything. The
    /// name of a socket that was made here is removed first, so that no client knocks at a door that stays shut.
    package func shutdown() async {
        guard let running else { return }
        self.running = nil
        for socket in running.sockets { socket.unlinkIfMade() }
        await running.front?.stopAccepting()
        let eventLoop = running.group.next()
        let isQuiet = try? await eventLoop.flatSubmit {
            // Those who arrived before.
            running.arrivals.value.serveAllArrivals()
            return running.parts.value.table.drain(on: eventLoop)
        }.get()
        guard isQuiet == true else {
            // Their reports would come to an event loop that is no more. The process is about to end anyhow.
            logger.warning("requests were still being carried out when the control server ended")
            await running.front?.stop()
            return
        }
        try? await running.group.shutdownGracefully()
        await running.front?.stop()
        await running.heavyThreads.shutdown()
    }

    // MARK: - Connections

    /// Bytes of one read from a connection.
    private static let readSize = 1_024

    private nonisolated func serve(_ arrival: ClientFront.Arrival, on eventLoop: any EventLoop, _ parts: ServerParts) {
        let parts = NIOLoopBound(parts, eventLoop: eventLoop)
        let channel = ClientBootstrap(group: eventLoop)
            .channelOption(.allowRemoteHalfClosure, value: true)
            // A connection keeps the buffer of its last read; thousands of them must not keep large ones.
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: Self.readSize))
            .channelOption(.maxMessagesPerRead, value: 1)
            .channelInitializer { [configuration, logger] channel in
                channel.eventLoop.makeCompletedFuture {
                    let (pipeline, peer, table) = (channel.pipeline.syncOperations, arrival.peer, parts.value.table)
                    guard configuration.authorize(peer) else {
                        logger.info("a connection was refused", metadata: Self.metadata(peer))
                        try pipeline.addHandler(RefusalHandler(.peerNotPermitted))
                        return
                    }
                    let connection = ConnectionHandler(peer: peer, link: arrival.link, server: parts.value)
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
    /// Whole milliseconds; what is too long is the longest.
    var wholeMilliseconds: Int64 {
        let (seconds, isTooLong) = components.seconds.multipliedReportingOverflow(by: 1_000)
        return isTooLong
            ? .max : seconds.addingReportingOverflow(components.attoseconds / 1_000_000_000_000_000).partialValue
    }
}
