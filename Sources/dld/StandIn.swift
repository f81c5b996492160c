import ControlProtocol
import ControlServer
import Glibc
import Logging
import Synchronization
import TaskModel
import TaskQueue

/// Answers on the sockets that systemd handed over while the daemon cannot start.
///
/// Each client is told what is wrong. Without that, systemd would start the daemon again and again for the client that
/// waits, and give the socket up. As soon as the cause is gone, the daemon starts in the same process.
struct StandIn: Sendable {
    let startup: Startup
    let logger: Logger

    /// Milliseconds from one attempt to start to the next.
    private static let interval: Milliseconds = 50
    /// Milliseconds without a request after which the process ends.
    private static let quiet: Milliseconds = 1_000
    /// Milliseconds after which it ends in any case, so that `systemctl start` reports the failure.
    private static let limit: Milliseconds = 10_000

    /// Answers clients until the daemon can start or nobody has asked for a while.
    ///
    /// - Throws: the failure to end with.
    func serve(_ first: StartupFailure) async throws(StartupFailure) -> Startup.Prepared {
        let inherited = startup.planner.inheritedSockets
        guard Self.someoneWaits(on: inherited), let sockets = Self.copies(of: inherited) else { throw first }
        let answers = Answers(first)
        let server = ControlServer(
            configuration: .init(sockets: sockets, authorize: { _ in true }),
            handler: UnavailableHandler { answers.next() }, logger: logger)
        do {
            try await server.start()
        } catch {
            logger.error("cannot answer on the control socket", metadata: ["error": "\(error)"])
            throw first
        }
        let begin = QueueClock.system.monotonic()
        while true {
            await QueueClock.system.sleep(Self.interval)
            do throws(StartupFailure) {
                let prepared = try startup.prepare(waits: false)
                await server.shutdown()
                return prepared
            } catch {
                answers.failure = error
            }
            let now = QueueClock.system.monotonic()
            guard now - answers.lastRequest < Self.quiet, now - begin < Self.limit else { break }
        }
        await server.shutdown()
        throw answers.failure
    }

    /// What clients are told, and when the last one asked.
    private final class Answers: Sendable {
        private let state: Mutex<(failure: StartupFailure, lastRequest: Milliseconds)>

        init(_ failure: StartupFailure) { state = Mutex((failure, QueueClock.system.monotonic())) }

        var failure: StartupFailure {
            get { state.withLock { $0.failure } }
            set { state.withLock { $0.failure = newValue } }
        }

        /// Milliseconds of a clock that no one sets.
        var lastRequest: Milliseconds { state.withLock { $0.lastRequest } }

        func next() -> RPCError {
            state.withLock { state in
                state.lastRequest = QueueClock.system.monotonic()
                return .cannotStart(
                    "the daemon cannot start: \(state.failure.message) (put that right; the next command starts it)")
            }
        }
    }

    /// Whether a client has connected to one of the sockets and has not been accepted.
    private static func someoneWaits(on sockets: [Int32]) -> Bool {
        var polled = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        return poll(&polled, nfds_t(polled.count), 0) > 0
    }

    /// The server closes what it is given; the daemon needs the sockets afterwards.
    ///
    /// - Returns: `nil` where the system has no descriptors to give.
    private static func copies(of sockets: [Int32]) -> [ControlServer.Socket]? {
        var copies: [ControlServer.Socket] = []
        for socket in sockets {
            let copy = fcntl(socket, F_DUPFD_CLOEXEC, 3)
            guard copy >= 0 else { return nil }
            copies.append(.descriptor(copy))
        }
        return copies
    }
}
