import Transfer

/// The directories from which files were removed. Until they are synced, the files can reappear after a power failure.
struct TouchedDirectories {
    private var directories: [String: Directory] = [:]

    mutating func insert(_ directory: Directory) { directories[directory.path] = directory }

    /// Syncs the directories. Errors are ignored: a disk that fails here also fails the removal of files, which must
    /// not prevent the removal of tasks.
    func synchronize() {
        for directory in directories.values { try? directory.synchronize() }
    }
}
