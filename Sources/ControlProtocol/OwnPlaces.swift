import Glibc

/// The places of a user's own daemon. The rules are the same for every user, root included; the daemon and its clients
/// share them.
package struct OwnPlaces {
    /// The user's home directory: `HOME`, otherwise that of the account.
    package let home: String
    /// The directory with the user's configurations (XDG Base Directory Specification).
    package let configurations: String
    /// The directory with the user's states.
    package let states: String
    /// The directory for sockets: `XDG_RUNTIME_DIR`, otherwise `/run/user/UID` if it is the user's; `nil` without either,
    /// as in a container or after su(1).
    package let runtime: String?

    /// - Parameters:
    ///   - environment: the variables of the process. Relative paths are ignored, as the specification demands.
    ///   - ownsDirectory: returns whether a path leads to a directory of the user.
    package init(
        environment: [String: String], uid: UInt32,
        ownsDirectory: (String, UInt32) -> Bool = { OwnPlaces.isDirectory($0, of: $1) }
    ) {
        func absolute(_ name: String) -> String? {
            guard let path = environment[name], path.hasPrefix("/") else { return nil }
            return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        }
        home = absolute("HOME") ?? Self.home(of: uid) ?? "/"
        let beneath = home == "/" ? "" : home
        configurations = absolute("XDG_CONFIG_HOME") ?? beneath + "/.config"
        states = absolute("XDG_STATE_HOME") ?? beneath + "/.local/state"
        let usual = "/run/user/\(uid)"
        runtime = absolute("XDG_RUNTIME_DIR") ?? (ownsDirectory(usual, uid) ? usual : nil)
    }

    /// The paths at which the user's own daemon may listen. The first is where a daemon creates its socket now. The other
    /// is that of a daemon which was started without a runtime directory.
    ///
    /// - Parameter directory: the name of the daemon's directories.
    package func sockets(_ directory: String) -> [String] {
        [runtime, states].compactMap { place in place.map { "\($0)/\(directory)/dld.sock" } }
    }

    private static func home(of uid: UInt32) -> String? {
        var (account, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
        var space = [CChar](repeating: 0, count: 16 * 1024)
        guard getpwuid_r(uid, &account, &space, space.count, &found) == 0, let path = found?.pointee.pw_dir else {
            return nil
        }
        let home = String(cString: path)
        return home.hasPrefix("/") ? home : nil
    }

    private static func isDirectory(_ path: String, of uid: UInt32) -> Bool {
        var information = stat()
        return stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFDIR && information.st_uid == uid
    }
}
