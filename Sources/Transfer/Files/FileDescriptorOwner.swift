import Curl
import Glibc

/// Owns a descriptor: closed when the last user is done with it, whichever thread that is on.
final class FileDescriptorOwner: Sendable {
    let raw: Int32
    private let closed: (@Sendable () -> Void)?

    /// - Parameter closed: where it is given, the descriptor is closed on a thread of its own, on which this is called
    ///   afterwards: the file system may keep whoever closes it waiting.
    init(_ raw: Int32, closingApart closed: (@Sendable () -> Void)? = nil) {
        self.raw = raw
        self.closed = closed
    }

    deinit {
        guard let closed else {
            _ = close(raw)  // what must be on the disk was synchronized before; frees the number in any case
            return
        }
        // Without a thread it stays open, and counts as that.
        SystemThread.start(name: "dld-closing") { [raw] in
            _ = close(raw)  // nothing was written to it
            closed()
        }
    }

    /// Writes all of `bytes` at `offset`, however often the kernel takes less than it was given.
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
    /// - Returns: how many bytes were read.
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
        guard fstat(raw, &information) == 0 else { throw .file(errno, doing: "look at the file") }
        return information
    }

    /// Brings the file's bytes, and its length, to the disk.
    func synchronize() throws(TransferError) {
        while fdatasync(raw) != 0 {
            guard errno == EINTR else { throw .file(errno, doing: "bring the part file to the disk") }
        }
    }
}
