import Glibc
import TaskFiles
import TaskModel

/// A reader of the files that options name. `-` means standard input, which only one option can use.
struct InputText {
    private var standardInputUser: String?

    /// Notes what uses standard input.
    ///
    /// - Throws: ``Failure`` if something else uses it already.
    mutating func useStandardInput(for user: String) throws(Failure) {
        do throws(UnreadableFile) {
            try occupy(by: user)
        } catch {
            throw .usage("\(user): \(error.reason)", field: user)
        }
    }

    private mutating func occupy(by user: String) throws(UnreadableFile) {
        if let other = standardInputUser { throw UnreadableFile("standard input is already used for \(other)") }
        standardInputUser = user
    }

    /// Reads the bytes of a file or of standard input.
    ///
    /// - Parameters:
    ///   - path: the path of a file, or `-`.
    ///   - option: the option as typed; error messages begin with it.
    ///   - limit: the maximum size in bytes; longer input is refused.
    mutating func read(_ path: String, for option: String, limit: Int) throws(Failure) -> [UInt8] {
        do throws(UnreadableFile) {
            guard path == "-" else { return try Self.file(path, limit: limit) }
            try occupy(by: option)
            return try Self.read(STDIN_FILENO, named: "standard input", limit: limit)
        } catch {
            throw .usage("\(option): \(error.reason)", field: option)
        }
    }

    /// Returns the contents of the file at `path`; `-` has no special meaning here.
    static func file(_ path: String, limit: Int) throws(UnreadableFile) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw UnreadableFile("cannot open \(path): \(SystemText.error(errno))") }
        defer { _ = close(descriptor) }  // nothing was written, so close cannot lose data
        return try read(descriptor, named: path, limit: limit)
    }

    private static func read(
        _ descriptor: Int32, named name: String, limit: Int
    ) throws(UnreadableFile) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw UnreadableFile("cannot read \(name): \(SystemText.error(errno))")
            }
            bytes += chunk[..<count]
            guard bytes.count <= limit else {
                throw UnreadableFile("\(name) is longer than \(ByteSize.describe(Int64(limit)))")
            }
        }
    }

    /// Returns the lines that the values of an option consist of. `@FILE` and `@-` stand for the lines of a file.
    ///
    /// - Parameters:
    ///   - name: the option as typed.
    ///   - limit: the maximum size of a file in bytes.
    mutating func lines(_ values: [String], of name: String, limit: Int) throws(Failure) -> [String] {
        var lines: [String] = []
        for value in values {
            guard value.hasPrefix("@") else {
                lines.append(value)
                continue
            }
            lines += SecretText.lines(try readText(String(value.dropFirst()), for: name, limit: limit))
        }
        return lines
    }

    /// Reads input as in ``readText(_:for:limit:)``. On a terminal, `-` is one line that is not shown.
    mutating func readSecret(_ path: String, for option: String, limit: Int) throws(Failure) -> String {
        guard path == "-", Terminal.isTerminal(STDIN_FILENO) else {
            return try readText(path, for: option, limit: limit)
        }
        try useStandardInput(for: option)
        return try text(Terminal.secret("\(option) (the input is not shown): "), path, for: option)
    }

    /// Reads input as in ``read(_:for:limit:)`` and decodes it as UTF-8.
    mutating func readText(_ path: String, for option: String, limit: Int) throws(Failure) -> String {
        try text(try read(path, for: option, limit: limit), path, for: option)
    }

    private func text(_ bytes: [UInt8], _ path: String, for option: String) throws(Failure) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .usage("\(option): \(path == "-" ? "standard input" : path) is not UTF-8 text", field: option)
        }
        return text
    }
}
