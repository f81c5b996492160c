import Glibc
import Synchronization

/// A loopback port that ignores SYNs, as behind a packet-dropping firewall. Its backlog is full and nothing accepts.
package final class BlackHole: Sendable {
    package let port: Int
    private let listener: Int32
    private let fillers: Mutex<[Int32]>

    package init() throws {
        let (listener, port) = try listenOnLoopback(backlog: 0)
        self.listener = listener
        self.port = port
        // The kernel queues one more connection than the backlog (listen(2)). The queue is full once a connection is not
        // established within a time that loopback never needs.
        var clients: [Int32] = []
        var isFull = false
        while !isFull, clients.count < 8 {
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            _ = withLoopbackAddress(port: port) { connect(client, $0, $1) }
            clients.append(client)
            var established = pollfd(fd: client, events: Int16(POLLOUT), revents: 0)
            isFull = poll(&established, 1, 100) == 0
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

    /// Starts to accept connections, respond to every request with `answer` and close the connection.
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
