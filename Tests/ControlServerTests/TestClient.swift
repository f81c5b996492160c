import Dispatch
import Glibc
import Synchronization

/// A client without any knowledge of the protocol: it sends bytes and receives lines.
///
/// Its calls block on their own queue and never on Swift's threads, which the server needs too.
final class TestClient: Sendable {
    struct Failure: Error {
        let call: String
        let errno: Int32
    }

    let descriptor: Int32
    private let queue = DispatchQueue(label: "client")
    private let received = Mutex<[UInt8]>([])

    init(connectingTo path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(call: "socket", errno: errno) }
        // A time-out, so that no test waits for ever.
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let connected = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else {
            let failure = Failure(call: "connect", errno: errno)
            Glibc.close(descriptor)
            throw failure
        }
    }

    deinit { Glibc.close(descriptor) }

    private func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }

    /// - Throws: ``Failure`` if the server has closed the connection; the bytes that it sent before can still be read.
    func send(_ bytes: [UInt8]) async throws {
        try await blocking { [descriptor] in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { throw Failure(call: "send", errno: errno) }
                rest.removeFirst(count)
            }
        }
    }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// Returns the next line without its LF.
    ///
    /// - Returns: `nil` at the end of the connection.
    func line() async throws -> String? {
        try await blocking { [self] in
            while true {
                let line = received.withLock { bytes -> String? in
                    guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
                    defer { bytes.removeSubrange(...end) }
                    return String(decoding: bytes[..<end], as: UTF8.self)
                }
                if let line { return line }
                var chunk = [UInt8](repeating: 0, count: 65_536)
                let count = recv(descriptor, &chunk, chunk.count, 0)
                if count == 0 || (count < 0 && errno == ECONNRESET) { return nil }
                guard count > 0 else { throw Failure(call: "recv", errno: errno) }
                received.withLock { [chunk] in $0.append(contentsOf: chunk[..<count]) }
            }
        }
    }

    func ask(_ text: String) async throws -> String? {
        try await send(text + "\n")
        return try await line()
    }

    func shutdownWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Shuts down both directions at once, as a client's exit does.
    func leave() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Sends `bytes` with `count` copies of the descriptor `passed` as ancillary data (SCM_RIGHTS, unix(7)).
    /// - Parameter flags: the flags of send(2).
    func send(_ bytes: [UInt8], passing passed: Int32, count: Int, flags: Int32 = 0) throws {
        // `struct cmsghdr` is a length of 8 bytes, a level and a type of 4 bytes each; the descriptors follow.
        var control: [Int32] = [Int32(16 + 4 * count), 0, SOL_SOCKET, 1]
        control += [Int32](repeating: passed, count: count)
        if control.count % 2 == 1 { control.append(0) }
        var body = bytes
        let sent = control.withUnsafeMutableBytes { control in
            body.withUnsafeMutableBytes { body in
                var vector = iovec(iov_base: body.baseAddress, iov_len: body.count)
                return withUnsafeMutablePointer(to: &vector) { vector in
                    var message = msghdr()
                    message.msg_iov = vector
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    return sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL) | flags)
                }
            }
        }
        guard sent == bytes.count else { throw Failure(call: "sendmsg", errno: errno) }
    }
}
