import Glibc
import Synchronization

/// A blocking stream socket of the test harness, closed when it is deinitialised.
package struct StreamSocket: ~Copyable {
    package let descriptor: Int32

    package init(adopting descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Connects to a port of 127.0.0.1.
    package init(port: Int) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        let result = withLoopbackAddress(port: port) { connect(descriptor, $0, $1) }
        guard result == 0 else { throw SystemError("connecting to port \(port)") }
    }

    /// Connects to a Unix socket.
    package init(path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        let result = try withUnixAddress(path) { connect(descriptor, $0, $1) }
        guard result == 0 else { throw SystemError("connecting to \(path)") }
    }

    /// Sets the time after which a read without data fails with `EAGAIN`, in seconds.
    package func setReadTimeout(_ seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends bytes.
    ///
    /// - Returns: whether all bytes were sent; a closed connection is not an error here.
    @discardableResult
    package func send(_ bytes: some Sequence<UInt8>) -> Bool { sendAll(descriptor, Array(bytes)) }

    /// Receives available bytes.
    ///
    /// - Returns: an empty array at the end of the stream.
    package func receive(atMost count: Int = 65536) throws -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: count)
        while true {
            let got = recv(descriptor, &buffer, count, 0)
            if got >= 0 { return Array(buffer[..<got]) }
            if errno != EINTR { throw SystemError("receiving") }
        }
    }

    /// Reads a line up to the next LF, which is omitted, or to the end of the stream.
    ///
    /// - Returns: `nil` if the stream ends before the first byte.
    package func readLine() throws -> String? {
        var line: [UInt8] = []
        while let byte = try receive(atMost: 1).first {
            if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(byte)
        }
        return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }

    /// Reads all bytes up to the end of the stream.
    package func readToEnd() throws -> [UInt8] {
        var all: [UInt8] = []
        while true {
            let piece = try receive()
            if piece.isEmpty { return all }
            all += piece
        }
    }
}

/// A source of unused ports of this machine.
package enum FreePort {
    private static let first = Int.random(in: 0..<12_000)
    private static let given = Atomic<Int>(0)

    /// Returns a port that was free just now and that this process does not return again for a long time: a server
    /// needs time to start listening and must not find another one on its port. The port is below the range for
    /// outgoing connections (ip(7), `ip_local_port_range`), one of which could take it meanwhile.
    package static func next() throws -> Int {
        var refusal: any Error = SystemError("looking for a port", number: EADDRINUSE)
        for _ in 0..<100 {
            do {
                let next = first + given.wrappingAdd(1, ordering: .relaxed).newValue
                let (descriptor, port) = try listenOnLoopback(port: 20_000 + next % 12_000, backlog: 1)
                close(descriptor)
                return port
            } catch {
                refusal = error
            }
        }
        throw refusal
    }
}

/// - Parameter host: the last number of the address 127.0.0.x.
/// - Returns: a listening socket and its port, which the kernel chooses if `port` is 0.
func listenOnLoopback(
    host: UInt8 = 1, port: Int = 0, backlog: Int32
) throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw SystemError("socket") }
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard withLoopbackAddress(host: host, port: port, { bind(descriptor, $0, $1) }) == 0,
        listen(descriptor, backlog) == 0
    else {
        let error = SystemError("listening on 127.0.0.\(host):\(port)")
        close(descriptor)
        throw error
    }
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &length) }
    }
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
}

func sendAll(_ descriptor: Int32, _ bytes: some Collection<UInt8>) -> Bool {
    let sent = bytes.withContiguousStorageIfAvailable { sendAll(descriptor, UnsafeRawBufferPointer($0)) }
    return sent ?? Array(bytes).withUnsafeBytes { sendAll(descriptor, $0) }
}

func sendAll(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
        let slice = UnsafeRawBufferPointer(rebasing: rest)
        let count = send(descriptor, slice.baseAddress, slice.count, Int32(MSG_NOSIGNAL))
        if count > 0 {
            rest = rest.dropFirst(count)
        } else if errno != EINTR {
            return false
        }
    }
    return true
}

func withLoopbackAddress(host: UInt8 = 1, port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(truncatingIfNeeded: port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7F00_0000 | UInt32(host)).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}

func withUnixAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) throws -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    let room = MemoryLayout.size(ofValue: address.sun_path)
    guard bytes.count < room else { throw SystemError(path, number: ENAMETOOLONG) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
}

/// The supervisor's end of `NOTIFY_SOCKET` (sd_notify(3)), which receives a service's status messages.
package struct NotifySocket: ~Copyable {
    package let path: String
    private let descriptor: Int32

    package init(path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        let result = try withUnixAddress(path) { bind(descriptor, $0, $1) }
        guard result == 0 else { throw SystemError("binding \(path)") }
    }

    deinit { close(descriptor) }

    /// Returns the next message that has arrived, or `nil` if there is none.
    package func message() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let got = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return got > 0 ? String(decoding: buffer[..<got], as: UTF8.self) : nil
    }
}
