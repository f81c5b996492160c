import Glibc

/// A complete copy of the database, in a file that has no name any more. Its disk space is freed with the last
/// reference, however the process ends.
package final class StoreBackup: Sendable {
    /// The size of the copy in bytes.
    package let bytes: Int64
    /// The number of tasks in the copy.
    package let tasks: Int
    /// The sequence number of the newest event in the copy.
    package let lastEvent: Int64
    /// The name of the event journal that the copy begins.
    package let journal: String

    private let descriptor: Int32
    private let place: BackupPlaces.Place

    /// The facts of a copy that was completed.
    struct Content: Sendable {
        var tasks: Int
        var lastEvent: Int64
        var journal: String
    }

    /// - Parameter descriptor: the file, which this object closes.
    init(_ content: Content, bytes: Int64, descriptor: Int32, place: BackupPlaces.Place) {
        tasks = content.tasks
        lastEvent = content.lastEvent
        journal = content.journal
        self.bytes = bytes
        self.descriptor = descriptor
        self.place = place
    }

    deinit { _ = close(descriptor) }  // nothing was written to it since the copy was checked

    /// Returns at most `count` bytes from `offset` on; none at the end.
    package func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let got = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress?.advanced(by: done), count - done, off_t(offset) + off_t(done))
            }
            if got == 0 { break }
            if got > 0 {
                done += got
            } else if errno != EINTR {
                throw .io("the copy of the database: \(String(cString: strerror(errno)))")
            }
        }
        bytes.removeLast(count - done)
        return bytes
    }
}
