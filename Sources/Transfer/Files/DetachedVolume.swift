/// A file system that was taken off its place while downloads went to a directory of it.
public struct DetachedVolume: Error, Equatable {
    /// Of the directory.
    public let path: String
    private let fileSystem: UInt64
    /// What there was at the path then, or the nearest to it that there was.
    private let beneath: Inode?

    /// That of the directory at `path`, if that was on `mount` and `mount` is no longer there.
    public init?(at path: String, on mount: Mount) {
        guard !mount.isAttached else { return nil }
        self.path = path
        fileSystem = mount.fileSystem
        beneath = Inode.nearest(to: path)
    }

    /// Whether the path still leads to what lies beneath: nothing of the downloads' is to land there.
    public var isGone: Bool {
        let found = Inode.nearest(to: path)
        // A bind mount and what it is taken off from may be of one file system.
        return beneath?.device == fileSystem ? found == beneath : found?.device == beneath?.device
    }
}
