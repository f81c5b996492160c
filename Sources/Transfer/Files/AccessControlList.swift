import CLinux
import Glibc

/// A POSIX access control list (acl(5)) in the format of the kernel's extended attribute.
package struct AccessControlList: Sendable, Equatable {
    /// The kind of subject that an entry applies to.
    package enum Tag: UInt16, Sendable {
        case owner = 0x01
        case user = 0x02
        case owningGroup = 0x04
        case group = 0x08
        case mask = 0x10
        case other = 0x20
    }

    package struct Entry: Sendable, Equatable {
        package var tag: Tag
        /// The permission bits: read 4, write 2, execute 1.
        package var permissions: UInt16
        /// The uid or gid of ``Tag/user`` and ``Tag/group``; `UInt32.max` for the other tags.
        package var id: UInt32

        package init(_ tag: Tag, _ permissions: UInt16, id: UInt32 = .max) {
            self.tag = tag
            self.permissions = permissions
            self.id = id
        }
    }

    package var entries: [Entry]

    package init(_ entries: [Entry]) { self.entries = entries }

    /// Creates the list that is equivalent to a file mode.
    package init(mode: UInt32) {
        entries = [
            Entry(.owner, UInt16(mode >> 6 & 7)), Entry(.owningGroup, UInt16(mode >> 3 & 7)),
            Entry(.other, UInt16(mode & 7)),
        ]
    }

    /// Returns the list with these permissions added for `user`.
    package func granting(_ permissions: UInt16, to user: UInt32) -> AccessControlList {
        var list = self
        if let index = list.entries.firstIndex(where: { $0.tag == .user && $0.id == user }) {
            list.entries[index].permissions |= permissions
        } else {
            list.entries.append(Entry(.user, permissions, id: user))
        }
        if let index = list.entries.firstIndex(where: { $0.tag == .mask }) {
            list.entries[index].permissions |= permissions
        } else {
            let group = list.entries.first { $0.tag == .owningGroup }?.permissions ?? 0
            list.entries.append(Entry(.mask, group | permissions))
        }
        // The kernel accepts the entries in this order only (posix_acl_valid).
        list.entries.sort { ($0.tag.rawValue, $0.id) < ($1.tag.rawValue, $1.id) }
        return list
    }

    /// Returns the list with each entry restricted to `permissions`.
    func limited(to permissions: UInt16) -> AccessControlList {
        AccessControlList(entries.map { Entry($0.tag, $0.permissions & permissions, id: $0.id) })
    }

    /// The kind of list; a file can have both.
    package enum Kind: String, Sendable {
        /// The list that controls access to the file.
        case access = "system.posix_acl_access"
        /// The initial list of files created in the directory.
        case defaults = "system.posix_acl_default"
    }

    private static let version: UInt32 = 2
    /// The maximum length of an extended attribute in bytes, set by the kernel (xattr(7)).
    private static let longest = 65_536

    /// Parses the extended attribute; `nil` if its form is unknown.
    ///
    /// - Parameter bytes: little-endian, beginning with the version (`linux/posix_acl_xattr.h`).
    init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= 4, (bytes.count - 4) % 8 == 0,
            UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)) == Self.version
        else { return nil }
        entries = []
        for offset in stride(from: 4, to: bytes.count, by: 8) {
            let tag = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
            guard let tag = Tag(rawValue: tag) else { return nil }
            let permissions = UInt16(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 2, as: UInt16.self))
            let id = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self))
            entries.append(Entry(tag, permissions, id: id))
        }
    }

    var bytes: [UInt8] {
        func little<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
            withUnsafeBytes(of: number.littleEndian) { Array($0) }
        }
        return entries.reduce(into: little(Self.version)) { bytes, entry in
            bytes += little(entry.tag.rawValue) + little(entry.permissions) + little(entry.id)
        }
    }

    /// Reads the list of a descriptor's file. The descriptor may have been opened with `O_PATH`.
    ///
    /// - Returns: `nil` if the file has no list, or the file system does not support them.
    package static func read(
        _ kind: Kind, of descriptor: Int32
    ) throws(TransferError) -> AccessControlList? {
        let name = "/proc/self/fd/\(descriptor)"
        var space = [UInt8](repeating: 0, count: 1024)
        var count = linux_getxattr(name, kind.rawValue, &space, space.count)
        if count < 0, errno == ERANGE {
            space = [UInt8](repeating: 0, count: longest)
            count = linux_getxattr(name, kind.rawValue, &space, space.count)
        }
        guard count >= 0 else {
            if errno == ENODATA || errno == ENOTSUP { return nil }
            throw .file(errno, doing: "read an access control list")
        }
        guard
            let list = space.withUnsafeBytes({
                AccessControlList(bytes: UnsafeRawBufferPointer(rebasing: $0[..<count]))
            })
        else { throw TransferError(.io, "an access control list has an unknown format") }
        return list
    }

    /// Whether the descriptor's file system supports access control lists.
    static func areSupported(to descriptor: Int32) -> Bool {
        linux_getxattr("/proc/self/fd/\(descriptor)", Kind.access.rawValue, nil, 0) >= 0 || errno != ENOTSUP
    }

    /// Sets the list on a descriptor's file.
    ///
    /// - Returns: `false` if the file system does not support such lists.
    package func write(_ kind: Kind, to descriptor: Int32) throws(TransferError) -> Bool {
        let bytes = bytes
        if linux_setxattr("/proc/self/fd/\(descriptor)", kind.rawValue, bytes, bytes.count) == 0 { return true }
        if errno == ENOTSUP { return false }
        throw .file(errno, doing: "set an access control list")
    }

    /// The mode bits that correspond to the list. The group bits are those of the mask, if there is one.
    package var mode: UInt32 {
        func bits(_ tag: Tag) -> UInt32? { entries.first { $0.tag == tag }.map { UInt32($0.permissions) & 7 } }
        let group = bits(.mask) ?? bits(.owningGroup) ?? 0
        return (bits(.owner) ?? 0) << 6 | group << 3 | (bits(.other) ?? 0)
    }
}
