/// The result of a destination: the final place of the file, and the place of its part file.
struct DownloadDecision: Sendable, Equatable, Codable {
    /// The absolute path of the directory of the file and its part file.
    var directory: String
    var name: String
    var options: DownloadOptions
    /// Whether only its owner may read the finished file.
    var isPrivate: Bool
    var partName: String
    /// The name of the download as recorded on its part file; it is unique.
    var owner: String
    /// The required digest of the file.
    var digest: FileDigest?

    static let longestPath = 4096
    static let (partStart, partEnd) = (UInt8(ascii: "."), ".part")

    /// Whether the value is one that this type could have created. A decoded value may contain anything.
    var isSound: Bool {
        directory.utf8.first == UInt8(ascii: "/") && directory.utf8.count < Self.longestPath
            && !directory.utf8.contains(0) && Self.isName(name) && Self.isName(partName)
            && partName.utf8.first == Self.partStart && partName.utf8.suffix(5).elementsEqual(Self.partEnd.utf8)
            && !owner.isEmpty && owner.utf8.count <= 64 && !owner.utf8.contains(0)
    }

    static func isName(_ name: String) -> Bool {
        (1...SafeFileName.maximumLength).contains(name.utf8.count) && name != "." && name != ".."
            && name.utf8.allSatisfy { $0 != UInt8(ascii: "/") && $0 != 0 }
    }

    var path: String { directory + (directory == "/" ? "" : "/") + name }
}
