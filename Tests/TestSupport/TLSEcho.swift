import Glibc

/// An `openssl s_server` that returns each line reversed, and its certificate.
package final class TLSEcho: Sendable {
    package let port: Int
    /// The path of the certificate, for clients that are to trust it.
    package let certificate: String
    private let directory: TemporaryDirectory
    private let process: ChildProcess

    /// - Parameter names: the names in the certificate, in the syntax of `subjectAltName`.
    package init(names: String = "IP:127.0.0.1,DNS:peer.test") async throws {
        directory = try TemporaryDirectory()
        let (key, chain) = (directory.file("key.pem"), directory.file("chain.pem"))
        let made = try await run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=peer", "-addext", "subjectAltName=\(names)", "-keyout", key, "-out", chain,
        ])
        guard made.succeeded else { throw SystemError("openssl req: \(made.error)", number: EINVAL) }
        certificate = try await run(["cat", chain]).output
        port = try FreePort.next()
        process = try ChildProcess([
            "openssl", "s_server", "-accept", "127.0.0.1:\(port)", "-cert", chain, "-key", key, "-rev", "-quiet",
        ])
        let port = self.port
        try await eventually(that: "s_server listens") { (try? StreamSocket(port: port)) != nil }
    }
}
