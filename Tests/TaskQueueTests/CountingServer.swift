import Glibc
import Synchronization
import TestSupport

/// A server that sends two bytes in response to every request, and counts its concurrent requests.
final class CountingServer: Sendable {
    let port: Int
    private let listener: Int32
    private let expected: Int
    private let state = Mutex(State())

    private struct State {
        var present = 0
        var peak = 0
        var connections: Set<Int32> = []
    }

    /// - Parameter expected: no response is sent before this number of requests is present, or two seconds have passed.
    init(expected: Int) throws {
        self.expected = expected
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> Int32 in
                guard bind(listener, pointer, length) == 0, listen(listener, 512) == 0 else { return -1 }
                return getsockname(listener, pointer, &length)
            }
        }
        guard result == 0 else { throw SystemError("listening") }
        port = Int(UInt16(bigEndian: address.sin_port))
        try startThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                _ = state.withLock { $0.connections.insert(connection) }
                try? startThread { self.converse(connection) }
            }
        }
    }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        state.withLock { state in
            for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
        }
    }

    var peak: Int { state.withLock { $0.peak } }

    private func converse(_ connection: Int32) {
        var head: [UInt8] = []
        var byte: UInt8 = 0
        while recv(connection, &byte, 1, 0) == 1 {
            head.append(byte)
            guard head.suffix(4) == [13, 10, 13, 10] else { continue }
            head = []
            answer(connection)
        }
        state.withLock { state in
            state.connections.remove(connection)
            _ = close(connection)
        }
    }

    private func answer(_ connection: Int32) {
        state.withLock { state in
            state.present += 1
            state.peak = max(state.peak, state.present)
        }
        for _ in 0..<2_000 where peak < expected { usleep(1_000) }
        usleep(3_000)
        // Decremented before the client can receive the response: the count never exceeds the number of pending
        // requests.
        state.withLock { $0.present -= 1 }
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8)
        _ = send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
    }
}
