/// A real tinyproxy on a free loopback port: a forward proxy that tunnels (CONNECT) to any port.
package final class HTTPProxy: Sendable {
    package let port: Int
    private let directory: TemporaryDirectory
    private let process: ServerProcess

    /// - Parameters:
    ///   - user: asked for with Basic where it is given. Letters, digits, `-`, `.` and `_` only: tinyproxy's
    ///     configuration knows no quoting.
    ///   - password: as `user`.
    package init(user: String? = nil, password: String = "") async throws {
        directory = try TemporaryDirectory()
        port = try FreePort.next()
        let authentication = user.map { "BasicAuth \($0) \(password)\n" } ?? ""
        // Without ConnectPort, CONNECT is allowed to any.
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

    /// The request lines that came so far, such as `CONNECT localhost:443 HTTP/1.1`, the refused ones included.
    package var requests: [String] {
        tails(of: textOfFile(at: directory.file("log")), behind: "Request (file descriptor ").compactMap { tail in
            tail.firstRange(of: "): ").map { String(tail[$0.upperBound...]) }
        }
    }
}
