import Dispatch
import Glibc

/// A peer on loopback that handles each connection on a separate thread and closes it afterwards.
package final class TalkingPeer: Sendable {
    package let port: Int
    private let listener: Int32

    package init(_ talk: @escaping @Sendable (borrowing StreamSocket) throws -> Void) throws {
        let (listener, port) = try listenOnLoopback(backlog: 1024)
        self.listener = listener
        self.port = port
        try startThread {
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                if connection < 0, errno == EINTR || errno == ECONNABORTED { continue }
                guard connection >= 0 else { return }
                try? startThread {
                    let socket = StreamSocket(adopting: connection)
                    socket.setReadTimeout(30)
                    try? talk(socket)
                }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// The number of sockets of this process that are connected to the peer.
    package var connections: Int {
        (0..<2048).count { descriptor in
            var address = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getpeername(Int32(descriptor), $0, &length)
                }
            }
            return result == 0 && address.sin_family == sa_family_t(AF_INET)
                && UInt16(bigEndian: address.sin_port) == UInt16(port)
        }
    }
}

extension StreamSocket {
    package borrowing func echo() throws {
        while true {
            let piece = try receive()
            if piece.isEmpty { return }
            send(piece)
        }
    }

    package borrowing func endWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Makes the close send RST instead of FIN.
    package borrowing func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Reads lines up to the empty line.
    package borrowing func readHead() throws -> [String] {
        var lines: [String] = []
        while let line = try readLine(), line != "\r" { lines.append(line.filter { $0 != "\r" }) }
        return lines
    }

    /// Relays bytes in both directions between this connection and a port, until both sides have finished.
    ///
    /// - Parameters:
    ///   - pause: the delay in microseconds after each piece sent to the port.
    ///   - spoiled: the number of bytes from the port that are relayed unchanged; all later bytes are inverted.
    package borrowing func relay(to port: Int, pausing pause: UInt32 = 0, spoilingAfter spoiled: Int? = nil) throws {
        let other = try StreamSocket(port: port)
        let (here, there) = (descriptor, other.descriptor)
        let done = DispatchSemaphore(value: 0)
        try startThread {
            copy(from: there, to: here, spoilingAfter: spoiled)
            done.signal()
        }
        copy(from: here, to: there, pausing: pause)
        done.wait()
    }
}

private func copy(from source: Int32, to target: Int32, pausing pause: UInt32 = 0, spoilingAfter spoiled: Int? = nil) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    var passed = 0
    while true {
        let count = recv(source, &buffer, buffer.count, 0)
        guard count > 0 else { break }
        if let spoiled, passed + count > spoiled {
            for index in max(0, spoiled - passed)..<count { buffer[index] = ~buffer[index] }
        }
        passed += count
        guard sendAll(target, buffer[..<count]) else { break }
        if pause > 0 { usleep(pause) }
    }
    shutdown(target, Int32(SHUT_WR))
}
