import Glibc
import TaskFiles
import TaskModel

/// A reader of task files.
enum TaskFileReader {
    /// The maximum file size in bytes, enough for a million entries with long URLs.
    private static let sizeLimit = 1 << 30

    enum Content {
        /// A list of URLs, whose entries are read and validated later.
        case list(URLList.Reader)
        case file(QueueFile)
    }

    /// Opens and parses a file of tasks.
    ///
    /// - Parameter path: the path of a file, or `-`.
    /// - Throws: ``Failure`` with `FILE:LINE:COLUMN: message` for invalid contents. A URL list is not read yet.
    static func open(_ path: String, for option: String, _ input: inout InputText) throws(Failure) -> Content {
        let bytes = try input.read(path, for: option, limit: sizeLimit)
        if InputFile.detect(bytes) == .urlList { return .list(URLList.Reader(bytes, file: shown(path))) }
        return .file(try parse(bytes, path))
    }

    /// Reads a file as ``open(_:for:_:)`` does, including every entry of a URL list.
    static func read(_ path: String, for option: String, _ input: inout InputText) throws(Failure) -> QueueFile {
        try parse(try input.read(path, for: option, limit: sizeLimit), path)
    }

    private static func parse(_ bytes: [UInt8], _ path: String) throws(Failure) -> QueueFile {
        do throws(FileError) {
            return try InputFile.parse(
                bytes, file: shown(path), baseDirectory: try directory(of: path), now: Clock.now(),
                utcOffset: { LocalClock.utcOffset(at: $0) }, readFile: InputText.file)
        } catch {
            throw failure(error)
        }
    }

    static func failure(_ error: FileError) -> Failure {
        var failure = at("\(error)", code: error.code)
        failure.others = Array(error.lines.dropFirst())
        return failure
    }

    /// Returns the error for an invalid entry of a readable file.
    static func error(_ message: String, file: String, entry: QueueEntry, code: ErrorCode) -> FileError {
        FileError(file: shown(file), line: entry.line, column: entry.column, code: code, message: message)
    }

    /// Returns the failure for a file without a task.
    static func empty(_ path: String) -> Failure {
        at("\(shown(path)): has no task; --allow-empty accepts that", code: .usage)
    }

    static func shown(_ path: String) -> String { path == "-" ? "standard input" : path }

    private static func at(_ message: String, code: ErrorCode) -> Failure {
        var failure = Failure(.usage, code: code, field: "file", message)
        failure.bare = true
        return failure
    }

    /// Returns the base directory for paths in the file: the file's directory, absolute, or the current one for
    /// standard input.
    private static func directory(of path: String) throws(FileError) -> String {
        let slash = path == "-" ? nil : path.lastIndex(of: "/")
        let place = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) }
        // Without a current directory, no relative path leads to a file.
        return (place == nil ? FilePath.currentDirectory() : place.flatMap(FilePath.absolute)) ?? "/"
    }
}
