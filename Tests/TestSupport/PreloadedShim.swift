import FoundationEssentials
import Glibc

/// A library that is loaded before the C library and injects faults into a program's calls (ld.so(8), `LD_PRELOAD`).
package final class PreloadedShim: Sendable {
    package let path: String
    private let directory: TemporaryDirectory

    private init(path: String, directory: TemporaryDirectory) {
        self.path = path
        self.directory = directory
    }

    /// Compiles `source`, which is C with GNU extensions.
    ///
    /// - Returns: `nil` if there is no C compiler.
    package static func make(_ source: String) async throws -> PreloadedShim? {
        let directory = try TemporaryDirectory()
        try directory.write(source, to: "shim.c")
        let path = directory.file("shim.so")
        for compiler in ["cc", "gcc", "clang"] {
            guard try await run(["sh", "-c", "command -v \(compiler)"]).succeeded else { continue }
            let outcome = try await run(
                [compiler, "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", path, directory.file("shim.c"), "-ldl"])
            guard outcome.succeeded else { throw Unusable(reason: "\(compiler): \(outcome.error)") }
            return PreloadedShim(path: path, directory: directory)
        }
        return nil
    }

    /// Whether one of the compilers that ``make(_:)`` tries is available.
    package static let isPossible = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        .contains { place in ["cc", "gcc", "clang"].contains { access("\(place)/\($0)", X_OK) == 0 } }
}
