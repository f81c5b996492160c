import ControlServer
import Glibc
import TaskFiles

/// The rule that decides which users may use the control socket and which are administrators.
struct AccessRule: Sendable {
    let daemonUser: UInt32
    /// Whether users other than root, the daemon's own and administrators may connect.
    let isShared: Bool
    let administrators: Set<UInt32>
    /// The mode of the socket that the daemon creates.
    let mode: UInt32
    let group: UInt32?

    /// - Throws: an error if a group named in the configuration does not exist.
    init(_ configuration: Configuration, environment: ProcessEnvironment) throws(FileError) {
        let control = configuration.control
        func group(_ name: String, at key: String) throws(FileError) -> (gid: UInt32, members: Set<UInt32>) {
            if let found = Self.group(name) { return found }
            throw configuration.positions.error(
                at: key,
                "\(key): there is no group \(name) on this system; create it with groupadd or name another group")
        }
        daemonUser = environment.uid
        // The default is the group `dld` if the system has one. A user's own daemon is for that user only.
        let fallback = environment.isSystem ? Self.group("dld")?.gid : nil
        if let name = control.group {
            self.group = try group(name, at: "control.group").gid
        } else {
            self.group = fallback
        }
        mode = control.mode ?? (self.group == nil ? 0o600 : 0o660)
        isShared = mode & 0o066 != 0 || environment.isSystem
        if let name = control.adminGroup {
            administrators = try group(name, at: "control.admin-group").members
        } else {
            administrators = []
        }
    }

    func mayConnect(_ peer: Peer) -> Bool { isShared || isAdministrator(peer) }

    func isAdministrator(_ peer: Peer) -> Bool {
        peer.uid == 0 || peer.uid == daemonUser || administrators.contains(peer.uid)
    }

    /// Returns a group, found by name or number, with the uids of its members.
    private static func group(_ name: String) -> (gid: UInt32, members: Set<UInt32>)? {
        let entry = UInt32(name).flatMap { getgrgid($0) } ?? getgrnam(name)
        guard let entry else { return nil }
        var members: Set<UInt32> = []
        var next = entry.pointee.gr_mem
        while let pointer = next, let member = pointer.pointee {
            if let user = getpwnam(member) { members.insert(user.pointee.pw_uid) }
            next = pointer + 1
        }
        return (entry.pointee.gr_gid, members)
    }
}
