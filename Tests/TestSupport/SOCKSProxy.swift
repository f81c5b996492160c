/// A microsocks on a free loopback port: SOCKS5 (RFC 1928), CONNECT only, with IPv4, IPv6 and host names.
package final class SOCKSProxy: Sendable {
    package let port: Int
    private let process: ServerProcess

    /// Starts the proxy.
    ///
    /// - Parameters:
    ///   - user: the user name (RFC 1929), required if given.
    ///   - password: the password of `user`.
    package init(user: String? = nil, password: String = "") async throws {
        port = try FreePort.next()
        let authentication = user.map { ["-u", $0, "-P", password] } ?? []
        process = try await ServerProcess(
            "microsocks", ["microsocks", "-i", "127.0.0.1", "-p", String(port)] + authentication, port: port)
    }

    deinit { process.end() }

    /// - Parameter resolving: whether the proxy resolves the host name instead of the client.
    package func url(resolving: Bool = false) -> String { "socks5\(resolving ? "h" : "")://127.0.0.1:\(port)" }

    /// The targets of successful connections as `host:port`, in the order of arrival.
    package var targets: [String] { tails(of: process.child.standardError, behind: "connected to ") }
}
