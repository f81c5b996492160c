import CLinux
import Glibc

/// Directories created for downloads. An extended attribute marks a directory that this process's user created.
extension Directory {
    /// The attribute's name. Only a process with `CAP_SYS_ADMIN` can set or read it (xattr(7)). A user who has write
    /// access through a group or an access control list cannot.
    fileprivate static let madeMark = "trusted.dld.made"

    /// Creates directories beneath this one, each nested in the previous one, and marks them as created by this
    /// process.
    ///
    /// The chain stops at a directory that another process created in the meantime; nothing is created inside it.
    ///
    /// - Returns: the last directory, or this one if there are no names; `nil` if another process created one of them
    ///   at the same time.
    package func make(_ names: [String]) throws(TransferError) -> Directory? {
        let made = try chain(of: names, marked: true)
        return made.isWhole ? made.last : nil
    }

    /// Creates the missing directories of a chain beneath this one, and opens each.
    ///
    /// - Parameter isMarked: whether each directory is marked as created. In this case an existing one ends the chain.
    /// - Returns: the last directory of the chain, and whether the chain is complete.
    func chain(of names: [String], marked isMarked: Bool) throws(TransferError) -> (last: Directory, isWhole: Bool) {
        var last = self
        var isWhole = true
        var changed: [Directory] = []
        for name in names {
            let path = last.path(of: name)
            let begun = isMarked ? try Self.moment() : 0
            let error = mkdirat(last.descriptor.raw, name, 0o777) == 0 ? 0 : errno
            guard error == 0 || error == EEXIST else { throw .naming(error, doing: "create the directory \(path)") }
            let raw = linux_openat_beneath(last.descriptor.raw, name, O_RDONLY | O_DIRECTORY, 0)
            guard raw >= 0 else { throw .file(errno, doing: "open the directory \(path)") }
            let child = FileDescriptorOwner(raw)
            if error == 0 {
                changed.append(last)
            } else if isMarked {
                isWhole = false
                break
            }
            last = try Directory(descriptor: child, path: path)
            if isMarked { try last.recordMade(since: begun) }
        }
        // The new entries must survive a power failure as reliably as the file in the last directory. All directories
        // are created before the first fsync, since that usually writes the other entries to the disk too.
        for directory in changed { try directory.synchronize() }
        return (last, isWhole)
    }

    /// Returns the time in nanoseconds since 1970, from the clock that file systems use.
    private static func moment() throws(TransferError) -> Int64 {
        var now = timespec()
        guard clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 else { throw .file(errno, doing: "read the clock") }
        return Int64(now.tv_sec) &* 1_000_000_000 &+ Int64(now.tv_nsec)
    }

    /// Marks the directory as created by this process.
    ///
    /// A user who may rename its siblings could have put another directory of this process's user in its place. That
    /// one is older, and the creation time of a directory cannot be set. Without creation times nothing is marked. An
    /// error in setting the mark is ignored, as on a file system without such attributes.
    ///
    /// - Parameter moment: a time before the creation, in nanoseconds since 1970.
    /// - Throws: `pathNotAllowed` if the directory was exchanged.
    private func recordMade(since moment: Int64) throws(TransferError) {
        let birth = linux_birth(descriptor.raw)
        guard birth >= 0 else { return }
        guard birth >= moment, isOwned(by: [geteuid()]) else {
            throw TransferError(.pathNotAllowed, "\(path) was replaced by another directory while it was created")
        }
        _ = linux_fsetxattr(descriptor.raw, Self.madeMark, "1", 1)  // errors are ignored, see above
    }
}

extension Directory.Step {
    /// Whether this process's user created the directory for downloads.
    package var isMade: Bool {
        var value: UInt8 = 0
        return linux_fgetxattr(descriptor.raw, Directory.madeMark, &value, 1) == 1
    }
}
