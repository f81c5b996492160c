import ControlProtocol
import Glibc
public import TaskModel

/// The rules for locating the daemon's socket.
public enum SocketPath {
    /// The socket of the system daemon.
    public static let system = "/run/dld/dld.sock"
    /// The number of path bytes that fit into `sockaddr_un`, without the terminating zero (unix(7)).
    public static let maximumLength = 107

    /// Returns the paths to try in order; the first that accepts a connection is used.
    ///
    /// - Parameters:
    ///   - explicit: a path given by the user; if present, it is the only candidate.
    ///   - instance: the instance given by the user; it takes precedence over the environment.
    ///   - environment: `DLD_SOCKET` is treated like an explicit path. `XDG_RUNTIME_DIR`, otherwise `/run/user/UID`, or
    ///     `XDG_STATE_HOME` contains the socket of the user's own daemon. Empty variables count as unset.
    public static func candidates(
        explicit: String?, instance: InstanceName? = nil, environment: [String: String]
    ) -> [String] {
        if let explicit { return [explicit] }
        if let instance {
            return own(instance, environment) + [system(instance)]
        }
        if let named = environment["DLD_SOCKET"], !named.isEmpty { return [named] }
        return own(nil, environment) + [system]
    }

    /// Returns the socket path of an instance of the system daemon.
    public static func system(_ instance: InstanceName) -> String { "/run/\(instance.directory)/dld.sock" }

    /// Returns the path at which the user's own daemon makes its socket.
    ///
    /// - Parameters:
    ///   - instance: the instance of the daemon; `nil` for the one without a name.
    ///   - environment: the environment of the process.
    public static func user(_ instance: InstanceName? = nil, environment: [String: String]) -> String {
        own(instance, environment).first ?? system
    }

    private static func own(_ instance: InstanceName?, _ environment: [String: String]) -> [String] {
        OwnPlaces(environment: environment, uid: getuid()).sockets(instance?.directory ?? "dld")
    }
}
