import Glibc

/// The identity of a file or directory, independent of its path.
public struct Inode: Hashable, Sendable {
    /// The device number of the file system.
    let device: UInt64
    package let number: UInt64

    init(_ information: stat) {
        device = UInt64(information.st_dev)
        number = UInt64(information.st_ino)
    }

    /// Returns the inode at `path`, with symbolic links followed; `nil` if there is none or the system reports an
    /// error.
    public static func at(_ path: String) -> Inode? {
        var information = stat()
        return stat(path, &information) == 0 ? Inode(information) : nil
    }

    /// Returns the inode at `path`, or that of its nearest existing ancestor directory.
    static func nearest(to path: String) -> Inode? {
        var path = Substring(path)
        while true {
            if let found = at(path.isEmpty ? "/" : String(path)) { return found }
            guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
            path = path[..<slash]
        }
    }
}
