import Glibc
import Synchronization

/// An HTTP server on loopback that reads each request body at a fixed rate through a small receive buffer, and then
/// responds with 201.
package final class SlowReader: Sendable {
    package let port: Int
    private let listener: Int32
    private let counts = Mutex<[Int]>([])

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: the rate at which bodies are read.
    ///   - length: the length of each request body in bytes.
    package init(bytesPerSecond: Int, length: Int) throws {
        (listener, port) = try listenOnLoopback(backlog: 16)
        // Accepted connections inherit the buffer size.
        var buffer: Int32 = 16 << 10
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &buffer, socklen_t(MemoryLayout<Int32>.size))
        try startThread { [weak self, listener] in
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
                guard connection >= 0 else { return }
                let isServed: Void? = try? startThread { [weak server = self] in
                    let count = Self.read(connection, bytesPerSecond, length)
                    server?.record(count)
                    _ = sendAll(connection, Array("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n".utf8))
                    close(connection)
                }
                if isServed == nil { close(connection) }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    package func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// The number of body bytes received for each request that has ended.
    package var received: [Int] { counts.withLock { $0 } }

    private func record(_ count: Int) { counts.withLock { $0.append(count) } }

    private static func read(_ connection: Int32, _ bytesPerSecond: Int, _ length: Int) -> Int {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while !head.suffix(4).elementsEqual([0x0D, 0x0A, 0x0D, 0x0A]) {
            guard recv(connection, &byte, 1, 0) == 1 else { return 0 }
            head.append(byte)
        }
        _ = sendAll(connection, Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        var piece = [UInt8](repeating: 0, count: 8192)
        var count = 0
        while count < length {
            let got = recv(connection, &piece, piece.count, 0)
            guard got > 0 else { return count }
            count += got
            usleep(UInt32(got * 1_000_000 / bytesPerSecond))
        }
        return count
    }
}
