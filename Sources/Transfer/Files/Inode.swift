import Glibc

/// What a path or a descriptor leads to, whatever it is called.
public struct Inode: Hashable, Sendable {
    /// The file system.
    let device: UInt64
    package let number: UInt64

    init(_ information: stat) {
        device = UInt64(information.st_dev)
        number = UInt64(information.st_ino)
    }

    /// What is at `path`, where links lead to; `nil` where nothing is, or the system does not say.
    public static func at(_ path: String) -> Inode? {
        var information = stat()
        return stat(path, &information) == 0 ? Inode(information) : nil
    }

    /// What is at `path`, or at the nearest directory on the way there that exists.
    static func nearest(to path: String) -> Inode? {
        var path = Substring(path)
        while true {
            if let found = at(path.isEmpty ? "/" : String(path)) { return found }
            guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return nil }
            path = path[..<slash]
        }
    }
}
