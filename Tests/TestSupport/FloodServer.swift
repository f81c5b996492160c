/// Servers on loopback that send useless data endlessly, as fast as it is read: HTTP/2 frames within TLS, the response
/// of a proxy, or lines before an SSH server's identification. They serve HTTP/1.1 clients normally.
package final class FloodServer: Sendable {
    /// The data that is sent.
    package enum Kind: String, Sendable, CaseIterable {
        // HTTP/2 (RFC 9113): CVE-2019-9512, 9515, 9514, 9518, 9513, and CVE-2024-27316.
        case ping, settings, emptySettings, acknowledgements, resets, emptyData, padding, priority
        case continuation, emptyContinuation, push, trailers, informational, unknown, goAway, hugeFrame
        case window, windowOverflow, windowSizes, tableSizes
        /// A field in the dynamic table that is referenced repeatedly (HPACK bomb).
        case bomb
        /// A flow-control window that never opens, and a server that sends nothing.
        case noWindow, silence
        /// A proxy that refuses a tunnel with an endless body, and an SSH server that never sends its identification.
        case refusedTunnel, chunkedTunnel, banner
        /// SSH packets of an unknown type before the key exchange.
        case packets
        /// TLS 1.3 session tickets (RFC 8446, section 4.6.1), which one `SSL_read` processes one after the other.
        case tickets
        /// Chunk extensions of 60 KB for each byte of a body (RFC 9112, section 7.1.1).
        case extensions
    }

    private let process: ServerProcess
    private let ports: [Kind: Int]

    package init(_ kinds: [Kind], identity: TestCertificates.Identity) async throws {
        var ports: [Kind: Int] = [:]
        for kind in kinds { ports[kind] = try FreePort.next() }
        self.ports = ports
        let places = kinds.map { "\($0.rawValue)=\(ports[$0] ?? 0)" }
        process = try await ServerProcess(
            "the floods", ["python3", "-c", Self.program, identity.chain.path, identity.key.path] + places,
            port: kinds.last.flatMap { ports[$0] } ?? 0)
    }

    deinit { process.end() }

    package func port(_ kind: Kind) -> Int { ports[kind] ?? 0 }

    private static let program = #"""
        import ctypes, hashlib, hmac, os, socket, ssl, struct, sys, tempfile, threading

        def frame(kind, flags, stream, payload=b""):
            return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

        def field(name, value):
            # Not for the table (RFC 7541, section 6.2.2).
            return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

        def setting(number, value): return frame(4, 0, 0, struct.pack(">HI", number, value))

        HEAD = frame(1, 4, 1, b"\x88")
        EARLY = b"\x08\x03103"
        # A field of 3,900 bytes for the table, and its number there.
        BOMB = b"\x40\x01x\x7f\xbd\x1d" + b"v" * 3900 + b"\xbe" * 12000

        # What comes once, and what comes for ever.
        FRAMES = {
            "ping": (b"", frame(6, 0, 0, b"12345678")),
            "settings": (b"", setting(3, 100)),
            "emptySettings": (b"", frame(4, 0, 0)),
            "acknowledgements": (b"", frame(4, 1, 0)),
            "resets": (HEAD, frame(3, 0, 1, struct.pack(">I", 8))),
            "emptyData": (HEAD, frame(0, 0, 1)),
            "padding": (HEAD, frame(0, 8, 1, b"\xff" + b"\0" * 255)),
            "priority": (b"", frame(2, 0, 1, struct.pack(">IB", 3, 1))),
            "continuation": (frame(1, 0, 1, b"\x88"), frame(9, 0, 1, field(b"x-name", b"v" * 100) * 100)),
            "emptyContinuation": (frame(1, 0, 1, b"\x88"), frame(9, 0, 1)),
            "push": (b"", frame(5, 4, 1, struct.pack(">I", 2) + b"\x82\x84\x86\x41\x09localhost")),
            "trailers": (HEAD, frame(1, 4, 1, field(b"a", b"b"))),
            "informational": (b"", frame(1, 4, 1, EARLY + field(b"link", b"</a>"))),
            "unknown": (b"", frame(0xEE, 0, 0, b"x" * 10)),
            "goAway": (b"", frame(7, 0, 0, struct.pack(">II", 2**31 - 1, 0))),
            "hugeFrame": (HEAD, b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 16000),
            "window": (b"", frame(8, 0, 0, struct.pack(">I", 1))),
            "windowOverflow": (b"", frame(8, 0, 0, struct.pack(">I", 2**31 - 1))),
            "windowSizes": (b"", setting(4, 0) + setting(4, 2**31 - 1)),
            "tableSizes": (b"", setting(1, 0) + setting(1, 2**32 - 1)),
            "bomb": (frame(1, 4, 1, b"\x88" + BOMB), b""),
            "noWindow": (setting(4, 0), b""),
            "silence": (b"", b""),
        }
        PLAIN = {
            "refusedTunnel": (b"HTTP/1.1 407 no\r\nContent-Length: 100000000000000\r\n\r\n", b"x" * 1000),
            "chunkedTunnel": (b"HTTP/1.1 407 no\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nabcde\r\n"),
            "banner": (b"", b"hello\r\n"),
            "extensions": (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;" + b"e" * 60000 + b"\r\nx\r\n"),
            "packets": (b"SSH-2.0-flood\r\n", struct.pack(">IBB", 28, 4, 200) + b"x" * 22 + bytes(4)),
        }

        def forever(connection, once, ever):
            connection.sendall(once)
            block = ever * (65536 // len(ever) + 1) if ever else b""
            while block: connection.sendall(block)
            while connection.recv(65536): pass

        def serve(connection, kind):
            if kind in PLAIN:
                if kind not in ("banner", "packets"): connection.recv(65536)
                return forever(connection, *PLAIN[kind])
            if kind == "tickets": return tickets(connection)
            connection = context.wrap_socket(connection, server_side=True)
            data = connection.recv(65536)
            if connection.selected_alpn_protocol() != "h2":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
                return connection.recv(65536)
            connection.sendall(frame(4, 0, 0) + frame(4, 1, 0))
            # The request is there a moment after the preface.
            connection.settimeout(0.2)
            try:
                while connection.recv(65536): pass
            except TimeoutError:
                pass
            connection.settimeout(None)
            forever(connection, *FRAMES[kind])

        def expand(secret, label, length):
            # HKDF-Expand-Label (RFC 8446, section 7.1) with no context; the result is shorter than a hash.
            label = b"tls13 " + label
            info = struct.pack(">HB", length, len(label)) + label + b"\0\1"
            return hmac.new(secret, info, hashlib.sha384).digest()[:length]

        def tickets(connection):
            mine = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            mine.load_cert_chain(sys.argv[1], sys.argv[2])
            mine.minimum_version = ssl.TLSVersion.TLSv1_3
            mine.num_tickets = 0
            secrets = tempfile.NamedTemporaryFile()
            mine.keylog_filename = secrets.name
            secured = mine.wrap_socket(connection, server_side=True)
            secured.recv(65536)
            secured.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nabc")
            lines = [line.split() for line in open(secrets.name)]
            secret = bytes.fromhex(next(line[2] for line in lines if line[0] == "SERVER_TRAFFIC_SECRET_0"))
            key, start = expand(secret, b"key", 32), int.from_bytes(expand(secret, b"iv", 12), "big")
            library = ctypes.CDLL("libcrypto.so.3")
            for name in ["EVP_CIPHER_CTX_new", "EVP_aes_256_gcm"]: getattr(library, name).restype = ctypes.c_void_p
            cipher = ctypes.c_void_p(library.EVP_CIPHER_CTX_new())
            algorithm = ctypes.c_void_p(library.EVP_aes_256_gcm())
            ticket = struct.pack(">IIB", 7200, 0, 1) + b"n" + struct.pack(">H", 8) + b"ticket!!" + bytes(2)
            ticket = b"\4" + struct.pack(">I", len(ticket))[1:] + ticket
            text = ticket * (16000 // len(ticket)) + b"\x16"
            head = b"\x17\3\3" + struct.pack(">H", len(text) + 16)
            sealed, tag = ctypes.create_string_buffer(len(text)), ctypes.create_string_buffer(16)
            length = ctypes.c_int()
            descriptor = secured.fileno()
            secured.setblocking(True)
            number = 1  # the answer was the first
            while True:
                nonce = (start ^ number).to_bytes(12, "big")
                size = ctypes.byref(length)
                library.EVP_EncryptInit_ex(cipher, algorithm, None, key, nonce)
                library.EVP_EncryptUpdate(cipher, None, size, head, 5)
                library.EVP_EncryptUpdate(cipher, sealed, size, text, len(text))
                library.EVP_EncryptFinal_ex(cipher, None, size)
                library.EVP_CIPHER_CTX_ctrl(cipher, 0x10, 16, tag)  # EVP_CTRL_AEAD_GET_TAG
                record = head + sealed.raw + tag.raw
                while record: record = record[os.write(descriptor, record):]
                number += 1

        def attempt(connection, kind):
            try: serve(connection, kind)
            except OSError: pass
            finally: connection.close()

        def accept(listener, kind):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=attempt, args=(connection, kind), daemon=True).start()

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        context.set_alpn_protocols(["h2", "http/1.1"])
        for place in sys.argv[3:]:
            kind, port = place.split("=")
            listener = socket.create_server(("127.0.0.1", int(port)))
            threading.Thread(target=accept, args=(listener, kind), daemon=True).start()
        threading.Event().wait()
        """#
}
