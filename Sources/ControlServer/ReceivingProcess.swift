import CReceiver
@preconcurrency import Dispatch
import Glibc
import Synchronization

/// The process that receives open files from clients in place of this one. A file that blocks when it is closed could
/// otherwise keep this process from serving or from ending: see `creceiver.h`.
///
/// A daemon has a single such process, which ends with the daemon. If it was killed, the next request starts a new one.
package enum ReceivingProcess {
    /// The work to be done on a connection in which files wait.
    enum Work {
        /// The process receives the message and examines its files.
        case receive
        /// The process reads the message and closes its files.
        case drop

        fileprivate var kind: Int32 {
            switch self {
            case .receive: CRECEIVER_RECEIVE
            case .drop: CRECEIVER_DROP
            }
        }
    }

    private struct Receiver {
        let descriptor: Int32
        let process: Int32
    }

    private enum State {
        case absent
        case running(Receiver)
        /// The process is stopped permanently.
        case stopped
    }

    private struct Shared {
        var state = State.absent
        /// The connections that are still to be closed, and their users.
        var unclosed: [(descriptor: Int32, user: UInt32)] = []
    }

    private static let shared = Mutex(Shared())
    /// The queue on which failed closes are retried.
    private static let queue = DispatchQueue(label: "dld-closing")
    private static let pause = DispatchTimeInterval.milliseconds(20)

    /// Starts the process. Call this early in a program, before many files are open. Otherwise the first file that a
    /// client passes starts the process.
    package static func start() {
        shared.withLock { shared in
            // If it cannot be started, the first request reports the reason.
            _ = try? running(&shared.state)
        }
    }

    /// Stops the process. Call this last, when no client is served any more. A program that waits for this process to
    /// end then finds no process left.
    package static func stop() {
        shared.withLock { shared in
            if case .running(let receiver) = shared.state { creceiver_end(receiver.descriptor, receiver.process) }
            shared.state = .stopped
        }
    }

    /// Requests that work be done on a connection.
    ///
    /// - Parameter answers: the other end of the pair of sockets on which the report is sent.
    static func request(
        _ work: Work, _ connection: Int32, answers: Int32, user: UInt32
    ) throws(SystemFailure) {
        try shared.withLock { shared throws(SystemFailure) in
            try send(&shared.state) { receiver in
                return creceiver_ask(receiver, work.kind, connection, answers, user)
            }
        }
    }

    /// Closes a connection, or a listening socket, in which files wait. If the process cannot accept it at the moment,
    /// it stays open for a while.
    static func close(_ connection: Int32, user: UInt32) {
        let isRetryNeeded = shared.withLock { shared in
            let isFirst = shared.unclosed.isEmpty
            shared.unclosed.append((connection, user))
            return isFirst && !closeAll(&shared)
        }
        if isRetryNeeded { retryLater() }
    }

    /// The number of connections that wait to be closed.
    static var unclosedCount: Int { shared.withLock { $0.unclosed.count } }

    private static func retryLater() {
        queue.asyncAfter(deadline: .now() + pause) {
            let isRetryNeeded = shared.withLock { shared in
                // The end of this process closes the remaining connections.
                if case .stopped = shared.state { false } else { !closeAll(&shared) }
            }
            if isRetryNeeded { retryLater() }
        }
    }

    /// - Returns: whether none is left.
    private static func closeAll(_ shared: inout Shared) -> Bool {
        while let (connection, user) = shared.unclosed.last {
            do throws(SystemFailure) {
                try send(&shared.state) { receiver in
                    return creceiver_close(receiver, connection, user)
                }
            } catch {
                return false
            }
            shared.unclosed.removeLast()
        }
        return true
    }

    private static func send(_ state: inout State, _ request: (_ receiver: Int32) -> Int32) throws(SystemFailure) {
        for isLast in [false, true] {
            let receiver = try running(&state)
            if request(receiver.descriptor) == 0 { return }
            let error = errno
            guard !isLast, [EPIPE, ECONNRESET, ENOTCONN].contains(error) else { throw SystemFailure(error) }
            _ = waitpid(receiver.process, nil, WNOHANG)  // its exit status is not used
            _ = Glibc.close(receiver.descriptor)  // no process listens there
            state = .absent
        }
    }

    private static func running(_ state: inout State) throws(SystemFailure) -> Receiver {
        switch state {
        case .running(let receiver): return receiver
        case .stopped: throw SystemFailure(ESHUTDOWN)
        case .absent:
            var process: Int32 = 0
            let descriptor = creceiver_start(&process)
            guard descriptor >= 0 else { throw SystemFailure(errno) }
            let receiver = Receiver(descriptor: descriptor, process: process)
            state = .running(receiver)
            return receiver
        }
    }
}

/// The error number of a failed system call (errno(3)).
struct SystemFailure: Error, CustomStringConvertible {
    let errno: Int32

    init(_ errno: Int32) { self.errno = errno }

    var description: String { String(cString: strerror(errno)) }
}
