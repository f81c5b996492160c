import Glibc
import TaskFiles
import TaskModel

/// Opens a file of tasks.
enum TaskFileReader {
    /// A million entries with long URLs.
    private static let sizeLimit = 1 << 30

    enum Content {
        /// Nothing but URLs, which say where they stand when they are read.
        case list(URLList.Reader)
        case file(QueueFile)
    }

    /// - Parameter path: a file, or `-`.
    /// - Throws: ``Failure`` with `FILE:LINE:COLUMN: message` for what the file says wrongly; a list is not read yet.
    static func open(_ path: String, for option: String, _ input: inout InputText) throws(Failure) -> Content {
        let bytes = try input.read(path, for: option, limit: sizeLimit)
        if InputFile.detect(bytes) == .urlList { return .list(URLList.Reader(bytes, file: path)) }
        return .file(try parse(bytes, path))
    }

    /// As ``open(_:for:_:)``, with every entry read.
    static func read(_ path: String, for option: String, _ input: inout InputText) throws(Failure) -> QueueFile {
        try parse(try input.read(path, for: option, limit: sizeLimit), path)
    }

    private static func parse(_ bytes: [UInt8], _ path: String) throws(Failure) -> QueueFile {
        do throws(FileError) {
            return try InputFile.parse(
                bytes, file: path, baseDirectory: try directory(of: path), now: Clock.now(),
                utcOffset: { LocalClock.utcOffset(at: $0) }, readFile: InputText.file)
        } catch {
            throw failure(error)
        }
    }

    static func failure(_ error: FileError) -> Failure { at("\(error)", code: error.code) }

    /// What is wrong with an entry though the file could be read.
    static func failure(_ message: String, file: String, entry: QueueEntry, code: ErrorCode) -> Failure {
        at("\(file):\(entry.line):\(entry.column): \(message)", code: code)
    }

    private static func at(_ message: String, code: ErrorCode) -> Failure {
        var failure = Failure(.usage, code: code, field: "file", message)
        failure.bare = true
        return failure
    }

    /// Where the paths in the file begin: its own directory, absolute; for standard input the present one.
    private static func directory(of path: String) throws(FileError) -> String {
        guard path != "-", let slash = path.lastIndex(of: "/") else { return FilePath.currentDirectory() }
        return FilePath.absolute(slash == path.startIndex ? "/" : String(path[..<slash]))
    }
}

extension Context {
    private struct Warning: Encodable {
        struct Detail: Encodable {
            var message: String
            var file: String
            var line: Int
            var column: Int
        }
        var warning: Detail
    }

    /// Says what was passed over in a file, on standard error: with `--json` an object a line.
    func report(_ notes: [FileNote]) {
        let errors = Output(STDERR_FILENO)
        for note in notes {
            if json {
                errors.json(
                    Warning(
                        warning: .init(message: note.message, file: note.file, line: note.line, column: note.column)))
            } else {
                errors.line(Escape.visible("\(note)"))
            }
        }
        errors.flush()
    }
}

/// Paths as the daemon must be told them: it has a working directory of its own.
enum FilePath {
    static func currentDirectory() -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        guard getcwd(&buffer, buffer.count) != nil else { return "/" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// `path` seen from the present directory. Nothing is looked up: what is a symbolic link stays one.
    static func absolute(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        let base = currentDirectory()
        return (base.hasSuffix("/") ? base : base + "/") + path
    }

    /// The directory's real path, and the last component as it is.
    ///
    /// - Returns: `nil` with `errno` set where the directory is not there.
    static func absoluteFile(_ path: String) -> String? {
        let whole = absolute(path)
        guard let slash = whole.lastIndex(of: "/") else { return nil }
        let directory = slash == whole.startIndex ? "/" : String(whole[..<slash])
        guard let real = realpath(directory, nil) else { return nil }
        defer { free(real) }
        let base = String(cString: real)
        return (base == "/" ? "" : base) + whole[slash...]
    }
}
