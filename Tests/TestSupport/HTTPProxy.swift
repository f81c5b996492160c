/// A tinyproxy on a free loopback port: a forward proxy that tunnels (CONNECT) to any port.
package final class HTTPProxy: Sendable {
    package let port: Int
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// Starts the proxy.
    ///
    /// - Parameters:
    ///   - user: the user name, required by Basic authentication if given. It may contain only letters, digits, `-`,
    ///     `.` and `_`, because tinyproxy's configuration has no quoting.
    ///   - password: the password, with the same restriction.
    package init(user: String? = nil, password: String = "") async throws {
        directory = try TemporaryDirectory()
        port = try FreePort.next()
        let authentication = user.map { "BasicAuth \($0) \(password)\n" } ?? ""
        // Without ConnectPort, CONNECT is allowed to any port.
        let configuration = """
            Port \(port)
            Listen 127.0.0.1
            Allow 127.0.0.1
            Timeout 600
            MaxClients 200
            LogFile "\(directory.file("log"))"
            LogLevel Connect
            \(authentication)
            """
        let file = try directory.write(configuration, to: "tinyproxy.conf")
        process = try await ServerProcess(
            "tinyproxy", ["tinyproxy", "-d", "-c", file], port: port, log: directory.file("log"))
    }

    deinit { process.end() }

    package var url: String { "http://127.0.0.1:\(port)" }

    /// The request lines so far, including refused ones, such as `CONNECT localhost:443 HTTP/1.1`.
    package var requests: [String] {
        tails(of: textOfFile(at: directory.file("log")), behind: "Request (file descriptor ").compactMap { tail in
            tail.firstRange(of: "): ").map { String(tail[$0.upperBound...]) }
        }
    }
}
