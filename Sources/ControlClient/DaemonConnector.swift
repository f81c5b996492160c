import Synchronization
public import TaskModel

/// A maker of connections to one daemon.
///
/// The first connection chooses the socket: the given one, otherwise that of the user's own daemon or of the system's.
/// Later connections use the same socket. So a restart of the user's daemon never leads to the system's, which has other
/// tasks under the same ids.
public final class DaemonConnector: Sendable {
    private let explicit: String?
    private let instance: InstanceName?
    private let trace: (@Sendable (String) -> Void)?
    private let chosen = Mutex<String?>(nil)

    /// - Parameters:
    ///   - socket: the path of the socket; `nil` to choose it as ``SocketPath`` does.
    ///   - instance: the instance of the daemon to choose.
    ///   - trace: receives a line about each connection and each call.
    public init(
        socket: String? = nil, instance: InstanceName? = nil, trace: (@Sendable (String) -> Void)? = nil
    ) {
        self.trace = trace
        explicit = socket
        self.instance = instance
    }

    /// Opens a connection.
    ///
    /// - Throws: the errors of ``ControlClient/init(path:)``.
    public func connect() throws(ClientError) -> ControlClient {
        let client =
            if let path = chosen.withLock({ $0 }) {
                try ControlClient(path: path)
            } else {
                try ControlClient(explicit: explicit, instance: instance)
            }
        client.trace = trace
        trace?("connected to \(client.path)")
        chosen.withLock { chosen in if chosen == nil { chosen = client.path } }
        return client
    }
}
