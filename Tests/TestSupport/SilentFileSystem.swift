package import Glibc

/// A FUSE file system that never replies when one of its files is closed, and a client of the daemon that passes such a
/// file. Requires root, python3 and /dev/fuse.
///
/// The file system is mounted in its own mount namespace and ends with the process that serves it. Only then do the
/// processes that wait for it continue.
package final class SilentFileSystem: Sendable {
    package static var isPossible: Bool { geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0 }

    private let process: ChildProcess
    private let directory: TemporaryDirectory

    /// Starts the file system and its client.
    ///
    /// - Parameters:
    ///   - count: the number of connections that pass the file once and then send another request. The same number of
    ///     further connections send the file without being asked, and end.
    ///   - user: the user ID of the client.
    package init(passingTo socket: String, times count: Int, as user: uid_t, url: String) throws {
        directory = try TemporaryDirectory()
        let place = try directory.makeDirectory("place")
        process = try ChildProcess([
            "unshare", "--mount", "--propagation", "private", "python3", "-u", "-c", Self.program, place, socket,
            "\(count)", "\(user)", url,
        ])
    }

    deinit { end() }

    /// Ends the file system and releases all waiting processes.
    package func end() { process.end() }

    /// The responses to the request that named the file, one for each connection.
    package var refusals: [String] { lines("named ") }
    /// The number of connections that received a response to a later request.
    package var answers: Int { lines("after ").count(where: { $0.contains("result") }) }
    /// Whether everything has been sent.
    package var isDone: Bool { !lines("done").isEmpty }
    /// The number of close operations that wait for a reply.
    package var waiting: Int { lines("flush").count }
    /// The output of the process, for the diagnosis of unexpected results.
    package var log: String { process.standardOutput + process.standardError }

    private func lines(_ beginning: String) -> [String] {
        process.standardOutput.split(separator: "\n").filter { $0.hasPrefix(beginning) }.map { String($0) }
    }

    private static let program = #"""
        import ctypes, errno, json, os, socket, struct, sys

        place, path, count, user, url = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
        device = os.open("/dev/fuse", os.O_RDWR)
        options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % device
        if ctypes.CDLL(None, use_errno=True).mount(b"silent", place.encode(), b"fuse", 0, options) != 0:
            sys.exit("mount: " + os.strerror(ctypes.get_errno()))

        def attributes(node):
            mode = 0o040755 if node == 1 else 0o100644
            return struct.pack("<6Q10I", node, 5, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

        def serve():
            while True:
                try: message = os.read(device, 1 << 17)
                except InterruptedError: continue
                except OSError as error:
                    if error.errno == errno.ENOENT: continue
                    raise
                _, call, unique, node = struct.unpack("<IIQQ", message[:24])
                body, failure = b"", 0
                if call == 26: body = struct.pack("<4I2H2I", 7, 31, 0, 0, 16, 12, 4096, 1).ljust(64, b"\0")
                elif call == 1: body = struct.pack("<4Q2I", 2, 0, 3600, 3600, 0, 0) + attributes(2)
                elif call == 3: body = struct.pack("<Q2I", 3600, 0, 0) + attributes(node)
                elif call == 14: body = struct.pack("<Q2I", 1, 0, 0)
                elif call == 25:
                    tell("flush")
                    continue
                elif call in (2, 36, 42): continue
                elif call != 18: failure = -errno.ENOSYS
                os.write(device, struct.pack("<IiQ", 16 + len(body), failure, unique) + body)

        def tell(text): os.write(1, (text + "\n").encode())

        # Whoever has the file open waits for its closing too: that must not be who has the device.
        # The client ends with the server.
        alive, held = os.pipe()
        if os.fork() != 0: serve()
        os.close(device)
        os.close(held)
        file = os.open(place + "/file", os.O_RDONLY)
        os.setresgid(user, user, user)
        os.setgroups([])
        os.setresuid(user, user, user)
        task = {"kind": "upload", "file": "/none/x", "url": url, "descriptor": 0}
        connections = []
        for _ in range(count):
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(60)
            connection.connect(path)
            connections.append(connection)
            answers = connection.makefile("r")
            def ask(method, parameters):
                request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
                try: connection.sendall(json.dumps(request).encode() + b"\n")
                except BrokenPipeError: return "closed"
                return answers.readline().strip()
            tell("ready " + ask("source.receive", {"count": 1}))
            socket.send_fds(connection, [b"\n"], [file])
            tell("named " + ask("task.add", {"tasks": [task]}))
            tell("after " + ask("daemon.status", {}))
        for _ in range(count):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                socket.send_fds(connection, [b" "], [file])
        tell("done")
        os.read(alive, 1)
        """#
}
