import CLinux
import Glibc

/// Directories that are made for what is to lie in them. That this process's user made one, an extended attribute of it
/// says.
extension Directory {
    /// The attribute's name. Only a process with `CAP_SYS_ADMIN` can set or see it (xattr(7)): nobody whom group or list
    /// lets write there.
    fileprivate static let madeMark = "trusted.dld.made"

    /// Makes directories beneath this one, each in the one before, and marks them as made.
    ///
    /// Nothing is made in a directory that somebody else put there meanwhile.
    ///
    /// - Returns: the last, or this one without names; `nil` where somebody made one of them in the same moment.
    package func make(_ names: [String]) throws(TransferError) -> Directory? {
        let made = try chain(of: names, marked: true)
        return made.isWhole ? made.last : nil
    }

    /// Makes what is missing of a chain of directories beneath this one, and opens each.
    ///
    /// - Parameter isMarked: each is marked as made, and one that is there already ends the chain.
    /// - Returns: the last directory of the chain, and whether it ended with the last name.
    func chain(of names: [String], marked isMarked: Bool) throws(TransferError) -> (last: Directory, isWhole: Bool) {
        var last = self
        var isWhole = true
        var changed: [Directory] = []
        for name in names {
            let path = last.path(of: name)
            let begun = isMarked ? try Self.moment() : 0
            let error = mkdirat(last.descriptor.raw, name, 0o777) == 0 ? 0 : errno
            guard error == 0 || error == EEXIST else { throw .naming(error, doing: "make the directory \(path)") }
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
            if isMarked { try last.noteMade(since: begun) }
        }
        // The new entries must outlive a power cut as surely as the file that will lie in the last of them. All of them
        // are made first: the first of these calls mostly brings the others' to the disk too.
        for directory in changed { try directory.synchronize() }
        return (last, isWhole)
    }

    /// Nanoseconds since 1970, of the clock that file systems go by.
    private static func moment() throws(TransferError) -> Int64 {
        var now = timespec()
        guard clock_gettime(CLOCK_REALTIME_COARSE, &now) == 0 else { throw .file(errno, doing: "read the clock") }
        return Int64(now.tv_sec) &* 1_000_000_000 &+ Int64(now.tv_nsec)
    }

    /// Notes that this process made it.
    ///
    /// Whoever may rename what lies beside it could have put another one of this user's in its place. That one is older,
    /// and nobody can set when a directory was made. Where the file system does not tell, or keeps no marks, nothing is
    /// noted.
    ///
    /// - Parameter moment: nanoseconds since 1970, before it was made.
    private func noteMade(since moment: Int64) throws(TransferError) {
        let birth = linux_birth(descriptor.raw)
        guard birth >= 0 else { return }
        guard birth >= moment, isOwned(by: [geteuid()]) else {
            throw TransferError(.pathNotAllowed, "\(path) was exchanged for another directory while it was made")
        }
        _ = linux_fsetxattr(descriptor.raw, Self.madeMark, "1", 1)  // see above
    }
}

extension Directory.Step {
    /// Whether this process's user made it for what was to lie in it.
    package var isMade: Bool {
        var value: UInt8 = 0
        return linux_fgetxattr(descriptor.raw, Directory.madeMark, &value, 1) == 1
    }
}
