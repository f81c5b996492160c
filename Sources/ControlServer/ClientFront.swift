import CLinux
import Curl
import Glibc
import Synchronization

/// Accepts connections, and moves their bytes to the server and back, on a thread of its own that sleeps while no byte
/// comes. It alone touches what clients send: see ``ClientRelay``.
final class ClientFront: Sendable {
    /// A client that was accepted, and that the server is to serve.
    struct Arrival: Sendable {
        let peer: Peer
        let link: ClientLink
        /// The end of a pair of sockets by which the server reads and writes. Whoever gets this closes it.
        let descriptor: Int32
    }

    enum Order {
        /// The server has taken what arrived.
        case acceptOn
        /// Leaves what a client sends to somebody else from now on.
        case hold(ClientLink.ID, @Sendable () -> Void)
        /// Takes it again.
        case resume(ClientLink.ID)
        case stopAccepting(@Sendable () -> Void)
        case stop(@Sendable () -> Void)
    }

    /// Clients that the server takes at once, between its other work.
    private static let takenAtOnce = 16
    /// Clients that may wait for the server, as a part of all that it may have.
    private static let waitingPart = 8

    private let orders = Mutex<[Order]>([])
    private let arrivals = Mutex(ArrivalQueue<Arrival>())
    private let mostWaiting: Int
    private let wakeUp: WakeUp

    /// Starts to accept.
    ///
    /// - Parameters:
    ///   - sockets: belong to the front from now on, also where it throws.
    ///   - reserve: descriptors that are kept back for connections.
    ///   - acceptOne: as accept(2).
    ///   - arrived: called on the front's thread when somebody arrives and nobody else waits for the server.
    /// - Throws: an error of the system, where there is no thread or descriptor to be had.
    init(
        sockets: [ListeningSocket], limits: ConnectionLimits, reserve: Int = 8,
        acceptOne: @escaping @Sendable (_ socket: Int32) -> Int32 = linux_accept,
        arrived: @escaping @Sendable () -> Void
    ) throws {
        mostWaiting = max(Self.takenAtOnce, limits.total / Self.waitingPart)
        let loop: FrontLoop
        do {
            wakeUp = try WakeUp(counting: false)
            loop = try FrontLoop(
                sockets: sockets, limits: limits, wakeUp: wakeUp, reserve: DescriptorReserve(size: reserve),
                acceptOne: acceptOne, arrived: arrived)
        } catch {
            for socket in sockets { socket.close() }
            throw error
        }
        let started = SystemThread.start(name: "dld-clients") { [self] in loop.run(self) }
        guard started else {
            for socket in sockets { socket.close() }
            throw SystemFailure(EAGAIN)
        }
    }

    /// Carried out before anything that the caller does to a pair of sockets after this is seen.
    func order(_ order: Order) {
        orders.withLock { $0.append(order) }
        wakeUp.signal()
    }

    /// - Returns: whether more may wait.
    func add(_ arrival: Arrival, _ arrived: () -> Void) -> Bool {
        let count = arrivals.withLock { arrivals in
            arrivals.append(arrival, user: arrival.peer.uid, id: ObjectIdentifier(arrival.link))
            return arrivals.count
        }
        if count == 1 { arrived() }
        return count < mostWaiting
    }

    /// Takes some of those who wait for the server, the users in turns.
    ///
    /// - Returns: `isEmpty`: nobody waits any more, and `arrived` says when somebody does.
    func takeArrivals() -> (taken: [Arrival], isEmpty: Bool) {
        let (taken, before) = arrivals.withLock { arrivals in
            let before = arrivals.count
            return (arrivals.take(atMost: Self.takenAtOnce), before)
        }
        if before >= mostWaiting { order(.acceptOn) }
        return (taken, before == taken.count)
    }

    deinit {
        // Nothing was written to them.
        for arrival in arrivals.withLock({ $0.take(atMost: .max) }) { _ = close(arrival.descriptor) }
    }

    func takeOrders() -> [Order] {
        orders.withLock { orders in
            defer { orders = [] }
            return orders
        }
    }

    /// Turns away whoever comes from now on; returns once nobody else can arrive.
    func stopAccepting() async {
        await withCheckedContinuation { continuation in order(.stopAccepting { continuation.resume() }) }
    }

    /// To be called once the server has closed every connection. What it has written goes out for
    /// ``ConnectionLimits/grace``.
    func stop() async {
        await withCheckedContinuation { continuation in order(.stop { continuation.resume() }) }
    }
}

/// What the server knows of a client's own connection.
final class ClientLink: Sendable {
    typealias ID = UInt64

    let id: ID
    private let socket: ClientSocket
    private let front: ClientFront
    private let refusal = Mutex<(isThere: Bool, told: (@Sendable () -> Void)?)>((false, nil))

    init(id: ID, socket: ClientSocket, front: ClientFront) {
        self.id = id
        self.socket = socket
        self.front = front
    }

    /// Takes nothing more from the client until ``resume()``.
    ///
    /// - Parameter held: called on the front's thread with the connection, for whoever receives open files from it.
    ///   Before that, bytes that the server has read may still lie there.
    func hold(_ held: @escaping @Sendable (ClientSocket) -> Void) {
        front.order(.hold(id) { [socket] in held(socket) })
    }

    func resume() { front.order(.resume(id)) }

    /// - Parameter told: called once nothing more is taken from the client, since it sent open files that nobody had
    ///   asked for; `nil`: nobody is to be told.
    func whenFilesAreRefused(_ told: (@Sendable () -> Void)?) {
        let isThere = refusal.withLock { refusal in
            refusal.told = told
            return refusal.isThere
        }
        if isThere { told?() }
    }

    func filesAreRefused() {
        let told = refusal.withLock { refusal in
            refusal.isThere = true
            return refusal.told
        }
        told?()
    }
}
