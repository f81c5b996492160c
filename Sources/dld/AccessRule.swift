import ControlServer
import Glibc
import TaskFiles

/// The rule that decides which users may use the control socket and which are administrators.
struct AccessRule: Sendable {
    let daemonUser: UInt32
    /// Whether users other than root, the daemon's own and administrators may connect.
    let isShared: Bool
    /// The group whose members are administrators; `nil` for none.
    let administrators: AdministratorGroup?
    /// The mode of the socket that the daemon creates.
    let mode: UInt32
    let group: UInt32?

    /// - Throws: an error if a group named in the configuration does not exist.
    init(_ configuration: Configuration, environment: ProcessEnvironment) throws(FileError) {
        let control = configuration.control
        func group(_ name: String, at key: String) throws(FileError) -> UInt32 {
            if let found = Self.group(name) { return found }
            throw configuration.positions.error(
                at: key,
                "\(key): there is no group \(name) on this system; create it with groupadd or name another group")
        }
        daemonUser = environment.uid
        // The default is the group `dld` if the system has one. A user's own daemon is for that user only.
        let fallback = environment.isSystem ? Self.group("dld") : nil
        if let name = control.group {
            self.group = try group(name, at: "control.group")
        } else {
            self.group = fallback
        }
        mode = control.mode ?? (self.group == nil ? 0o600 : 0o660)
        isShared = mode & 0o066 != 0 || environment.isSystem
        if let name = control.adminGroup {
            administrators = AdministratorGroup(gid: try group(name, at: "control.admin-group"))
        } else {
            administrators = nil
        }
    }

    func mayConnect(_ peer: Peer) -> Bool { isShared || isAdministrator(peer) }

    func isAdministrator(_ peer: Peer) -> Bool {
        peer.uid == 0 || peer.uid == daemonUser || administrators?.contains(peer) ?? false
    }

    /// Returns the id of a group, found by name or number.
    static func group(_ name: String) -> UInt32? {
        (UInt32(name).flatMap { getgrgid($0) } ?? getgrnam(name))?.pointee.gr_gid
    }
}
