import CLinux
import Glibc

extension Directory {
    /// Moves the entry `name` to another directory of the same file system, under the same name.
    ///
    /// The move may be undone by a power failure until both directories have been synced.
    ///
    /// - Parameter replaces: whether an existing entry of that name in the other directory is replaced.
    /// - Returns: `false` if there is no such entry here.
    /// - Throws: if the entry cannot be moved. ``TransferError/systemError`` is `EXDEV` if the other directory is on
    ///   another file system, and `EEXIST` if the name is taken there.
    package func move(_ name: String, to other: Directory, replaces: Bool) throws(TransferError) -> Bool {
        let error = rename(name, to: other, replaces: replaces)
        switch error {
        case 0: return true
        case ENOENT: return false
        default: throw .file(error, doing: "move \(path(of: name)) to \(other.path)")
        }
    }

    /// - Returns: 0 or the `errno`.
    private func rename(_ name: String, to other: Directory, replaces: Bool) -> Int32 {
        let (from, to) = (descriptor.raw, other.descriptor.raw)
        if !replaces {
            if linux_rename_noreplace(from, name, to, name) == 0 { return 0 }
            guard errno == EINVAL || errno == ENOSYS else { return errno }
            // Some file systems do not support renaming without replacing. A check beforehand is sufficient, since no
            // other process creates such names there.
            if other.contains(name) { return EEXIST }
        }
        return renameat(from, name, to, name) == 0 ? 0 : errno
    }
}
