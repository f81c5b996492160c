import TaskFiles

/// What the owner of a dropped file may do: as a peer of the same user on the control socket.
package struct DropRules: Sendable {
    /// Whether a user may queue anything.
    var mayQueue: @Sendable (UInt32) -> Bool
    var isAdministrator: @Sendable (UInt32) -> Bool
    /// Reads the files that an entry names: for the daemon's own user and root alone.
    var readFile: @Sendable (String, Int) throws(UnreadableFile) -> [UInt8]

    package init(
        mayQueue: @escaping @Sendable (UInt32) -> Bool, isAdministrator: @escaping @Sendable (UInt32) -> Bool,
        readFile: @escaping @Sendable (String, Int) throws(UnreadableFile) -> [UInt8]
    ) {
        self.mayQueue = mayQueue
        self.isAdministrator = isAdministrator
        self.readFile = readFile
    }
}
