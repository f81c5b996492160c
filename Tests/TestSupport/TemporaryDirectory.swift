import FoundationEssentials
import Glibc

/// A directory for one test, removed with its contents when the last reference is released.
package final class TemporaryDirectory: Sendable {
    /// The absolute path without a trailing slash, short enough for the path of a Unix socket below it.
    package let path: String

    /// Creates the directory.
    ///
    /// - Parameters:
    ///   - mode: the permissions; 0700 unless another user needs access to the contents.
    ///   - isFast: whether to create it in memory (/dev/shm) if possible, for a very large number of files.
    package init(mode: UInt32 = 0o700, isFast: Bool = false) throws {
        let usual = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        let place = isFast && access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : usual
        var template = Array("\(place)/dld-test-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SystemError("mkdtemp") }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        guard chmod(path, mode) == 0 else { throw SystemError("chmod \(path)") }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Returns the path of `name` in this directory.
    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Creates a directory in this one, including missing parents.
    @discardableResult
    package func makeDirectory(_ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
        return file(name)
    }

    /// Writes `text` to the file `name` and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(filePath: file(name)))
        return file(name)
    }

    /// Returns the names of the entries directly in `directory`.
    package static func names(in directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    /// Returns the names of the entries below `directory`, at any depth.
    package static func names(beneath directory: String) -> [String] {
        (try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? []
    }
}

/// A failed system call, with its subject and the value of `errno`.
package struct SystemError: Error, CustomStringConvertible {
    package let what: String
    package let number: Int32

    package init(_ what: String, number: Int32? = nil) {
        let number = number ?? errno
        self.what = what
        self.number = number
    }

    package var description: String { "\(what): \(String(cString: strerror(number)))" }
}
