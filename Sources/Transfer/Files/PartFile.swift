import CLinux
import Glibc
import Synchronization

/// The file of a download that is not complete. It is in the destination's directory under a name of its own, and only
/// its owner may access it.
///
/// Beside many other transfers, a small file that arrives at once has no name until it is complete, see
/// `makeUnnamed`.
///
/// The file is written on the event loop's thread and synced on others. No other process uses it at the same time, see
/// `PartLock`.
public final class PartFile: Sendable {
    let descriptor: FileDescriptorOwner
    /// The directory of the part file and of the finished file.
    public let directory: Directory
    /// The name of the part file in its directory. If `isNamed` is `false`, nothing has this name.
    public let name: String
    /// Whether the file has its name ``name``.
    let isNamed: Bool
    /// The generation, also recorded in an extended attribute of the file if the file system supports them.
    let generation: String
    private let inode: UInt64
    /// The lock; `nil` if the file system does not support locks.
    private let lock: PartLock?

    /// A contiguous run of blocks by one writer, from `start` to its current end.
    ///
    /// The end is advanced without a lock, so that a block needs none; a run begins and ends under the lock.
    final class WriteRun: Sendable {
        let start: Int64
        private let front: Atomic<Int64>

        init(start: Int64) {
            self.start = start
            front = Atomic(start)
        }

        /// The end of the last block.
        var end: Int64 { front.load(ordering: .acquiring) }

        fileprivate func move(to end: Int64) { front.store(end, ordering: .releasing) }
    }

    private struct State {
        /// Ranges passed to the kernel, without the active runs.
        var written: ByteRangeSet
        var runs: [WriteRun] = []
        /// Ranges covered by a completed sync.
        var durable: ByteRangeSet
        /// The error of a failed sync. The kernel has dropped the unwritten data then, even if a later sync succeeds.
        var failure: TransferError?
    }

    private let state: Mutex<State>
    /// The modification time after this process's last change, in nanoseconds since 1970; 0 if it is unknown.
    private let changed = Atomic<Int64>(0)
    private var reportsChanges: Bool { directory.fileSystem.reportsChanges }
    /// The end of the leading bytes that this process will not read again; `.max` if it reads nothing.
    private let read = Atomic<Int64>(.max)
    private let uncached = UncachedDescriptor()

    /// - Parameter information: the status of a file with a name.
    private init(
        descriptor: FileDescriptorOwner, _ information: stat?, directory: Directory, name: String, generation: String,
        ranges: ByteRangeSet, lock: PartLock?, isNamed: Bool = true
    ) {
        self.lock = lock
        self.isNamed = isNamed
        inode = information.map { UInt64($0.st_ino) } ?? 0
        self.descriptor = descriptor
        self.directory = directory
        self.name = name
        self.generation = generation
        state = Mutex(State(written: ranges, durable: ranges))
        if reportsChanges, let information { changed.store(Self.time(information), ordering: .relaxed) }
    }

    /// Records the current modification time as the result of this process's own changes. No other process can change a
    /// file without a name.
    func recordChange() {
        guard isNamed, reportsChanges, let information = try? descriptor.status() else { return }
        changed.store(Self.time(information), ordering: .relaxed)
    }

    private static func time(_ information: stat) -> Int64 {
        Int64(information.st_mtim.tv_sec) * 1_000_000_000 + Int64(information.st_mtim.tv_nsec)
    }

    /// Creates an empty part file. An older one of this name belongs to an outdated version and is removed.
    ///
    /// - Parameter owner: the name of the task; with a random suffix it becomes the generation.
    /// - Throws: `partInUse` if another process uses the older part file.
    static func make(in directory: Directory, name: String, owner: String) throws(TransferError) -> PartFile {
        var descriptor = create(name, in: directory)
        if descriptor < 0, errno == EEXIST {
            try PartLock.checkFree(name, in: directory)
            try directory.remove(name)
            descriptor = create(name, in: directory)
        }
        guard descriptor >= 0 else {
            throw directory.refusal(errno, doing: "create the part file in \(directory.path)", of: name)
        }
        let owned = FileDescriptorOwner(descriptor)
        let information = try owned.status()
        let lock = try PartLock.acquire(owned, Inode(information), path: directory.path(of: name))
        return PartFile(
            descriptor: owned, information, directory: directory, name: name,
            generation: markAsNew(descriptor, of: owner), ranges: ByteRangeSet(), lock: lock)
    }

    /// Whether a file can be named by its descriptor without a privilege.
    private static let canNameDescriptors = access("/proc/self/fd", F_OK) == 0

    /// Creates an empty file without a name (O_TMPFILE, open(2)). It vanishes unless it is published, so its download
    /// cannot be resumed.
    ///
    /// The name of such a file survives a power failure only after a sync of the whole file system: the directory's
    /// entry and the file's link count need not be in one transaction. It has the permissions of the finished file from
    /// the beginning, since no other process can open it.
    ///
    /// - Parameters:
    ///   - name: the name of the task's part file, which does not exist.
    ///   - owner: the name of the task, as for ``make(in:name:owner:)``.
    ///   - isPrivate: whether only its owner may read the finished file.
    /// - Returns: `nil` if the directory needs a part file with a name.
    static func makeUnnamed(in directory: Directory, name: String, owner: String, isPrivate: Bool) -> PartFile? {
        guard canNameDescriptors, directory.fileSystem.reportsChanges else { return nil }
        let descriptor = linux_create_unnamed(directory.descriptor.raw, isPrivate ? 0o600 : 0o666)
        // A part file with a name reports the reason.
        guard descriptor >= 0 else { return nil }
        return PartFile(
            descriptor: FileDescriptorOwner(descriptor), nil, directory: directory, name: name,
            generation: markAsNew(descriptor, of: owner), ranges: ByteRangeSet(), lock: nil, isNamed: false)
    }

    private static func create(_ name: String, in directory: Directory) -> Int32 {
        linux_openat_beneath(directory.descriptor.raw, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    }

    /// Opens the part file of `resumeData`.
    ///
    /// - Returns: `nil` if there is none or it does not match: it is shorter, has another generation, is not a regular
    ///   file, or was changed since it was closed.
    /// - Throws: if this cannot be determined at present, as on a read-only or failing file system, without a free
    ///   descriptor, or with a flag that prevents writes to the part (chattr(1)). `partInUse` if another process uses
    ///   the part file.
    static func reopen(
        in directory: Directory, name: String, resumeData: ResumeData
    ) throws(TransferError) -> PartFile? {
        let raw = linux_openat_beneath(directory.descriptor.raw, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0)
        guard raw >= 0 else {
            let error = errno
            if [ENOENT, ELOOP, EXDEV, ENOTDIR, EISDIR, ENXIO, EACCES].contains(error) { return nil }
            throw directory.refusal(error, doing: "open the part file", of: name)
        }
        let descriptor = FileDescriptorOwner(raw)
        let information = try descriptor.status()
        guard information.st_mode & S_IFMT == S_IFREG, information.st_nlink == 1,
            let end = resumeData.ranges.ranges.last?.upperBound, information.st_size >= end
        else { return nil }
        let lock = try PartLock.acquire(descriptor, Inode(information), path: directory.path(of: name))
        guard isMarked(raw, resumeData.generation),
            try checkAndClearState(raw, information, name, in: directory)
        else { return nil }
        return PartFile(
            descriptor: descriptor, information, directory: directory, name: name,
            generation: resumeData.generation, ranges: resumeData.ranges, lock: lock)
    }

    /// Removes the part file's name, if it has one.
    func remove() throws(TransferError) {
        if isNamed { try directory.remove(name) }
    }

    /// Renames the part file, possibly into another directory.
    ///
    /// - Returns: the part file under its new name; `nil` if it cannot be moved because the directory is on another
    ///   file system.
    /// - Throws: `remoteChanged` if its name now belongs to another file.
    func moved(to directory: Directory, name: String) throws(TransferError) -> PartFile? {
        guard isNamed else { return nil }
        if !directory.isSame(as: self.directory) || name != self.name {
            try checkName()
            let (from, to) = (self.directory.descriptor.raw, directory.descriptor.raw)
            guard renameat(from, self.name, to, name) == 0 else {
                let error = errno
                if error == EXDEV { return nil }
                throw self.directory.refusal(error, doing: "move the part file to \(directory.path)", of: self.name)
            }
        }
        return PartFile(
            descriptor: descriptor, try descriptor.status(), directory: directory, name: name, generation: generation,
            ranges: durable, lock: lock)
    }

    /// Validates that the part file was not truncated to less than its first `count` bytes, which were written: data
    /// written behind them would leave a hole.
    ///
    /// - Returns: the size of the file, and whether another process has written to it. This process must not write
    ///   during the check. If the file system's timestamps are coarse, a write in the same clock tick as one of this
    ///   process is missed.
    /// - Throws: `remoteChanged`; the file must be downloaded again.
    func check(holds count: Int64) throws(TransferError) -> (size: Int64, wasModified: Bool) {
        try check(try descriptor.status(), holds: count)
    }

    /// Validates a status of the file, as ``check(holds:)`` does.
    func check(_ information: stat, holds count: Int64) throws(TransferError) -> (size: Int64, wasModified: Bool) {
        let size = Int64(information.st_size)
        guard size >= count else { throw TransferError(.remoteChanged, "another process truncated the part file") }
        let known = changed.load(ordering: .relaxed)
        let hadWriter = uncached.takeWriter()
        return (size, hadWriter || known != 0 && known != Self.time(information))
    }

    /// Determines whether another process has written to the file. Called by the only thread that writes to it.
    ///
    /// - Throws: `remoteChanged` if it was truncated to less than what was written.
    func wasModified() throws(TransferError) -> Bool {
        try check(holds: state.withLock { written($0).end }).wasModified
    }

    /// Validates that the part's name still belongs to this file and not to another one.
    ///
    /// - Returns: the status of the file.
    /// - Throws: `remoteChanged`, and the file must be downloaded again; another error if the directory cannot be
    ///   searched.
    @discardableResult
    func checkName() throws(TransferError) -> stat {
        guard isNamed else { return try descriptor.status() }
        var information = stat()
        let isFound = fstatat(directory.descriptor.raw, name, &information, AT_SYMLINK_NOFOLLOW) == 0
        if !isFound, errno != ENOENT { throw .file(errno, doing: "look for the part file") }
        guard isFound, UInt64(information.st_ino) == inode else {
            throw TransferError(.remoteChanged, "another process removed the part file")
        }
        return information
    }

    /// Returns the current path of the part's directory.
    ///
    /// - Throws: the errors of ``Directory/currentPath()``. If another file system was mounted over the directory, the
    ///   part file is removed, since it could not be found again.
    func checkPlace() throws(TransferError) -> String {
        do throws(TransferError) {
            return try directory.currentPath()
        } catch {
            if error.code != .volumeDetached { try? remove() }
            throw error
        }
    }

    /// Starts a run of blocks at `offset`.
    func beginRun(at offset: Int64) -> WriteRun {
        let run = WriteRun(start: offset)
        state.withLock { $0.runs.append(run) }
        return run
    }

    /// Ends a run; its writer writes no more blocks to it.
    func end(_ run: WriteRun) {
        state.withLock { state in
            guard state.runs.contains(where: { $0 === run }) else { return }
            state.runs.removeAll { $0 === run }
            state.written.insert(run.start..<run.end)
        }
    }

    /// Discards the record of all bytes behind the first `count` ones, written or synced. No blocks are added to the runs
    /// there any more, and their blocks that are still to be written do not count.
    ///
    /// - Parameter count: the number of bytes from the start of the file without a gap, with all blocks still to be
    ///   written. Runs that begin before its end stay: they end before it too.
    func forget(behind count: Int64) {
        state.withLock { state in
            state.runs.removeAll { $0.start >= count }
            state.written = state.written.clamped(to: count)
            state.durable = state.durable.clamped(to: count)
        }
    }

    /// Writes a block at the end of a run.
    ///
    /// - Parameters:
    ///   - bytes: the block; all of it is written.
    ///   - run: a run of this part file; only one thread writes to it.
    func write(_ bytes: UnsafeRawBufferPointer, to run: WriteRun) throws(TransferError) {
        let offset = run.end
        do throws(TransferError) {
            try descriptor.write(bytes, at: offset)
        } catch {
            throw directory.refusal(error.systemError ?? EIO, doing: "write the part file", of: name)
        }
        run.move(to: offset + Int64(bytes.count))
        recordChange()
    }

    /// Prepares writes that bypass the page cache.
    ///
    /// - Returns: Whether they are possible.
    func beginUncachedWrites() -> Bool {
        directory.fileSystem.supportsUncachedWrites && uncached.open(descriptor)
    }

    func endUncachedWrites() { uncached.close() }

    /// Writes a block at the end of a run, bypassing the page cache as far as it is possible.
    ///
    /// - Parameters:
    ///   - bytes: the block, whose address is a multiple of the page size; all of it is written.
    ///   - run: a run of this part file; only one thread writes to it.
    func writeUncached(_ bytes: UnsafeRawBufferPointer, to run: WriteRun) throws(TransferError) {
        let offset = run.end
        var count = 0
        do throws(TransferError) {
            count = try uncached.write(bytes, at: offset)
        } catch {
            throw directory.refusal(error.systemError ?? EIO, doing: "write the part file", of: name)
        }
        run.move(to: offset + Int64(count))
        let rest = UnsafeRawBufferPointer(rebasing: bytes[count...])
        if rest.isEmpty { recordChange() } else { try write(rest, to: run) }
    }

    /// Returns the ranges passed to the kernel.
    private func written(_ state: borrowing State) -> ByteRangeSet {
        var written = state.written
        for run in state.runs { written.insert(run.start..<run.end) }
        return written
    }

    /// The number of bytes written but not known to be on the disk; 0 after a failed sync.
    var unsynced: Int64 {
        state.withLock { $0.failure == nil ? written($0).count - $0.durable.count : 0 }
    }

    /// The ranges known to be on the disk.
    var durable: ByteRangeSet { state.withLock { $0.durable } }

    /// Writes the data passed to the kernel so far to the disk (fdatasync). Blocks; must not be called on an event
    /// loop's thread.
    ///
    /// - Returns: the ranges on the disk.
    /// - Throws: if this sync or an earlier one failed. The durable ranges stay those of the last sync before the
    ///   failure.
    func synchronize() throws(TransferError) -> ByteRangeSet {
        let (snapshot, durable, failure) = state.withLock { (written($0), $0.durable, $0.failure) }
        if let failure { throw failure }
        if snapshot == durable { return durable }
        do {
            try descriptor.synchronize()
        } catch {
            state.withLock { $0.failure = $0.failure ?? error }
            throw error
        }
        try record(snapshot)
        return snapshot
    }

    /// Drops synced data from the page cache, and starts the write-back of the rest.
    ///
    /// Without this call, data that is written much faster than it is read back would evict the pages of other
    /// programs, and each new page would first have to be reclaimed.
    ///
    /// Data still to be read for the digest stays cached.
    func leavePageCache() {
        let end = read.load(ordering: .relaxed)
        guard end > 0 else { return }
        // This is advice to the kernel; if it is ignored, the pages stay.
        _ = posix_fadvise(descriptor.raw, 0, end == .max ? 0 : off_t(end), POSIX_FADV_DONTNEED)
    }

    /// Records that the sequential reader of the file has reached `offset`.
    func setRead(upTo offset: Int64) { read.store(offset, ordering: .relaxed) }

    /// Whether a sync of the whole file system covers the file and reports its errors; true of local file systems.
    var maySharedSync: Bool { reportsChanges }

    /// Syncs several part files of one file system with a single sync of the whole file system (syncfs). Blocks.
    ///
    /// - Returns: for each part file, the result that ``synchronize()`` would have.
    static func synchronize(_ parts: [PartFile]) -> [Result<ByteRangeSet, TransferError>] {
        let snapshots = parts.map { part in part.state.withLock { part.written($0) } }
        // A failure may concern another file; then each part file is synced on its own.
        let isShared = (try? parts.first?.directory.synchronizeFileSystem()) != nil
        return zip(parts, snapshots).map { part, snapshot in
            do throws(TransferError) {
                return .success(isShared ? try part.conclude(snapshot) : try part.synchronize())
            } catch {
                return .failure(error)
            }
        }
    }

    /// Records `snapshot` as durable after a sync of the whole file system that began after its data was written.
    private func conclude(_ snapshot: ByteRangeSet) throws(TransferError) -> ByteRangeSet {
        // The file system reports a write-back error only once, so the file's own error state is checked too.
        if linux_writeback_check(descriptor.raw) != 0 {
            let error = TransferError.file(errno, doing: "sync the file")
            state.withLock { $0.failure = $0.failure ?? error }
            throw error
        }
        try record(snapshot)
        return snapshot
    }

    private func record(_ synced: ByteRangeSet) throws(TransferError) {
        let failure = state.withLock { state in
            if state.failure == nil { state.durable = synced }
            return state.failure
        }
        if let failure { throw failure }
    }

    /// Truncates the file to `length` bytes, which removes the data of an attempt that went beyond the file's end.
    func truncate(to length: Int64) throws(TransferError) {
        guard ftruncate(descriptor.raw, off_t(length)) == 0 else {
            throw directory.refusal(errno, doing: "truncate the part file", of: name)
        }
        recordChange()
    }

    /// Validates that the file system supports a file of `size` bytes; FAT, for example, is limited to 4 GiB.
    ///
    /// The check moves the descriptor's file offset, which is unused: all reads and writes are positional. Every file
    /// system in use holds files of 2 GiB.
    ///
    /// - Throws: `tooLarge`.
    func check(canHold size: Int64) throws(TransferError) {
        guard size > Int64(Int32.max), lseek(descriptor.raw, off_t(size), SEEK_SET) < 0,
            errno == EINVAL || errno == EFBIG
        else { return }
        throw TransferError(
            .tooLarge, "the file has \(size) bytes, more than the file system of \(directory.path) allows in one file",
            systemError: EFBIG)
    }
}
