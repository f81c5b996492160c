import TaskModel

/// Text for a command line that the user may copy.
enum Shell {
    /// Returns a word quoted for a shell.
    static func quoted(_ word: String) -> String {
        let isPlain = !word.isEmpty && word.utf8.allSatisfy { $0.isLetterOrDigit || "/._-+:@,".utf8.contains($0) }
        return isPlain ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
    }
}
