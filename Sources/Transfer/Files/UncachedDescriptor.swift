import CLinux
import Glibc
import Synchronization

/// A second descriptor of a file, for writes that bypass the page cache (O_DIRECT, open(2)).
///
/// Such writes need half the processor time: no pages are allocated, filled, written back and dropped. They are as
/// durable as other writes, so only after a sync.
final class UncachedDescriptor: Sendable {
    private enum State {
        case closed
        case open(FileDescriptorOwner)
        /// The file system does not support such writes to this file.
        case refused
    }

    private let state = Mutex(State.closed)

    /// The divisor of the offsets and lengths of such writes, in bytes. No disk in use has larger blocks.
    private static let alignment = 4096

    /// Opens the file of `descriptor` unless that was done.
    ///
    /// - Returns: Whether it is open.
    func open(_ descriptor: FileDescriptorOwner) -> Bool {
        state.withLock { state in
            switch state {
            case .open: return true
            case .refused: return false
            case .closed:
                let raw = linux_open_uncached(descriptor.raw)
                state = raw < 0 ? .refused : .open(FileDescriptorOwner(raw))
                return raw >= 0
            }
        }
    }

    func close() {
        state.withLock { state in
            if case .open = state { state = .closed }
        }
    }

    /// Writes the leading bytes that can be written without the page cache.
    ///
    /// - Parameter bytes: bytes whose address is a multiple of the page size.
    /// - Returns: the number of bytes written; the others must be written otherwise.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TransferError) -> Int {
        let count = bytes.count / Self.alignment * Self.alignment
        guard count > 0, offset % Int64(Self.alignment) == 0,
            case .open(let descriptor) = state.withLock({ $0 })
        else { return 0 }
        do throws(TransferError) {
            try descriptor.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: offset)
            return count
        } catch {
            guard error.systemError == EINVAL else { throw error }
            state.withLock { $0 = .refused }
            return 0
        }
    }
}
