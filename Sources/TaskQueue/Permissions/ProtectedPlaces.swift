import Transfer

/// The daemon's own directories: its state, its configuration and its socket. No task may read from or write to them,
/// even where a root encloses them.
package struct ProtectedPlaces: Sendable, Equatable {
    /// Absolute paths.
    package var paths: [String]

    package init(_ paths: [String]) { self.paths = paths }

    /// The inodes to which the paths currently lead.
    var inodes: Set<Inode> { Set(paths.compactMap { Inode.at($0) }) }

    /// Whether the path from a root to a file avoids all protected directories.
    ///
    /// - Parameter parents: the directories that contain the file, from the root of the file system downwards.
    /// - Returns: `nil` where none of `roots` is on the path. The root nearest to the file counts, since it may itself
    ///   lie in a protected directory.
    func areAvoided(by parents: [Inode], beneath roots: Set<Inode>) -> Bool? {
        guard let start = parents.lastIndex(where: roots.contains) else { return nil }
        let inodes = inodes
        return !parents[start...].contains { inodes.contains($0) }
    }
}
