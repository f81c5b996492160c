import CReceiver
import Glibc
import Synchronization

/// The daemon's end of a client's connection. The last reference closes it.
///
/// A client may send open files at any time (SCM_RIGHTS, unix(7)). Whoever reads such a message without room for them, or
/// closes the connection with it, closes the files too, and a socket among them may take as long for that as the client
/// likes (SO_LINGER, socket(7)). So nothing here reads or closes where files wait: the ``ReceivingProcess`` does.
final class ClientSocket: Sendable {
    /// What waits in a connection.
    enum Waiting {
        /// So many bytes at the front of the buffer, none of them with files.
        case bytes(Int)
        /// Files come with some of the bytes that wait. The kernel does not say with which.
        case files
        case nothing
        /// The client will send nothing more.
        case end
        case failed(Int32)
    }

    let descriptor: Int32
    private let user: UInt32
    private let isShared = Atomic(false)

    /// - Parameters:
    ///   - descriptor: that of a connected Unix stream socket; belongs to this from now on.
    ///   - user: whose processes of the ``ReceivingProcess`` it counts among.
    init(_ descriptor: Int32, user: UInt32) {
        self.descriptor = descriptor
        self.user = user
        // Either makes the kernel say of each message what it says of those with files. A listening socket that is passed
        // in may have them set.
        var no: Int32 = 0
        for option in [SO_PASSCRED, SO_PASSSEC] {
            // Where it fails, each message counts as one with files, and is refused.
            _ = setsockopt(descriptor, SOL_SOCKET, option, &no, socklen_t(MemoryLayout<Int32>.size))
        }
        // Otherwise nobody would see an urgent byte (MSG_OOB) and its files before the kernel closes them.
        var yes: Int32 = 1
        // It fails for no socket.
        _ = setsockopt(descriptor, SOL_SOCKET, SO_OOBINLINE, &yes, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Says whether another process reads the connection now. Files may then go from under whoever looks at them.
    func share(_ isShared: Bool) { self.isShared.store(isShared, ordering: .sequentiallyConsistent) }

    deinit {
        _ = shutdown(descriptor, Int32(SHUT_RD))  // fails where the client is gone; it can send nothing more then
        if !isShared.load(ordering: .sequentiallyConsistent), Self.isDrained(descriptor) {
            _ = close(descriptor)  // what was written is the client's to read
        } else {
            ReceivingProcess.close(descriptor, user: user)
        }
    }

    /// Looks at what waits, without taking it and without waiting.
    func peek(into buffer: UnsafeMutableRawBufferPointer) -> Waiting { Self.peek(descriptor, into: buffer) }

    /// Takes so many bytes that ``peek(into:)`` showed.
    ///
    /// - Returns: whether exactly those were taken.
    func take(_ count: Int, with buffer: UnsafeMutableRawBufferPointer) -> Bool {
        Self.take(descriptor, count, with: buffer)
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

    private static func take(
        _ descriptor: Int32, _ count: Int, with buffer: UnsafeMutableRawBufferPointer
    ) -> Bool {
        var taken: Int
        repeat {
            taken = recv(descriptor, buffer.baseAddress, min(count, buffer.count), Int32(MSG_DONTWAIT))
        } while taken < 0 && errno == EINTR
        return taken == count
    }

    // MARK: - The end

    /// Reads what lies there to its end.
    ///
    /// - Returns: `false` where files wait.
    private static func isDrained(_ descriptor: Int32) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { buffer in
            while true {
                switch peek(descriptor, into: buffer) {
                case .bytes(let count): if !take(descriptor, count, with: buffer) { return false }
                case .files: return false
                case .nothing, .end, .failed: return true
                }
            }
        }
    }
}
