import Transfer

/// Directories of the daemon itself, which no task reads from or writes to, whatever roots enclose them: its state, its
/// configuration and its socket.
package struct ProtectedPlaces: Sendable, Equatable {
    /// Absolute.
    package var paths: [String]

    package init(_ paths: [String]) { self.paths = paths }

    /// What the paths lead to at this moment.
    var inodes: Set<Inode> { Set(paths.compactMap { Inode.at($0) }) }

    /// Whether a way from a root to a file leads into one of them.
    ///
    /// - Parameter parents: the directories that hold the file, from the root of the file system on.
    /// - Returns: `nil` where none of `roots` is on the way. The root that is nearest to the file counts: it may lie in a
    ///   protected directory.
    func areAvoided(by parents: [Inode], beneath roots: Set<Inode>) -> Bool? {
        guard let start = parents.lastIndex(where: roots.contains) else { return nil }
        let inodes = inodes
        return !parents[start...].contains { inodes.contains($0) }
    }
}
