/// Where a daemon's socket is looked for.
public enum SocketPath {
    /// The socket of the system's daemon.
    public static let system = "/run/dld/dld.sock"
    /// Bytes of a path that fit into `sockaddr_un`, less the closing zero (unix(7)).
    public static let maximumLength = 107

    /// The places to try, the first that answers being the one.
    ///
    /// - Parameters:
    ///   - explicit: the path that the user named; nothing else is tried then.
    ///   - environment: `DLD_SOCKET` counts like an explicit path; `XDG_RUNTIME_DIR` says where the user's own
    ///     daemon listens. Empty variables are as good as none.
    public static func candidates(explicit: String?, environment: [String: String]) -> [String] {
        if let explicit { return [explicit] }
        if let named = environment["DLD_SOCKET"], !named.isEmpty { return [named] }
        return [user(environment: environment), system].compactMap(\.self)
    }

    /// The socket of the user's own daemon; `nil` where the environment names no directory for it.
    public static func user(environment: [String: String]) -> String? {
        // A relative XDG_RUNTIME_DIR is to be ignored (XDG Base Directory Specification).
        guard let runtime = environment["XDG_RUNTIME_DIR"], runtime.hasPrefix("/") else { return nil }
        return (runtime.hasSuffix("/") ? runtime : runtime + "/") + "dld/dld.sock"
    }
}
