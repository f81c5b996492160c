package import TaskFiles

/// The permissions of a dropped file's owner. They are those of the same user as a client on the control socket.
package struct DropRules: Sendable {
    /// Returns whether a user may queue anything.
    var mayQueue: @Sendable (UInt32) -> Bool
    var isAdministrator: @Sendable (UInt32) -> Bool
    /// Reads the files that an entry names. Used only for the daemon's own user and root.
    var readFile: SendableReadFile

    package init(
        mayQueue: @escaping @Sendable (UInt32) -> Bool, isAdministrator: @escaping @Sendable (UInt32) -> Bool,
        readFile: @escaping SendableReadFile
    ) {
        self.mayQueue = mayQueue
        self.isAdministrator = isAdministrator
        self.readFile = readFile
    }
}
