/// A file system that was unmounted while downloads wrote to a directory on it.
public struct DetachedVolume: Error, Equatable {
    /// The path of the directory.
    public let path: String
    private let fileSystem: UInt64
    /// The inode found at the path at that time, or at its nearest existing ancestor.
    private let beneath: Inode?

    /// Creates the value for the directory at `path`, if it was on `mount` and `mount` is no longer attached.
    public init?(at path: String, on mount: Mount) {
        guard !mount.isAttached else { return nil }
        self.path = path
        fileSystem = mount.fileSystem
        beneath = Inode.nearest(to: path)
    }

    /// Whether the path still leads to the directory beneath the mount point. Downloads must not be written there.
    public var isGone: Bool {
        let found = Inode.nearest(to: path)
        // A bind mount and the directory beneath it can be on the same file system; then the inodes are compared.
        return beneath?.device == fileSystem ? found == beneath : found?.device == beneath?.device
    }
}

extension TransferError {
    /// Returns the error for a path that no longer leads to the file system with a download's bytes.
    public static func detached(_ volume: DetachedVolume) -> TransferError {
        TransferError(
            .volumeDetached,
            "the file system that held \(volume.path) was unmounted; mount it again to continue the download",
            underlying: volume)
    }
}
