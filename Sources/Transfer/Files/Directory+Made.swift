import CLinux
import Glibc

/// Which directories this process's user made for what was to lie in them, in an extended attribute of theirs.
extension Directory {
    fileprivate static let madeMark = "user.dld.made"

    /// As ``open(root:subdirectory:makesRoot:)``; what is made beneath the root is told from what its user made otherwise.
    package static func open(
        root: String, marking subdirectory: String, makesRoot: Bool
    ) throws(TransferError) -> Directory {
        try open(root: root, subdirectory: subdirectory, makesRoot: makesRoot) { $0.noteMade() }
    }

    /// Notes that this process made it; where the file system keeps no marks, nothing tells.
    private func noteMade() {
        // Whoever may rename what lies beside it could have put another one of this user's in its place.
        guard isOwned(by: [geteuid()]), (try? names().isEmpty) == true else { return }
        _ = linux_fsetxattr(descriptor.raw, Self.madeMark, "1", 1)  // see above
    }
}

extension Directory.Step {
    /// Whether this process's user made it for what was to lie in it. What others could have written says nothing: the
    /// caller makes sure that the directory is that user's.
    package var isMade: Bool {
        var value: UInt8 = 0
        return linux_fgetxattr(descriptor.raw, Directory.madeMark, &value, 1) == 1
    }
}
