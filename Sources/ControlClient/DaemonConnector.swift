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
    private let chosen = Mutex<String?>(nil)

    /// - Parameters:
    ///   - socket: the path of the socket; `nil` to choose it as ``SocketPath`` does.
    ///   - instance: the instance of the daemon to choose.
    public init(socket: String? = nil, instance: InstanceName? = nil) {
        explicit = socket
        self.instance = instance
    }

    /// Opens a connection.
    ///
    /// - Throws: the errors of ``ControlClient/init(path:)``.
    public func connect() throws(ClientError) -> ControlClient {
        if let path = chosen.withLock({ $0 }) { return try ControlClient(path: path) }
        let client = try ControlClient(explicit: explicit, instance: instance)
        chosen.withLock { chosen in if chosen == nil { chosen = client.path } }
        return client
    }
}
