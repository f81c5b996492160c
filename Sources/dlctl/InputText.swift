import Glibc
import TaskModel

/// Reads what options name: files, or standard input for `-`, which only one of them can have.
struct InputText {
    private var standardInputUser: String?

    /// - Parameters:
    ///   - path: a file, or `-`.
    ///   - option: as it is typed; complaints begin with it.
    ///   - limit: bytes; what is longer is refused.
    mutating func read(_ path: String, for option: String, limit: Int) throws(Failure) -> [UInt8] {
        func refuse(_ message: String) -> Failure { .usage("\(option): \(message)", field: option) }
        guard path == "-" else {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw refuse("cannot open \(path): \(SystemText.error(errno))") }
            defer { close(descriptor) }
            return try Self.read(descriptor, named: path, limit: limit, refuse: refuse)
        }
        if let user = standardInputUser { throw refuse("standard input is already read for \(user)") }
        standardInputUser = option
        return try Self.read(STDIN_FILENO, named: "standard input", limit: limit, refuse: refuse)
    }

    private static func read(
        _ descriptor: Int32, named name: String, limit: Int, refuse: (String) -> Failure
    ) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw refuse("cannot read \(name): \(SystemText.error(errno))")
            }
            bytes += chunk[..<count]
            guard bytes.count <= limit else {
                throw refuse("\(name) is longer than \(ByteSize.describe(Int64(limit)))")
            }
        }
    }

    /// As ``read(_:for:limit:)``, for text.
    mutating func readText(_ path: String, for option: String, limit: Int) throws(Failure) -> String {
        let bytes = try read(path, for: option, limit: limit)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw .usage("\(option): \(path == "-" ? "standard input" : path) is not UTF-8 text", field: option)
        }
        return text
    }
}

/// What files hold that keep secrets out of the process list.
enum SecretText {
    /// Header lines, one a line; empty lines and the line ends of other systems fall away.
    static func headers(_ text: String) -> [String] {
        lines(text).filter { !$0.isEmpty }
    }

    /// The first line, whole.
    static func password(_ text: String) -> String { lines(text).first ?? "" }

    /// Splits at LF and drops a CR before it. Works on bytes: CR LF is one `Character`.
    private static func lines(_ text: String) -> [String] {
        text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            let kept = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            return String(decoding: kept, as: UTF8.self)
        }
    }
}
