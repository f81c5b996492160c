/// An `https` server on loopback whose responses have no length and end with the connection. The connection ends with
/// close_notify or only with a TCP FIN, as from a careless server or an attacker.
package final class RaggedServer: Sendable {
    package let port: Int
    private let process: ServerProcess

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - content: the content. `/whole` sends it with close_notify, `/silent` sends it without, and `/cut` sends the
    ///     first half. `/coded` also sends the first half, with `Transfer-Encoding: identity`. `/healing` sends the
    ///     first half once and then responds like `/whole`. `/kept` keeps the connection and sends its number, from 1,
    ///     with a length. `/speak` sends a response that nobody asked for over all kept connections. Request bodies are
    ///     read.
    package init(_ content: String, identity: TestCertificates.Identity) async throws {
        port = try FreePort.next()
        process = try await ServerProcess(
            "the ragged server",
            ["python3", "-c", Self.program, identity.chain.path, identity.key.path, content, "\(port)"], port: port)
    }

    deinit { process.end() }

    package func url(_ path: String) -> String { "https://localhost:\(port)\(path)" }

    private static let program = #"""
        import re, socket, ssl, sys, threading

        content = open(sys.argv[3], "rb").read()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        seen = set()
        kept = []

        def request(tls):
            asked = b""
            while b"\r\n\r\n" not in asked: asked += tls.recv(65536) or exit()
            head, body = asked.split(b"\r\n\r\n", 1)
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            while length and len(body) < int(length[1]): body += tls.recv(65536) or exit()
            return head.split()[1]

        def answer(tls, text):
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))

        def converse(connection):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with context.wrap_socket(connection, server_side=True) as tls:
                path = request(tls)
                if path == b"/kept": kept.append(tls)
                number = b"%d" % len(kept)
                while path == b"/kept":
                    answer(tls, number)
                    path = request(tls)
                if path == b"/speak":
                    for other in kept: answer(other, b"WRONG")
                    return answer(tls, b"")
                cut = path == b"/cut" or path == b"/healing" and path not in seen
                seen.add(path)
                # A transfer coding that says nothing of where the body ends.
                coding = b"Transfer-Encoding: identity\r\n" if path == b"/coded" else b""
                cut = cut or path == b"/coded"
                body = content[:len(content) // (2 if cut else 1)]
                tls.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + coding + b"\r\n" + body)
                if not cut and path != b"/silent": tls.unwrap()
                tls.shutdown(socket.SHUT_RDWR)

        listener = socket.create_server(("127.0.0.1", int(sys.argv[4])))
        while True: threading.Thread(target=converse, args=(listener.accept()[0],), daemon=True).start()
        """#
}
