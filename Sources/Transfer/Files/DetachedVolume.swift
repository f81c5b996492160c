/// A file system that was taken off its place, or covered by another, while a download wrote to it.
public struct DetachedVolume: Error, Equatable {
    /// Of the download's directory.
    public let path: String
    /// What the path led to then: nothing of the download's is to land there.
    public let beneath: Directory.Entry
}
