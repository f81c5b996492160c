import Glibc
import Synchronization

/// The socket of a daemon with the behaviour of a systemd socket unit: the socket persists, and a waiting client starts
/// the daemon whenever it is not running.
package final class SocketUnit: Sendable {
    private let daemon: DaemonProcess
    private let stopped = Flag()
    private let supervision: Task<[ExitStatus], any Error>

    private final class Flag: Sendable { let isSet = Atomic(false) }

    package init(_ daemon: DaemonProcess) throws {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard listener >= 0 else { throw SystemError("socket") }
        guard try withUnixAddress(daemon.socket, { bind(listener, $0, $1) }) == 0, listen(listener, 128) == 0 else {
            let error = SystemError("listening on \(daemon.socket)")
            close(listener)
            throw error
        }
        self.daemon = daemon
        supervision = Task { [stopped] in try await Self.supervise(daemon, listener, until: stopped) }
    }

    deinit { stopped.isSet.store(true, ordering: .relaxed) }

    /// Starts the daemon whenever a client waits and no daemon runs.
    ///
    /// - Returns: the exit status of each daemon.
    private static func supervise(
        _ daemon: DaemonProcess, _ listener: Int32, until stopped: Flag
    ) async throws -> [ExitStatus] {
        defer { close(listener) }
        var ends: [ExitStatus] = []
        var child: ChildProcess?
        while !stopped.isSet.load(ordering: .relaxed) {
            if let status = child?.poll() {
                ends.append(status)
                child = nil
            }
            var waiting = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            if child == nil, poll(&waiting, 1, 0) > 0 { child = try daemon.launch(listener: listener) }
            try await Task.sleep(for: .milliseconds(5))
        }
        if let child {
            child.kill(SIGTERM)
            ends.append(try await child.wait(within: .seconds(20)))
        }
        return ends
    }

    /// Ends the daemon with SIGTERM if it is running.
    ///
    /// - Returns: the exit status of each daemon, in order.
    package func stop() async throws -> [ExitStatus] {
        stopped.isSet.store(true, ordering: .relaxed)
        return try await supervision.value
    }

    /// Waits until the running daemon has ended by itself.
    package func waitForEnd() async throws {
        try await eventually(that: "the daemon ends by itself", within: .seconds(20)) { !daemon.isRunning }
    }
}
