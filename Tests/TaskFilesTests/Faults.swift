import TaskFiles

/// The error of a file named `f`.
func fault(_ line: Int, _ column: Int, _ message: String) -> FileError {
    FileError(file: "f", line: line, column: column, message: message)
}

/// A queue file in `/base`, read at 2024-01-01T00:00:00Z by clocks that show UTC.
func queue(_ text: String) throws(FileError) -> QueueFile {
    try QueueFile(
        parsing: text, file: "f", baseDirectory: "/base", now: 1_704_067_200_000, utcOffsetSeconds: 0)
}
