import CLinux
import ControlProtocol
import Glibc

/// A connected Unix socket that sends and receives LF-terminated lines.
///
/// An instance may be used by only one thread at a time. All waits use poll(2), so that each wait ends at its deadline.
final class LineChannel {
    let path: String
    private let descriptor: Int32
    /// Received bytes. Those from `start` on are not yet returned; those up to `searched` contain no further LF.
    private var buffer: [UInt8] = []
    private var start = 0
    private var searched = 0
    /// The memory for one call of recv(2).
    private var room = [UInt8](repeating: 0, count: 64 * 1024)

    /// The maximum length of a received line: 16 times the protocol's limit, to leave room for a newer daemon.
    private static let answerLimit = 16 * MessageLimits.lineLength
    /// The time-out of connect(2) in seconds while the daemon's backlog is full.
    private static let connectSeconds = 10

    init(connectingTo path: String) throws(ClientError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count <= SocketPath.maximumLength, !bytes.contains(0) else {
            throw .unusablePath(path)
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }

        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .noDaemon(paths: [path], errno: errno) }
        // connect(2) on a full backlog blocks for at most the socket's send time-out.
        var limit = timeval(tv_sec: Self.connectSeconds, tv_usec: 0)
        // If setting the option fails, the only effect is a longer wait on a full backlog.
        _ = setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var outcome: Int32
        repeat {
            outcome = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        } while outcome != 0 && errno == EINTR
        if outcome != 0 {
            let code = errno
            _ = close(descriptor)  // never connected
            switch code {
            case EACCES, EPERM: throw .notPermitted(path: path)
            case EAGAIN: throw .timedOut
            default: throw .noDaemon(paths: [path], errno: code)
            }
        }
        self.path = path
        self.descriptor = descriptor
    }

    /// Returns a second descriptor of the socket; `nil` if the process has too many open files.
    func duplicate() -> Int32? {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        return copy < 0 ? nil : copy
    }

    deinit { _ = close(descriptor) }  // responses, not close(2), confirm delivery

    /// Sends `line` and a terminating LF.
    func send(_ line: [UInt8], until deadline: Deadline) throws(ClientError) {
        var rest = (line + [UInt8(ascii: "\n")])[...]
        while !rest.isEmpty {
            // MSG_NOSIGNAL: sending to a daemon that has exited must not raise SIGPIPE in this process.
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                try wait(for: Int16(POLLOUT), until: deadline)
            } else if errno != EINTR {
                // The daemon may have sent a reason before it closed the connection; the response can still be read.
                return
            }
        }
    }

    /// Sends an LF together with open files (SCM_RIGHTS, unix(7)).
    ///
    /// - Parameter descriptors: 1 to ``SourceReceiveParameters/maximum`` file descriptors. The caller keeps ownership
    ///   of them.
    func send(descriptors: [Int32], until deadline: Deadline) throws(ClientError) {
        while linux_send_descriptors(descriptor, CChar(UInt8(ascii: "\n")), descriptors, Int32(descriptors.count)) < 0 {
            switch errno {
            case EINTR: continue
            case EAGAIN: try wait(for: Int16(POLLOUT), until: deadline)
            // The user's limit of descriptors in flight is reached by earlier messages that have not been received yet.
            case ETOOMANYREFS: throw .timedOut
            // The daemon may have sent a reason before it closed the connection; the response can still be read.
            default: return
            }
        }
    }

    /// Returns the next line without its LF.
    ///
    /// - Throws: ``ClientError/timedOut``, ``ClientError/connectionLost(path:)``, or
    ///   ``ClientError/malformedAnswer(_:)`` for a line that exceeds the maximum length.
    func receive(until deadline: Deadline) throws(ClientError) -> ArraySlice<UInt8> {
        while true {
            if let end = nextLineFeed() {
                let line = buffer[start..<end]
                start = end + 1
                searched = start
                return line
            }
            if start > 0 {
                buffer.removeFirst(start)
                start = 0
            }
            searched = buffer.count
            guard buffer.count <= Self.answerLimit else { throw .malformedAnswer("a line is too long") }
            try fill(until: deadline)
        }
    }

    /// Returns the index of the first LF at or after `searched`.
    private func nextLineFeed() -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let first = bytes.baseAddress, searched < bytes.count,
                let found = memchr(first + searched, Int32(UInt8(ascii: "\n")), bytes.count - searched)
            else { return nil }
            return first.distance(to: UnsafeRawPointer(found))
        }
    }

    private func fill(until deadline: Deadline) throws(ClientError) {
        while true {
            let count = room.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT))
            }
            let code = errno
            if count > 0 {
                room.withUnsafeBytes { buffer.append(contentsOf: $0.prefix(count)) }
                return
            }
            guard count < 0, code == EAGAIN || code == EINTR else { throw .connectionLost(path: path) }
            if code == EAGAIN { try wait(for: Int16(POLLIN), until: deadline) }
        }
    }

    private func wait(for events: Int16, until deadline: Deadline) throws(ClientError) {
        var entry = pollfd(fd: descriptor, events: events, revents: 0)
        while poll(&entry, 1, deadline.pollTimeout) <= 0 {
            if deadline.isOver { throw .timedOut }
        }
    }
}
