import ControlServer
import Glibc
import TaskFiles

/// Who may use the control socket, and who may do everything on it.
struct AccessRule: Sendable {
    let daemonUser: UInt32
    /// Users other than root and the daemon's own get in.
    let isShared: Bool
    let administrators: Set<UInt32>
    /// For the socket that the daemon makes.
    let mode: UInt32
    let group: UInt32?

    /// - Throws: a group that the configuration names and that does not exist.
    init(_ control: Configuration.Control, surroundings: Surroundings) throws(UnknownGroup) {
        daemonUser = surroundings.uid
        // The group `dld` where the system has one; a user's own daemon is that user's alone.
        let fallback = surroundings.isSystem ? Self.group("dld")?.gid : nil
        if let name = control.group {
            guard let found = Self.group(name) else { throw UnknownGroup(key: "control.group", name: name) }
            group = found.gid
        } else {
            group = fallback
        }
        mode = control.mode ?? (group == nil ? 0o600 : 0o660)
        isShared = mode & 0o066 != 0 || surroundings.isSystem
        if let name = control.adminGroup {
            guard let found = Self.group(name) else { throw UnknownGroup(key: "control.admin-group", name: name) }
            administrators = found.members
        } else {
            administrators = []
        }
    }

    struct UnknownGroup: Error, CustomStringConvertible {
        let key: String
        let name: String
        var description: String { "\(key): there is no group \(name) on this system" }
    }

    func mayConnect(_ peer: Peer) -> Bool { isShared || isAdministrator(peer) }

    func isAdministrator(_ peer: Peer) -> Bool {
        peer.uid == 0 || peer.uid == daemonUser || administrators.contains(peer.uid)
    }

    /// A group by name or number, with the uids of its members.
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
