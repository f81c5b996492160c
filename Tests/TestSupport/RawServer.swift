import Glibc
import Synchronization

/// A server on loopback that answers each connection's one request with bytes as given, whatever they say, and then
/// ends the connection: for answers that no honest server gives.
package final class RawServer: Sendable {
    package let port: Int
    private let listener: Int32
    private let answers: [[UInt8]]
    private let heads = Mutex<[String]>([])

    private let headLength: Int

    /// - Parameters:
    ///   - answers: to the first, the second, … request; the last one stays.
    ///   - head: so many bytes are a request, where it does not end before.
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
                // Each on its own: a client that keeps its end of one open must not keep another out.
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

    /// The heads of the requests so far, each as it came.
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
        // FIN, and what the client still says is read, lest a reset overtakes the answer.
        shutdown(connection, Int32(SHUT_WR))
        var rest = [UInt8](repeating: 0, count: 4096)
        while recv(connection, &rest, rest.count, 0) > 0 {}
    }
}
