import ControlProtocol
import ControlServer
import Glibc
import Logging
import Synchronization
import TaskModel
import TaskQueue

/// A server on the sockets that systemd passed, while the daemon cannot start.
///
/// Each client receives the reason as an error. Otherwise systemd would restart the daemon repeatedly for the waiting
/// client, and then give up the socket. As soon as the cause is resolved, the daemon starts in the same process.
struct FailureServer: Sendable {
    let startup: Startup
    let logger: Logger

    /// The interval between two attempts to start, in milliseconds.
    private static let interval: Milliseconds = 50
    /// The time without a request after which the process ends, in milliseconds.
    private static let quiet: Milliseconds = 1_000
    /// The time after which it ends in any case, in milliseconds, so that `systemctl start` reports the failure.
    private static let limit: Milliseconds = 10_000

    /// Responds to clients until the daemon can start or no request has been received for a while.
    ///
    /// - Throws: the failure to end with.
    func serve(_ first: StartupFailure) async throws(StartupFailure) -> Startup.Prepared {
        let inherited = startup.planner.inheritedSockets
        guard Self.hasWaitingClients(on: inherited), let sockets = Self.copies(of: inherited) else { throw first }
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

    /// The error sent to clients, and the time of the last request.
    private final class Answers: Sendable {
        private let state: Mutex<(failure: StartupFailure, lastRequest: Milliseconds)>

        init(_ failure: StartupFailure) { state = Mutex((failure, QueueClock.system.monotonic())) }

        var failure: StartupFailure {
            get { state.withLock { $0.failure } }
            set { state.withLock { $0.failure = newValue } }
        }

        /// The time of the last request in milliseconds of the monotonic clock.
        var lastRequest: Milliseconds { state.withLock { $0.lastRequest } }

        func next() -> RPCError {
            state.withLock { state in
                state.lastRequest = QueueClock.system.monotonic()
                return .cannotStart(
                    "the daemon cannot start: \(state.failure.message) (correct this; the next command "
                        + "starts the daemon again)"
                )
            }
        }
    }

    /// Whether a client has connected to one of the sockets and has not been accepted.
    private static func hasWaitingClients(on sockets: [Int32]) -> Bool {
        var polled = sockets.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        return poll(&polled, nfds_t(polled.count), 0) > 0
    }

    /// Duplicates the sockets. The server closes the ones that it is given, and the daemon needs them afterwards.
    ///
    /// - Returns: `nil` if the system has no descriptors available.
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
