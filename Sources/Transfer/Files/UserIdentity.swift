package import Glibc

/// A user as the kernel identifies one, with the effective groups (credentials(7)).
package struct UserIdentity: Sendable, Hashable {
    package var uid: UInt32
    /// The primary group and the supplementary ones, in any order.
    package var groups: [UInt32]

    package init(uid: UInt32, groups: [UInt32]) {
        self.uid = uid
        self.groups = groups
    }

    /// A set of access permissions on a file.
    package struct Access: OptionSet, Sendable {
        package let rawValue: UInt16

        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let execute = Access(rawValue: 1)
        package static let write = Access(rawValue: 2)
        package static let read = Access(rawValue: 4)
        /// The permission to access the entries of a directory.
        package static let search = execute
    }

    /// Whether the uid alone determines a user's access to a file, regardless of the user's groups.
    static func isJudgedByNumber(_ uid: UInt32, _ status: stat, _ list: AccessControlList?) -> Bool {
        uid == 0 || status.st_uid == uid || list?.entries.contains { $0.tag == .user && $0.id == uid } == true
    }

    /// Whether the kernel would grant the user this access, by owner, mode and access control list (acl(5), "ACCESS
    /// CHECK ALGORITHM"). Root is granted every access.
    package func may(_ wanted: Access, _ status: stat, _ list: AccessControlList?) -> Bool {
        if uid == 0 { return true }
        guard let list else { return mayByMode(wanted, status) }
        func permits(_ permissions: UInt16) -> Bool { permissions & wanted.rawValue == wanted.rawValue }
        func entry(_ tag: AccessControlList.Tag) -> UInt16 { list.entries.first { $0.tag == tag }?.permissions ?? 0 }
        if status.st_uid == uid { return permits(entry(.owner)) }
        let mask = list.entries.first { $0.tag == .mask }?.permissions ?? 7
        if let own = list.entries.first(where: { $0.tag == .user && $0.id == uid }) {
            return permits(own.permissions & mask)
        }
        let matching = list.entries.filter { entry in
            switch entry.tag {
            case .owningGroup: groups.contains(status.st_gid)
            case .group: groups.contains(entry.id)
            case .owner, .user, .mask, .other: false
            }
        }
        if !matching.isEmpty { return matching.contains { permits($0.permissions & mask) } }
        return permits(entry(.other))
    }

    private func mayByMode(_ wanted: Access, _ status: stat) -> Bool {
        let shift = status.st_uid == uid ? 6 : groups.contains(status.st_gid) ? 3 : 0
        return UInt16(truncatingIfNeeded: status.st_mode >> shift) & wanted.rawValue == wanted.rawValue
    }

    /// Whether the kernel would grant the user this access to a descriptor's file, as ``may(_:_:_:)``; `false` if its
    /// access control list cannot be read.
    func may(_ wanted: Access, descriptor: Int32, _ status: stat) -> Bool {
        if uid == 0 { return true }
        do throws(TransferError) {
            return may(wanted, status, try AccessControlList.read(.access, of: descriptor))
        } catch {
            return false
        }
    }
}
