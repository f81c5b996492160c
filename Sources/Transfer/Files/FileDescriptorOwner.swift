import Curl
import Glibc

/// An owner of a file descriptor. It closes the descriptor when its last reference is released, on whatever thread.
final class FileDescriptorOwner: Sendable {
    let raw: Int32
    private let closed: (@Sendable () -> Void)?

    /// - Parameter closed: if given, the descriptor is closed on a separate thread, which then calls this. It is for
    ///   file systems that may block the caller of close.
    init(_ raw: Int32, closingApart closed: (@Sendable () -> Void)? = nil) {
        self.raw = raw
        self.closed = closed
    }

    deinit {
        guard let closed else {
            _ = close(raw)  // necessary syncs were done before; close frees the number in any case
            return
        }
        // If no thread can be started, the descriptor stays open and counts as open.
        SystemThread.start(name: "dld-closing") { [raw] in
            _ = close(raw)  // nothing was written to the descriptor
            closed()
        }
    }

    /// Writes all of `bytes` at `offset`, with as many calls as the kernel needs.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TransferError) {
        var done = 0
        while done < bytes.count {
            let count = pwrite(
                raw, bytes.baseAddress.map { $0 + done }, bytes.count - done, off_t(offset) + off_t(done))
            if count > 0 {
                done += count
            } else if count == 0 || errno != EINTR {
                throw .file(count == 0 ? EIO : errno, doing: "write the part file")
            }
        }
    }

    /// Reads until `space` is full or the file ends.
    ///
    /// - Returns: the number of bytes read.
    func read(into space: UnsafeMutableRawBufferPointer, at offset: Int64) throws(TransferError) -> Int {
        var done = 0
        while done < space.count {
            let count = pread(raw, space.baseAddress.map { $0 + done }, space.count - done, off_t(offset) + off_t(done))
            if count > 0 {
                done += count
            } else if count == 0 {
                break
            } else if errno != EINTR {
                throw .file(errno, doing: "read the file")
            }
        }
        return done
    }

    func status() throws(TransferError) -> stat {
        var information = stat()
        guard fstat(raw, &information) == 0 else { throw .file(errno, doing: "examine the file") }
        return information
    }

    /// Writes the file's data and length to the disk (fdatasync).
    func synchronize() throws(TransferError) {
        while fdatasync(raw) != 0 {
            guard errno == EINTR else { throw .file(errno, doing: "sync the part file") }
        }
    }

    /// Writes the file with all of its metadata to the disk (fsync), as far as one file's sync can.
    func synchronizeAll() throws(TransferError) {
        while fsync(raw) != 0 {
            guard errno == EINTR else { throw .file(errno, doing: "sync the file") }
        }
    }
}
