import CLinux
import Glibc
import Synchronization

/// A second descriptor of a file, for writes that bypass the page cache (O_DIRECT, open(2)).
///
/// The kernel allocates, fills, writes back and drops no pages for these, which halves the processor time. They are
/// durable after a sync only, as all writes are.
///
/// While it is open, other processes that write to the file are noticed.
final class UncachedDescriptor: Sendable {
    private enum State {
        case closed
        case open(FileDescriptorOwner, WriterWatch)
        /// The file system does not support such writes to this file.
        case refused
    }

    private let state = Mutex(State.closed)
    /// Whether the descriptor was ever open. Most files never have it, and are spared the lock.
    private let wasOpened = Atomic(false)
    /// Whether another process had written to the file when the descriptor was closed.
    private let hadWriter = Atomic(false)

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
                let opened = raw < 0 ? nil : FileDescriptorOwner(raw)
                guard let opened, let watch = WriterWatch(of: descriptor) else {
                    state = .refused
                    return false
                }
                state = .open(opened, watch)
                wasOpened.store(true, ordering: .relaxed)
                return true
            }
        }
    }

    func close() { leave(.closed) }

    private func leave(_ next: State) {
        let old = state.withLock { state in
            let old = state
            if case .open = old { state = next }
            return old
        }
        guard case .open(let descriptor, let watch) = old else { return }
        // Before the descriptor is closed, which the watch would report too.
        if withExtendedLifetime(descriptor, { watch.hasSeenWriter() }) { hadWriter.store(true, ordering: .relaxed) }
    }

    /// Returns whether another process has written to the file since the last call, as far as it was noticed.
    func takeWriter() -> Bool {
        guard wasOpened.load(ordering: .relaxed) else { return false }
        if hadWriter.exchange(false, ordering: .relaxed) { return true }
        return state.withLock { state in
            if case .open(_, let watch) = state { watch.hasSeenWriter() } else { false }
        }
    }

    /// Writes the leading bytes that can be written without the page cache.
    ///
    /// - Parameter bytes: bytes whose address is a multiple of the page size.
    /// - Returns: the number of bytes written; the others must be written otherwise.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(TransferError) -> Int {
        let count = bytes.count / Self.alignment * Self.alignment
        guard count > 0, offset % Int64(Self.alignment) == 0,
            case .open(let descriptor, _) = state.withLock({ $0 })
        else { return 0 }
        do throws(TransferError) {
            try descriptor.write(UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: offset)
            return count
        } catch {
            guard error.systemError == EINVAL else { throw error }
            leave(.refused)
            return 0
        }
    }
}

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
