/// The permitted changes to the file system; public as `DownloadDestination.Options`.
public struct DownloadOptions: OptionSet, Sendable, Codable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// An existing file of that name is replaced; a directory is not.
    public static let removePreviousFile = DownloadOptions(rawValue: 1)
    /// Missing directories are created.
    public static let createIntermediateDirectories = DownloadOptions(rawValue: 2)
}
