import FoundationEssentials
import Glibc
import Synchronization

/// An httpbin on a free loopback port, which responds with what it received.
///
/// `make setup-httpbin` installs it in a virtual environment of Python.
package final class HTTPBin: Sendable {
    package let port: Int
    /// The process and its directory, released when the server is stopped.
    private let parts: Mutex<(process: ServerProcess, directory: TemporaryDirectory)?>

    /// The server shared by this process, started on first use and stopped when the process ends.
    package static var shared: HTTPBin { get async throws { try await starting.value } }

    private static let starting = Task {
        let server = try await HTTPBin()
        running.withLock { $0 = server }
        atexit { running.withLock { $0?.end() } }
        return server
    }
    private static let running = Mutex<HTTPBin?>(nil)

    /// The interpreter of the virtual environment.
    private static let python: String = {
        let words = #filePath.split(separator: "/").dropLast(3)
        return "/" + words.joined(separator: "/") + "/.build/httpbin/bin/python"
    }()

    private init() async throws {
        guard access(Self.python, X_OK) == 0 else {
            throw Unusable(reason: "there is no \(Self.python): run `make setup-httpbin`")
        }
        let directory = try TemporaryDirectory()
        let port = try FreePort.next()
        // One process with threads: its requests run side by side, and it has one log.
        let process = try await ServerProcess(
            "httpbin",
            [
                Self.python, "-m", "gunicorn", "--bind", "127.0.0.1:\(port)", "--workers", "1",
                "--worker-class", "gthread", "--threads", "64", "--keep-alive", "60", "--limit-request-line", "0",
                "--limit-request-field_size", "0", "--worker-tmp-dir", directory.path, "--log-level", "error",
                "--log-file", directory.file("error.log"), "httpbin:app",
            ],
            port: port, log: directory.file("error.log"))
        parts = Mutex((process, directory))
        self.port = port
    }

    /// Stops the server and removes its files. A shared server is never deinitialised, so this is how it ends.
    private func end() { parts.withLock { $0 = nil } }

    /// - Parameter host: a name that the client resolves to this machine, such as `localhost`.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "http://\(host):\(port)\(path)" }
}
