import CReceiver
import Glibc
import Synchronization

/// The daemon's end of a client's connection, closed when the last reference is released.
///
/// A client may send open files at any time (SCM_RIGHTS, unix(7)). A process that reads such a message without room for
/// the files, or closes the connection with the message unread, closes the files too. A socket among them may block
/// that close for as long as the client likes (SO_LINGER, socket(7)). Nothing here therefore reads or closes a
/// connection in which files wait: the ``ReceivingProcess`` does.
final class ClientSocket: Sendable {
    /// The data that waits in a connection.
    enum Waiting {
        /// The number of bytes at the front of the buffer that come without files.
        case bytes(Int)
        /// Files come with some of the waiting bytes. The kernel does not report with which.
        case files
        case nothing
        /// The client has closed its end and will send nothing more.
        case end
        case failed(Int32)
    }

    let descriptor: Int32
    private let user: UInt32
    private let isShared = Atomic(false)

    /// - Parameters:
    ///   - descriptor: a connected Unix stream socket, owned by this object from now on.
    ///   - user: the uid whose share of the ``ReceivingProcess``'s child processes this connection uses.
    init(_ descriptor: Int32, user: UInt32) {
        self.descriptor = descriptor
        self.user = user
        // Either option makes the kernel report every message like one with files. A listening socket that was passed
        // in may have them set.
        var no: Int32 = 0
        for option in [SO_PASSCRED, SO_PASSSEC] {
            // If this fails, every message counts as one with files and is refused.
            _ = setsockopt(descriptor, SOL_SOCKET, option, &no, socklen_t(MemoryLayout<Int32>.size))
        }
        // Without this option, the kernel could close an urgent byte (MSG_OOB) and its files before they are noticed.
        var yes: Int32 = 1
        // Fails for no socket.
        _ = setsockopt(descriptor, SOL_SOCKET, SO_OOBINLINE, &yes, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Records whether another process reads the connection now. That process may remove files after this one has seen
    /// them.
    func setShared(_ isShared: Bool) { self.isShared.store(isShared, ordering: .sequentiallyConsistent) }

    deinit {
        _ = shutdown(descriptor, Int32(SHUT_RD))  // fails if the client has closed, and so can send nothing more
        if !isShared.load(ordering: .sequentiallyConsistent), Self.isDrained(descriptor) {
            _ = close(descriptor)  // the client can still read what was written
        } else {
            ReceivingProcess.close(descriptor, user: user)
        }
    }

    /// Copies the waiting bytes, without consuming them and without blocking.
    func peek(into buffer: UnsafeMutableRawBufferPointer) -> Waiting { Self.peek(descriptor, into: buffer) }

    /// Consumes `count` bytes that ``peek(into:)`` has returned.
    ///
    /// - Returns: whether exactly those bytes were consumed.
    func consume(_ count: Int, with buffer: UnsafeMutableRawBufferPointer) -> Bool {
        Self.consume(descriptor, count, with: buffer)
    }

    private static func peek(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Waiting {
        var hasFiles: Int32 = 0
        var count: Int
        repeat {
            count = creceiver_peek(descriptor, buffer.baseAddress, buffer.count, &hasFiles)
        } while count < 0 && errno == EINTR
        if count == 0 { return .end }
        if count < 0 { return errno == EAGAIN ? .nothing : .failed(errno) }
        return hasFiles != 0 ? .files : .bytes(count)
    }

    private static func consume(
        _ descriptor: Int32, _ count: Int, with buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        var taken: Int
        repeat {
            taken = recv(descriptor, buffer.baseAddress, min(count, buffer.count), Int32(MSG_DONTWAIT))
        } while taken < 0 && errno == EINTR
        return taken == count
    }

    // MARK: - Closing

    /// Reads and discards all waiting bytes.
    ///
    /// - Returns: `false` if files wait.
    private static func isDrained(_ descriptor: Int32) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { buffer in
            while true {
                switch peek(descriptor, into: buffer) {
                case .bytes(let count): if !consume(descriptor, count, with: buffer) { return false }
                case .files: return false
                case .nothing, .end, .failed: return true
                }
            }
        }
    }
}
