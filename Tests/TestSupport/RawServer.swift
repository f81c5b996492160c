import Glibc
import Synchronization

/// A server on loopback that responds to the single request of each connection with given bytes and then closes the
/// connection. It can send responses that no correct server sends.
package final class RawServer: Sendable {
    package let port: Int
    private let listener: Int32
    private let answers: [[UInt8]]
    private let heads = Mutex<[String]>([])

    private let headLength: Int

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - answers: the responses to the first, second, … request; the last one is repeated.
    ///   - head: the number of bytes after which a request counts as complete, if its head does not end earlier.
    package init(_ answers: [[UInt8]], head: Int = .max) throws {
        self.answers = answers
        headLength = head
        (listener, port) = try listenOnLoopback(backlog: 64)
        try startThread { [weak self, listener] in
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
                guard connection >= 0 else { return }
                // Use a thread per connection: a client that keeps its connection open must not block another client.
                let isServed: Void? = try? startThread { [weak server = self] in
                    server?.answer(connection)
                    close(connection)
                }
                if isServed == nil { close(connection) }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    package func url(_ path: String = "/") -> String { "http://127.0.0.1:\(port)\(path)" }

    /// The heads of the requests so far, as received.
    package var requests: [String] { heads.withLock { $0 } }

    private func answer(_ connection: Int32) {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([0x0D, 0x0A, 0x0D, 0x0A]), head.count < headLength {
            var byte: UInt8 = 0
            guard recv(connection, &byte, 1, 0) == 1 else { return }
            head.append(byte)
        }
        let number = heads.withLock { heads in
            heads.append(String(decoding: head, as: UTF8.self))
            return heads.count - 1
        }
        guard let answer = number < answers.count ? answers[number] : answers.last else { return }
        guard sendAll(connection, answer) else { return }
        // Send FIN and read the rest of the request; otherwise a reset could overtake the response.
        shutdown(connection, Int32(SHUT_WR))
        var rest = [UInt8](repeating: 0, count: 4096)
        while recv(connection, &rest, rest.count, 0) > 0 {}
    }
}
