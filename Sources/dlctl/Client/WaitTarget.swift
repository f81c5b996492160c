import TaskModel

/// The tasks that a command waits for, and how the user named them.
struct WaitTarget {
    var ids: [TaskID]
    /// The batch that was named; `nil` if the tasks were named by their ids or with `--all`.
    var batch: String?
    var isAll = false

    /// The number of ids that are repeated in a command.
    private static let shownIDs = 20

    /// Returns the command that waits for the same tasks again.
    ///
    /// - Parameter socket: the socket that was given on the command line.
    func command(socket: String?) -> String {
        let words: [String] =
            if let batch {
                (isAll ? ["--all"] : []) + ["--batch", Shell.quoted(batch)]
            } else if isAll || ids.count > Self.shownIDs {
                ["--all"]
            } else {
                ids.map(\.description)
            }
        let start = socket.map { ["dlctl", "--socket", Shell.quoted($0)] } ?? ["dlctl"]
        return (start + ["wait"] + words).joined(separator: " ")
    }
}
