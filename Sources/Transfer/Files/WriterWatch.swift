import Glibc

/// A watch for other processes that write to a file (inotify(7)). It reports a process when it closes the file.
///
/// The file's modification time does not show a change in the very moment in which this process writes, and large
/// blocks are written nearly all the time.
final class WriterWatch: Sendable {
    private let descriptor: FileDescriptorOwner

    /// - Returns: `nil` if the user has no watch left.
    init?(of file: FileDescriptorOwner) {
        let raw = inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC))
        guard raw >= 0 else { return nil }
        descriptor = FileDescriptorOwner(raw)
        guard inotify_add_watch(raw, "/proc/self/fd/\(file.raw)", 0x8) >= 0 else { return nil }  // IN_CLOSE_WRITE
    }

    /// Returns whether a process has closed the file since the last call.
    func hasSeenWriter() -> Bool {
        // Equal events in a row are one.
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { space in
            var isSeen = false
            while let base = space.baseAddress, read(descriptor.raw, base, space.count) > 0 { isSeen = true }
            return isSeen
        }
    }
}
