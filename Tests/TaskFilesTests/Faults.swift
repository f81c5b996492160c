import TaskFiles

/// Returns the error of a file named `f`.
func fault(_ line: Int, _ column: Int, _ message: String) -> FileError {
    FileError(file: "f", line: line, column: column, message: message)
}

/// Parses a queue file in `/base`, read at 2024-01-01T00:00:00Z with UTC as local time.
///
/// - Parameter files: the files beside it, by path.
func queue(_ text: String, files: [String: String] = [:]) throws(FileError) -> QueueFile {
    try queue(text, readFile: reading(files))
}

func queue(_ text: String, readFile: @escaping ReadFile) throws(FileError) -> QueueFile {
    try QueueFile(
        parsing: text, file: "f", baseDirectory: "/base", now: 1_704_067_200_000, utcOffset: { _ in 0 },
        readFile: readFile)
}

/// Returns a reader of `files` that fails for all others.
func reading(_ files: [String: String]) -> ReadFile {
    { (path, limit) throws(UnreadableFile) in
        guard let text = files[path] else { throw UnreadableFile("cannot open \(path)") }
        guard text.utf8.count <= limit else { throw UnreadableFile("\(path) is longer than \(limit)") }
        return Array(text.utf8)
    }
}
