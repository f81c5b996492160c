import Glibc
import Synchronization

/// A port on loopback at which SYNs vanish, as behind a wall that drops packets: its backlog is full, and nobody accepts.
package final class BlackHole: Sendable {
    package let port: Int
    private let listener: Int32
    private let fillers: Mutex<[Int32]>

    package init() throws {
        let (listener, port) = try listenOnLoopback(backlog: 0)
        self.listener = listener
        self.port = port
        // The kernel lets one more in than the backlog says (listen(2)).
        let clients = (0..<3).map { _ in
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            _ = withLoopbackAddress(port: port) { connect(client, $0, $1) }
            return client
        }
        fillers = Mutex(clients)
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        empty()
    }

    package func url(_ path: String = "/f") -> String { "http://127.0.0.1:\(port)\(path)" }

    private func empty() {
        fillers.withLock { clients in
            for client in clients { close(client) }
            clients = []
        }
    }

    /// From now on there is a server that answers every request with `answer` and ends the connection.
    package func relent(_ answer: [UInt8]) throws {
        empty()
        try startThread { [listener] in
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
                guard connection >= 0 else { return }
                defer { close(connection) }
                var head = [UInt8](repeating: 0, count: 4096)
                guard recv(connection, &head, head.count, 0) > 0, sendAll(connection, answer) else { continue }
                shutdown(connection, Int32(SHUT_WR))
                while recv(connection, &head, head.count, 0) > 0 {}
            }
        }
    }
}
