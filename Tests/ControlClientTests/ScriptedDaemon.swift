import FoundationEssentials
import Glibc
import Synchronization
import TestSupport

/// A daemon socket with scripted responses: each received line is passed to `script`.
final class ScriptedDaemon: Sendable {
    enum Reply: Sendable {
        /// Lines sent verbatim, each followed by an LF.
        case lines([String])
        /// Bytes sent without an LF, after which the connection closes.
        case fragment(String)
        case close
    }

    let path: String
    private let directory: TemporaryDirectory
    private let listener: Int32
    private let lines = Mutex<[String]>([])

    /// The lines received so far.
    var received: [String] { lines.withLock { $0 } }

    init(_ script: @escaping @Sendable (_ line: String) -> Reply) throws {
        directory = try TemporaryDirectory()
        path = directory.file("s")
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        self.listener = listener
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0, listen(listener, 8) == 0 else { throw SystemError("listen") }
        try startThread { [weak self] in
            while true {
                let daemon = self
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else {
                    if errno == EINTR { continue }
                    close(listener)
                    return
                }
                try? startThread { [weak daemon] in
                    Self.serve(connection) { line in
                        daemon?.lines.withLock { $0.append(line) }
                        return script(line)
                    }
                    close(connection)
                }
            }
        }
    }

    /// Shuts the listener down without closing it. The thread closes it: a close here could let its next accept(2) hit
    /// a descriptor that another test has reused.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    private static func serve(_ connection: Int32, _ script: (String) -> Reply) {
        var buffer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(connection, &chunk, chunk.count, 0)
            guard count > 0 else { return }
            buffer += chunk[..<count]
            while let end = buffer.firstIndex(of: 0x0A) {
                let line = String(decoding: buffer[..<end], as: UTF8.self)
                buffer.removeFirst(end + 1)
                switch script(line) {
                case .lines(let lines): send(lines.map { $0 + "\n" }.joined(), connection)
                case .fragment(let text):
                    send(text, connection)
                    return
                case .close: return
                }
            }
        }
    }

    private static func send(_ text: String, _ connection: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}

/// Returns the id of the call in `line`.
func requestID(_ line: String) -> Int {
    struct Request: Decodable { var id: Int }
    return (try? JSONDecoder().decode(Request.self, from: Data(line.utf8)).id) ?? -1
}

/// Returns the response to the call in `line`.
func answer(_ line: String, _ result: String) -> String {
    #"{"jsonrpc":"2.0","id":\#(requestID(line)),"result":\#(result)}"#
}
