import Glibc
import Synchronization

/// An HTTP/1.1 server on loopback that sends bytes which no request asked for.
///
/// The first connection gets ``Excess``; each further one is served properly. Each response names its connection and its
/// request: `1.1` for the first of both. The file that an upload sends is discarded.
package final class TalkativeServer: Sendable {
    /// The bytes that nobody asked for, and their moment.
    package enum Excess: Sendable {
        /// Bytes after the first response, sent by ``speak()``.
        case later(String)
        /// The end of the connection, likewise.
        case end
        /// Bytes behind the first response, in one piece with it.
        case behind(String)
    }

    /// The form of each response's body.
    package enum Framing: Sendable {
        case length, chunks, none
    }

    private final class State: Sendable {
        let connections = Mutex<[[String]]>([])
        let first = Mutex<Int32>(-1)
    }

    private let peer: TalkingPeer
    private let state: State
    private let excess: Excess

    package init(_ excess: Excess, framing: Framing = .length) throws {
        let state = State()
        self.state = state
        self.excess = excess
        peer = try TalkingPeer { socket in
            let number = state.connections.withLock { connections in
                connections.append([])
                return connections.count
            }
            let descriptor = socket.descriptor
            // Otherwise bytes would wait for the acknowledgement of those before them.
            var immediately: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &immediately, socklen_t(MemoryLayout<Int32>.size))
            if number == 1 { state.first.withLock { $0 = descriptor } }
            while true {
                let head = try socket.readHead()
                guard let line = head.first else { return }
                if let length = head.first(where: { $0.lowercased().hasPrefix("content-length:") }) {
                    var rest = Int(length.split(separator: ":")[1].filter(\.isNumber)) ?? 0
                    while rest > 0 { rest -= try socket.receive(atMost: rest).count }
                }
                let request = state.connections.withLock { connections in
                    connections[number - 1].append(line)
                    return connections[number - 1].count
                }
                var answer = Self.answer("\(number).\(request)", framing, to: line)
                if number == 1, request == 1, case .behind(let text) = excess { answer += text }
                socket.send(answer.utf8)
            }
        }
    }

    private static func answer(_ text: String, _ framing: Framing, to line: String) -> String {
        switch framing {
        case .length: "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
        case .chunks: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(text.utf8.count)\r\n\(text)\r\n0\r\n\r\n"
        case .none: "HTTP/1.1 204 No Content\r\nX-Number: \(text)\r\n\r\n"
        }
    }

    package func url(_ path: String = "/") -> String { "http://127.0.0.1:\(peer.port)\(path)" }

    /// The request lines of each connection.
    package var requests: [[String]] { state.connections.withLock { $0 } }

    /// Sends the excess of the first connection. It has arrived when this returns, since loopback delivers at once.
    package func speak() {
        let socket = state.first.withLock { $0 }
        switch excess {
        case .later(let text): _ = sendAll(socket, Array(text.utf8))
        case .end: shutdown(socket, Int32(SHUT_WR))
        case .behind: break
        }
    }
}
