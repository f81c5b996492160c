import CLinux
import Curl
import Glibc

/// The event loop of the ``ClientFront``.
///
/// `@unchecked`: its state belongs to the thread that runs it, and to its creator before that.
final class FrontLoop: @unchecked Sendable {
    private struct Client {
        let relay: ClientRelay
        let link: ClientLink
        /// The epoll events that are watched; `nil` if the descriptor is not in the epoll set.
        var clientMask: UInt32?
        var innerMask: UInt32?
        var answers: Int32?
        /// The deadline by which the connection is dropped, once the server has closed and the client does not read.
        var deadline: MonotonicTime?
    }

    private enum Kind: UInt64 { case client, inner, answers, listener }

    /// The most bytes moved at once.
    private static let bufferSize = 64 << 10
    /// The number of bytes that one side of a pair accepts before the other has read any; the kernel doubles it.
    private static let pairBuffer: Int32 = 64 << 10
    /// The most connections accepted in a row.
    private static let acceptsInRow = 16
    /// The number of connections waiting to be closed by another process at which accepting pauses.
    private static let mostUnclosed = 512
    /// The pause in accepting when the system lacks descriptors or memory, in milliseconds.
    private static let pause: Int64 = 100
    /// The most messages of one client whose files are dropped; the next one ends the connection.
    private static let mostDrops = 16

    private let poll: EventPoll
    private let wakeUp: WakeUp
    private let limits: ConnectionLimits
    private let arrived: @Sendable () -> Void
    private let starved: @Sendable () -> Void
    private let reserve: DescriptorReserve
    private let acceptOne: @Sendable (_ socket: Int32) -> Int32
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 4_096)
    private var sockets: [ListeningSocket]
    private var clients: [ClientLink.ID: Client] = [:]
    private var nextID: ClientLink.ID = 1
    /// The pair for the next connection. It is created before the connection is accepted, so that no connection is
    /// accepted that cannot be served.
    private var pair: (inner: Int32, server: Int32)?
    private var acceptAgain: MonotonicTime?
    /// Whether the most clients allowed wait for the server.
    private var isFull = false
    private var allowance = DropAllowance()
    private var lingering = 0
    private var stopped: (deadline: MonotonicTime, then: @Sendable () -> Void)?

    /// - Parameters:
    ///   - acceptOne: accepts a connection, as accept(2).
    ///   - starved: called while a client waits that cannot be accepted for lack of descriptors or memory.
    /// - Throws: an error of the system.
    init(
        sockets: [ListeningSocket], limits: ConnectionLimits, wakeUp: WakeUp,
        reserve: DescriptorReserve, acceptOne: @escaping @Sendable (_ socket: Int32) -> Int32,
        arrived: @escaping @Sendable () -> Void, starved: @escaping @Sendable () -> Void
    ) throws {
        poll = try EventPoll()
        self.sockets = sockets
        self.limits = limits
        self.wakeUp = wakeUp
        self.reserve = reserve
        self.acceptOne = acceptOne
        self.arrived = arrived
        self.starved = starved
        guard poll.add(wakeUp.descriptor, mask: LINUX_EPOLLIN, tag: 0) else { throw SystemFailure(errno) }
        for (index, socket) in sockets.enumerated() {
            guard poll.add(socket.descriptor, mask: LINUX_EPOLLIN, tag: Self.tag(UInt64(index), .listener)) else {
                throw SystemFailure(errno)
            }
        }
    }

    deinit {
        buffer.deallocate()
        if let pair {
            _ = close(pair.inner)  // nothing was written to it
            _ = close(pair.server)  // as above
        }
    }

    private static func tag(_ id: UInt64, _ kind: Kind) -> UInt64 { id << 2 | kind.rawValue }

    // MARK: - Event loop

    func run(_ front: ClientFront) {
        let events = UnsafeMutableBufferPointer<linux_event>.allocate(capacity: 128)
        defer { events.deallocate() }
        while !isOver() {
            let count = poll.wait(into: events, timeout: timeout())
            // The wake-up is consumed before the orders are taken, so that a later order wakes this thread again.
            if events.prefix(count).contains(where: { $0.tag == 0 }) { wakeUp.wait() }
            carryOut(front)
            for event in events.prefix(count) where event.tag != 0 { handle(event, front) }
            handleDeadlines(front)
        }
        clients = [:]
        stopped?.then()
    }

    private func isOver() -> Bool {
        guard let stopped else { return false }
        return clients.isEmpty || stopped.deadline <= .now()
    }

    /// Returns the number of milliseconds until the next deadline; -1 if there is none.
    private func timeout() -> Int32 {
        var next = stopped?.deadline
        if let acceptAgain { next = min(next ?? acceptAgain, acceptAgain) }
        if lingering > 0, let first = clients.values.compactMap(\.deadline).min() { next = min(next ?? first, first) }
        return next.map { Int32(clamping: MonotonicTime.now().milliseconds(until: $0)) } ?? -1
    }

    private func carryOut(_ front: ClientFront) {
        for order in front.dequeueOrders() {
            switch order {
            case .acceptOn:
                isFull = false
                listen()
            case .hold(let id, let then):
                guard let client = clients[id] else {
                    then()
                    break
                }
                client.relay.hold(then)
                watch(id)
            case .resume(let id):
                clients[id]?.relay.resume()
                watch(id)
            case .turn(let then): then()
            case .stopAccepting(let then):
                stopAccepting()
                then()
            case .stop(let then):
                stopAccepting()
                stopped = (MonotonicTime.now().advanced(milliseconds: limits.grace.wholeMilliseconds), then)
            }
        }
    }

    private func handle(_ event: linux_event, _ front: ClientFront) {
        let id = event.tag >> 2
        switch Kind(rawValue: event.tag & 3) {
        case .client: clientReady(id, event.mask, front)
        case .inner: innerReady(id, event.mask, front)
        case .answers: reportReady(id, front)
        case .listener: accept(Int(id), front)
        case nil: break
        }
    }

    /// Handles the deadlines that have passed.
    private func handleDeadlines(_ front: ClientFront) {
        guard acceptAgain != nil || lingering > 0 else { return }
        let now = MonotonicTime.now()
        if let acceptAgain, acceptAgain <= now {
            self.acceptAgain = nil
            listen()
        }
        guard lingering > 0 else { return }
        for (id, client) in clients {
            if let deadline = client.deadline, deadline <= now { drop(id) }
        }
    }

    // MARK: - Accepting

    private func listen() {
        guard acceptAgain == nil, !isFull else { return }
        for (index, socket) in sockets.enumerated() {
            // Fails if the socket is already watched, which is harmless.
            _ = poll.add(socket.descriptor, mask: LINUX_EPOLLIN, tag: Self.tag(UInt64(index), .listener))
        }
    }

    private func ignoreListeners() {
        for socket in sockets { poll.remove(socket.descriptor) }
    }

    /// Pauses accepting, because the system lacks descriptors or memory. Otherwise a socket with a waiting connection
    /// would wake this thread at once.
    private func pauseAccepting() {
        acceptAgain = MonotonicTime.now().advanced(milliseconds: Self.pause)
        ignoreListeners()
    }

    /// Pauses accepting and asks for the room of another connection.
    private func starve() {
        pauseAccepting()
        starved()
    }

    private func accept(_ index: Int, _ front: ClientFront) {
        guard sockets.indices.contains(index), acceptAgain == nil, !isFull else { return }
        guard ReceivingProcess.unclosedCount < Self.mostUnclosed else { return pauseAccepting() }
        for _ in 0..<Self.acceptsInRow {
            guard let pair = pair ?? makePair() else { return starve() }
            self.pair = pair
            let descriptor = acceptOne(sockets[index].descriptor)
            guard descriptor >= 0 else {
                switch errno {
                case EAGAIN: return
                case EINTR, ECONNABORTED: continue
                case EMFILE, ENFILE, ENOBUFS, ENOMEM: if reserve.release() { continue } else { return starve() }
                default: return pauseAccepting()
                }
            }
            guard let peer = Peer(ofSocket: descriptor) else {
                _ = ClientSocket(descriptor, user: .max)  // closes it
                continue
            }
            self.pair = nil
            isFull = !begin(ClientSocket(descriptor, user: peer.uid), peer, pair, front)
            reserve.refill()
            if isFull { return ignoreListeners() }
        }
    }

    private func makePair() -> (inner: Int32, server: Int32)? {
        while true {
            if let (inner, server) = SocketPair.make() {
                var size = Self.pairBuffer
                for end in [inner, server] {
                    // If this fails, the system's default size applies.
                    _ = setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
                }
                return (inner, server)
            }
            guard reserve.release() else { return nil }
        }
    }

    /// - Returns: whether the server can be given more clients.
    private func begin(
        _ socket: ClientSocket, _ peer: Peer, _ pair: (inner: Int32, server: Int32), _ front: ClientFront
    ) -> Bool {
        let id = nextID
        nextID += 1
        let link = ClientLink(id: id, socket: socket, front: front)
        clients[id] = Client(relay: ClientRelay(client: socket, peer: peer, inner: pair.inner), link: link)
        watch(id)
        return front.add(ClientFront.Arrival(peer: peer, link: link, descriptor: pair.server), arrived)
    }

    private func stopAccepting() {
        for socket in sockets {
            poll.remove(socket.descriptor)
            socket.close()
        }
        sockets = []
        acceptAgain = nil
    }

    // MARK: - Moving bytes

    private func clientReady(_ id: ClientLink.ID, _ mask: UInt32, _ front: ClientFront) {
        guard let relay = clients[id]?.relay else { return }
        if mask & LINUX_EPOLLOUT != 0 || relay.toClient == .blocked {
            guard goesOn(id, relay.moveToClient(with: buffer), front) else { return }
        }
        if relay.toServer == .open {
            guard goesOn(id, relay.moveToServer(with: buffer), front) else { return }
        }
        // The client has closed, and everything it sent was moved.
        if mask & (LINUX_EPOLLHUP | LINUX_EPOLLERR) != 0, relay.toServer == .ended { return drop(id) }
        watch(id)
    }

    private func innerReady(_ id: ClientLink.ID, _ mask: UInt32, _ front: ClientFront) {
        guard let relay = clients[id]?.relay else { return }
        if relay.toClient == .open {
            guard goesOn(id, relay.moveToClient(with: buffer), front) else { return }
        }
        if relay.toServer == .blocked {
            guard goesOn(id, relay.moveToServer(with: buffer), front) else { return }
        }
        if mask & LINUX_EPOLLHUP != 0, relay.toClient == .blocked, !relay.isServerGone {
            relay.serverIsGone()
            guard linger(id, relay) else { return drop(id) }
        }
        watch(id)
    }

    private func goesOn(_ id: ClientLink.ID, _ outcome: ClientRelay.Outcome, _ front: ClientFront) -> Bool {
        switch outcome {
        case .goesOn: return true
        case .over:
            drop(id)
            return false
        case .files:
            // An order that holds the connection for these files may have just been enqueued.
            carryOut(front)
            guard let client = clients[id] else { return false }
            guard client.relay.toServer == .open else { return true }
            if client.relay.drops < Self.mostDrops, allowance.allows(client.relay.peer.uid), client.relay.drop() {
                return true
            }
            refuse(client)
            return true
        }
    }

    private func refuse(_ client: Client) {
        client.relay.refuseFiles()
        client.link.filesAreRefused()
    }

    private func reportReady(_ id: ClientLink.ID, _ front: ClientFront) {
        guard let client = clients[id], let isTaken = client.relay.readReport() else { return }
        clients[id]?.answers = nil
        if !isTaken {
            refuse(client)
        } else if client.relay.toServer == .open {
            guard goesOn(id, client.relay.moveToServer(with: buffer), front) else { return }
        }
        watch(id)
    }

    // MARK: - The end of a client

    private func linger(_ id: ClientLink.ID, _ relay: ClientRelay) -> Bool {
        let ofUser = clients.values.count { $0.deadline != nil && $0.relay.peer.uid == relay.peer.uid }
        guard lingering < limits.total, ofUser < limits.perUser else { return false }
        lingering += 1
        clients[id]?.deadline = MonotonicTime.now().advanced(milliseconds: limits.stalled.wholeMilliseconds)
        return true
    }

    private func drop(_ id: ClientLink.ID) {
        guard let client = clients.removeValue(forKey: id) else { return }
        if client.deadline != nil { lingering -= 1 }
        if client.clientMask != nil { poll.remove(client.relay.client.descriptor) }
        if client.innerMask != nil { poll.remove(client.relay.inner) }
        if let answers = client.answers { poll.remove(answers) }
    }

    // MARK: - Watched events

    private func watch(_ id: ClientLink.ID) {
        guard var client = clients[id] else { return }
        let relay = client.relay
        // A descriptor whose bytes cannot be moved at the moment must not wake this thread repeatedly. The same applies
        // to an end of stream that was already seen.
        var clientMask: UInt32?
        if relay.toServer == .open || relay.toServer == .ended || relay.toClient == .blocked {
            clientMask =
                (relay.toServer == .open ? LINUX_EPOLLIN : 0) | (relay.toClient == .blocked ? LINUX_EPOLLOUT : 0)
        }
        var innerMask: UInt32?
        if !relay.isServerGone || relay.toClient == .open {
            innerMask =
                (relay.toClient == .open ? LINUX_EPOLLIN : 0) | (relay.toServer == .blocked ? LINUX_EPOLLOUT : 0)
        }
        let isWatched =
            updateInterest(in: relay.client.descriptor, &client.clientMask, clientMask, Self.tag(id, .client))
            && updateInterest(in: relay.inner, &client.innerMask, innerMask, Self.tag(id, .inner))
            && lookForReport(id, &client)
        clients[id] = client
        if !isWatched { drop(id) }
    }

    private func lookForReport(_ id: ClientLink.ID, _ client: inout Client) -> Bool {
        guard client.answers == nil, let answers = client.relay.answers else { return true }
        client.answers = answers
        return poll.add(answers, mask: LINUX_EPOLLIN, tag: Self.tag(id, .answers))
    }

    private func updateInterest(in descriptor: Int32, _ mask: inout UInt32?, _ wanted: UInt32?, _ tag: UInt64) -> Bool {
        guard mask != wanted else { return true }
        defer { mask = wanted }
        guard let wanted else {
            poll.remove(descriptor)
            return true
        }
        return mask == nil
            ? poll.add(descriptor, mask: wanted, tag: tag) : poll.change(descriptor, mask: wanted, tag: tag)
    }
}
