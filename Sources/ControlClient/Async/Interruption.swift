import Glibc
import Synchronization

/// A means to end a blocking wait of another thread for a ``ControlClient``.
final class Interruption: Sendable {
    private struct State {
        /// A second descriptor of the client's socket, so that it cannot be another file's by now.
        var descriptor: Int32?
        var isInterrupted = false
    }

    private let state = Mutex(State())

    init() {}

    deinit { state.withLock { Self.close(&$0) } }

    var isInterrupted: Bool { state.withLock { $0.isInterrupted } }

    /// Sets the client whose waits are to be ended.
    ///
    /// - Throws: ``ClientError/connectionLost(path:)`` if the process has too many open files.
    func watch(_ client: ControlClient) throws(ClientError) {
        guard let descriptor = client.duplicateDescriptor() else { throw .connectionLost(path: client.path) }
        state.withLock { state in
            Self.close(&state)
            state.descriptor = descriptor
            if state.isInterrupted { Self.shutDown(state) }
        }
    }

    /// Ends the current wait, and all later ones at once.
    func interrupt() {
        state.withLock { state in
            state.isInterrupted = true
            Self.shutDown(state)
        }
    }

    private static func shutDown(_ state: State) {
        guard let descriptor = state.descriptor else { return }
        _ = shutdown(descriptor, Int32(SHUT_RDWR))  // fails only where the connection has ended
    }

    private static func close(_ state: inout State) {
        if let descriptor = state.descriptor { _ = Glibc.close(descriptor) }  // the client's own one is still open
        state.descriptor = nil
    }
}
