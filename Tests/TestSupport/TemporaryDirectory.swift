import FoundationEssentials
import Glibc

/// A directory of one test's own, removed with everything beneath it when the last reference goes.
package final class TemporaryDirectory: Sendable {
    /// Absolute, without a slash at its end; short enough for a socket's path beneath it.
    package let path: String

    /// - Parameters:
    ///   - mode: 0700, unless another user has to reach something beneath.
    ///   - isFast: in memory, where the machine lets files lie there: for very many of them.
    package init(mode: mode_t = 0o700, isFast: Bool = false) throws {
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

    /// The path of `name` beneath this directory.
    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Makes a directory beneath this one, and what is missing above it.
    @discardableResult
    package func makeDirectory(_ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
        return file(name)
    }

    /// Writes `text` to `name` and returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try Data(text.utf8).write(to: URL(filePath: file(name)))
        return file(name)
    }

    /// The names of what lies in `directory` itself.
    package static func names(in directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    /// The names of what lies beneath `directory`, at any depth.
    package static func names(beneath directory: String) -> [String] {
        (try? FileManager.default.subpathsOfDirectory(atPath: directory)) ?? []
    }
}

/// A system call that failed, with what it was about and `errno` as it stood.
package struct SystemError: Error, CustomStringConvertible {
    package let what: String
    package let number: Int32

    package init(_ what: String, number: Int32 = errno) {
        self.what = what
        self.number = number
    }

    package var description: String { "\(what): \(String(cString: strerror(number)))" }
}
