import CLinux
import Curl
import Glibc
import Synchronization

/// A thread that accepts connections and moves their bytes to the server and back. It sleeps while no bytes are
/// received. Only this thread touches data that clients send: see ``ClientRelay``.
final class ClientFront: Sendable {
    /// An accepted client that the server is to serve.
    struct Arrival: Sendable {
        let peer: Peer
        let link: ClientLink
        /// The server's end of a pair of sockets, for reading and writing. The receiver of the arrival closes it.
        let descriptor: Int32
    }

    enum Order {
        /// An order to resume accepting, because the server has taken the arrivals.
        case acceptOn
        /// An order to stop reading from a client, whose connection is then read elsewhere.
        case hold(ClientLink.ID, @Sendable () -> Void)
        /// An order to resume reading from the client.
        case resume(ClientLink.ID)
        /// An order without effect, for a check that the thread works.
        case turn(@Sendable () -> Void)
        case stopAccepting(@Sendable () -> Void)
        case stop(@Sendable () -> Void)
    }

    /// The number of clients that the server takes at once, between its other work.
    private static let batchSize = 16
    /// The divisor of the connection limit that gives the number of clients that may wait for the server.
    private static let waitingPart = 8

    private let orders = Mutex<[Order]>([])
    private let arrivals = Mutex(ArrivalQueue<Arrival>())
    private let mostWaiting: Int
    private let wakeUp: WakeUp

    /// Starts the thread that accepts connections.
    ///
    /// - Parameters:
    ///   - sockets: the listening sockets, owned by the front from now on, even if this throws.
    ///   - reserve: the number of file descriptors reserved for connections.
    ///   - acceptOne: accepts a connection, as accept(2).
    ///   - arrived: called on the front's thread when a client arrives and no other client waits for the server.
    ///   - starved: called on the front's thread, ten times a second at most, while a client waits that cannot be
    ///     accepted for lack of descriptors or memory.
    /// - Throws: an error of the system, if no thread or descriptor is available.
    init(
        sockets: [ListeningSocket], limits: ConnectionLimits, reserve: Int = 8,
        acceptOne: @escaping @Sendable (_ socket: Int32) -> Int32 = linux_accept,
        arrived: @escaping @Sendable () -> Void, starved: @escaping @Sendable () -> Void = {}
    ) throws {
        mostWaiting = max(Self.batchSize, limits.total / Self.waitingPart)
        let loop: FrontLoop
        do {
            wakeUp = try WakeUp(counting: false)
            loop = try FrontLoop(
                sockets: sockets, limits: limits, wakeUp: wakeUp, reserve: DescriptorReserve(size: reserve),
                acceptOne: acceptOne, arrived: arrived, starved: starved)
        } catch {
            for socket in sockets { socket.close() }
            throw error
        }
        let started = SystemThread.start(name: "dld-clients") { [self] in
            ControlServer.shortenTimeSlice()
            loop.run(self)
        }
        guard started else {
            for socket in sockets { socket.close() }
            throw SystemFailure(EAGAIN)
        }
    }

    /// Enqueues an order. The thread carries it out before it handles anything that the caller does to a pair of
    /// sockets after this call.
    func order(_ order: Order) {
        orders.withLock { $0.append(order) }
        wakeUp.signal()
    }

    /// Enqueues a client for the server.
    ///
    /// - Returns: whether more clients may wait.
    func add(_ arrival: Arrival, _ arrived: () -> Void) -> Bool {
        let count = arrivals.withLock { arrivals in
            arrivals.append(arrival, user: arrival.peer.uid, id: ObjectIdentifier(arrival.link))
            return arrivals.count
        }
        if count == 1 { arrived() }
        return count < mostWaiting
    }

    /// Dequeues some of the clients that wait for the server, the users in turns.
    ///
    /// - Returns: the clients, and whether the queue is now empty (`isEmpty`). If so, `arrived` reports the next
    ///   arrival.
    func dequeueArrivals() -> (taken: [Arrival], isEmpty: Bool) {
        let (taken, before) = arrivals.withLock { arrivals in
            let before = arrivals.count
            return (arrivals.dequeue(atMost: Self.batchSize), before)
        }
        if before >= mostWaiting { order(.acceptOn) }
        return (taken, before == taken.count)
    }

    deinit {
        // No data was written to them.
        for arrival in arrivals.withLock({ $0.dequeue(atMost: .max) }) { _ = close(arrival.descriptor) }
    }

    func dequeueOrders() -> [Order] {
        orders.withLock { orders in
            defer { orders = [] }
            return orders
        }
    }

    /// Returns once the thread has finished its present work and taken up more.
    func turn() async {
        await withCheckedContinuation { continuation in order(.turn { continuation.resume() }) }
    }

    /// Refuses all further clients, and returns once no client can arrive any more.
    func stopAccepting() async {
        await withCheckedContinuation { continuation in order(.stopAccepting { continuation.resume() }) }
    }

    /// Stops the thread. Call this after the server has closed every connection. Data that the server has written is
    /// still sent for up to ``ConnectionLimits/grace``.
    func stop() async {
        await withCheckedContinuation { continuation in order(.stop { continuation.resume() }) }
    }
}

/// The server's reference to a client's own connection.
final class ClientLink: Sendable {
    typealias ID = UInt64

    let id: ID
    private let socket: ClientSocket
    private let front: ClientFront
    private let refusal = Mutex<(isThere: Bool, notify: (@Sendable () -> Void)?)>((false, nil))

    init(id: ID, socket: ClientSocket, front: ClientFront) {
        self.id = id
        self.socket = socket
        self.front = front
    }

    /// Stops reading from the client until ``resume()``.
    ///
    /// - Parameter held: called on the front's thread with the connection, for the code that receives open files from
    ///   it. Until then, bytes that the server has already read may still be in the connection.
    func hold(_ held: @escaping @Sendable (ClientSocket) -> Void) {
        front.order(.hold(id) { [socket] in held(socket) })
    }

    func resume() { front.order(.resume(id)) }

    /// Sets the function that is notified of refused files.
    ///
    /// - Parameter notify: called once the front has stopped reading from the client because the client sent
    ///   unrequested open files; `nil` to remove the function.
    func whenFilesAreRefused(_ notify: (@Sendable () -> Void)?) {
        let isThere = refusal.withLock { refusal in
            refusal.notify = notify
            return refusal.isThere
        }
        if isThere { notify?() }
    }

    func filesAreRefused() {
        let notify = refusal.withLock { refusal in
            refusal.isThere = true
            return refusal.notify
        }
        notify?()
    }
}
