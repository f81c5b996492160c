import CLinux
import Glibc
import Synchronization

/// A download's file while it is not whole: beside its destination, under a name of its own, open to its owner
/// alone.
///
/// Written by the loop's thread, synced by others. No other process has it meanwhile: see ``PartLock``.
public final class PartFile: Sendable {
    let descriptor: FileDescriptorOwner
    /// Holds the part, and will hold the finished file.
    public let directory: Directory
    /// In its directory.
    public let name: String
    /// Also stands in an extended attribute of the file, where there are any.
    let generation: String
    private let inode: UInt64
    /// `nil` where the file system knows no locks.
    private let lock: PartLock?

    /// One writer's blocks in order, from `start` to wherever it stands.
    ///
    /// Moved without a lock, so that a block costs none; it begins and ends under one.
    final class WriteRun: Sendable {
        let start: Int64
        private let front: Atomic<Int64>

        init(start: Int64) {
            self.start = start
            front = Atomic(start)
        }

        /// The end of its last block.
        var end: Int64 { front.load(ordering: .acquiring) }

        fileprivate func move(to end: Int64) { front.store(end, ordering: .releasing) }
    }

    private struct State {
        /// Bytes that were handed to the kernel, without the runs under way.
        var written: ByteRangeSet
        var runs: [WriteRun] = []
        /// Bytes that a sync has brought to the disk.
        var durable: ByteRangeSet
        /// Why a sync failed: what the kernel held is gone, whatever a later sync says.
        var failure: TransferError?
    }

    private let state: Mutex<State>
    /// When it changed last, as far as that was our doing, in nanoseconds since 1970; 0: not known.
    private let changed = Atomic<Int64>(0)
    private let tellsChanges: Bool
    /// Bytes at the front that nobody will read again here.
    private let read = Atomic<Int64>(.max)

    private init(
        descriptor: FileDescriptorOwner, _ information: stat, directory: Directory, name: String, generation: String,
        ranges: ByteRangeSet, lock: PartLock?
    ) {
        self.lock = lock
        inode = UInt64(information.st_ino)
        self.descriptor = descriptor
        self.directory = directory
        self.name = name
        self.generation = generation
        state = Mutex(State(written: ranges, durable: ranges))
        tellsChanges = Self.tellsChanges(descriptor)
        if tellsChanges { changed.store(Self.time(information), ordering: .relaxed) }
    }

    /// Whether its time moves with every write and with nothing else: file systems of other machines, and those that
    /// programs make, have clocks and habits of their own.
    private static func tellsChanges(_ descriptor: FileDescriptorOwner) -> Bool {
        // ext2 to ext4, XFS, Btrfs, tmpfs, F2FS: statfs(2).
        [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0xF2F5_2010].contains(linux_file_system_type(descriptor.raw))
    }

    /// What changed it up to now counts as ours.
    func noteChange() {
        guard tellsChanges, let information = try? descriptor.status() else { return }
        changed.store(Self.time(information), ordering: .relaxed)
    }

    private static func time(_ information: stat) -> Int64 {
        Int64(information.st_mtim.tv_sec) * 1_000_000_000 + Int64(information.st_mtim.tv_nsec)
    }

    /// Makes an empty part; an older one of this name is of a version that no longer counts.
    ///
    /// - Parameter owner: names the task; with a random tail it becomes the generation.
    /// - Throws: `partInUse` where another process is at work on the older one.
    static func make(in directory: Directory, name: String, owner: String) throws(TransferError) -> PartFile {
        var descriptor = create(name, in: directory)
        if descriptor < 0, errno == EEXIST {
            try PartLock.checkFree(name, in: directory)
            try directory.remove(name)
            descriptor = create(name, in: directory)
        }
        guard descriptor >= 0 else {
            throw directory.refusal(errno, doing: "make the part file in \(directory.path)", of: name)
        }
        let owned = FileDescriptorOwner(descriptor)
        let lock = try PartLock.take(owned, Inode(try owned.status()), path: directory.path(of: name))
        let generation = mark(descriptor, owner + "-" + String(UInt64.random(in: 0...UInt64.max), radix: 16))
        return PartFile(
            descriptor: owned, try owned.status(), directory: directory, name: name,
            generation: generation, ranges: ByteRangeSet(), lock: lock)
    }

    private static func create(_ name: String, in directory: Directory) -> Int32 {
        linux_openat_beneath(directory.descriptor.raw, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    }

    /// Opens the part that `resumeData` speaks of.
    ///
    /// - Returns: `nil` where there is none, or where it is not the one: shorter, another generation, no file, or
    ///   changed since it was left.
    /// - Throws: where that cannot be told now: a file system that is read-only or fails, no descriptor left, a flag that
    ///   lets nobody write to the part (chattr(1)); and `partInUse` where another process is at work on it.
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
        let lock = try PartLock.take(descriptor, Inode(information), path: directory.path(of: name))
        guard isMarked(raw, resumeData.generation),
            try takeUp(raw, information, name, in: directory)
        else { return nil }
        return PartFile(
            descriptor: descriptor, information, directory: directory, name: name,
            generation: resumeData.generation, ranges: resumeData.ranges, lock: lock)
    }

    /// The same part under another name, possibly in another directory.
    ///
    /// - Returns: `nil` where it cannot go there: the directory is on another file system.
    /// - Throws: `remoteChanged` where its name is another's by now.
    func moved(to directory: Directory, name: String) throws(TransferError) -> PartFile? {
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

    /// Makes sure that nobody has cut the part short since its first `count` bytes were written: what is written
    /// behind them would leave a hole.
    ///
    /// - Returns: how long it is, and whether someone else has written to it; nobody does so here while this looks. Where
    ///   a file system counts time in ticks, what falls into the tick of a write of ours is not seen.
    /// - Throws: `remoteChanged`: the file is to be fetched anew.
    func check(holds count: Int64) throws(TransferError) -> (size: Int64, isMeddledWith: Bool) {
        let information = try descriptor.status()
        let size = Int64(information.st_size)
        guard size >= count else { throw TransferError(.remoteChanged, "someone cut the part file short") }
        let known = changed.load(ordering: .relaxed)
        return (size, known != 0 && known != Self.time(information))
    }

    /// Makes sure that it is this file that has the part's name, and not one that someone put there.
    ///
    /// - Throws: `remoteChanged`: the file is to be fetched anew; otherwise where the directory does not let one look.
    func checkName() throws(TransferError) {
        var information = stat()
        let isFound = fstatat(directory.descriptor.raw, name, &information, AT_SYMLINK_NOFOLLOW) == 0
        if !isFound, errno != ENOENT { throw .file(errno, doing: "look for the part file") }
        guard isFound, UInt64(information.st_ino) == inode else {
            throw TransferError(.remoteChanged, "someone took the part file away")
        }
    }

    /// The path of its directory now.
    ///
    /// - Throws: as ``Directory/currentPath()``; beneath another file system nobody would find the part again, and it is
    ///   gone.
    func checkPlace() throws(TransferError) -> String {
        do throws(TransferError) {
            return try directory.currentPath()
        } catch {
            if error.code != .volumeDetached { try? directory.remove(name) }
            throw error
        }
    }

    /// Begins a run of blocks whose first one goes to `offset`.
    func beginRun(at offset: Int64) -> WriteRun {
        let run = WriteRun(start: offset)
        state.withLock { $0.runs.append(run) }
        return run
    }

    /// The run's writer will add nothing more to it.
    func end(_ run: WriteRun) {
        state.withLock { state in
            state.runs.removeAll { $0 === run }
            state.written.insert(run.start..<run.end)
        }
    }

    /// What lies behind its first `count` bytes no longer counts, wherever it is; no run is under way.
    func forget(behind count: Int64) {
        state.withLock { state in
            state.written = state.written.clamped(to: count)
            state.durable = state.durable.clamped(to: count)
        }
    }

    /// - Parameters:
    ///   - bytes: go to the end of `run`, all of them.
    ///   - run: one of this part's; its writer is one thread.
    func write(_ bytes: UnsafeRawBufferPointer, to run: WriteRun) throws(TransferError) {
        let offset = run.end
        do throws(TransferError) {
            try descriptor.write(bytes, at: offset)
        } catch {
            throw directory.refusal(error.systemError ?? EIO, doing: "write the part file", of: name)
        }
        run.move(to: offset + Int64(bytes.count))
        noteChange()
    }

    /// Bytes that were handed to the kernel.
    private func written(_ state: borrowing State) -> ByteRangeSet {
        var written = state.written
        for run in state.runs { written.insert(run.start..<run.end) }
        return written
    }

    /// Bytes written and not yet known to be on disk.
    var unsynced: Int64 {
        state.withLock { $0.failure == nil ? written($0).count - $0.durable.count : 0 }
    }

    /// Ranges known to be on disk.
    var durable: ByteRangeSet { state.withLock { $0.durable } }

    /// Brings to the disk what has been written so far. Blocks; never on a loop's thread.
    ///
    /// - Returns: the ranges that are on disk now.
    /// - Throws: where this sync or one before it failed: only what an earlier one covered counts from then on.
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
        try note(snapshot)
        return snapshot
    }

    /// Takes the bytes that are on disk out of the page cache, and begins to write those that are not.
    ///
    /// What passes through much faster than it is read would otherwise push out of memory what other programs use,
    /// and each page that it fills had to be found free first.
    ///
    /// What is yet to be read for its digest stays.
    func leavePageCache() {
        let end = read.load(ordering: .relaxed)
        guard end > 0 else { return }
        // Advice: where it is not taken, the pages stay.
        _ = posix_fadvise(descriptor.raw, 0, end == .max ? 0 : off_t(end), POSIX_FADV_DONTNEED)
    }

    /// Whoever reads the file from its front on has come to `offset`.
    func setRead(upTo offset: Int64) { read.store(offset, ordering: .relaxed) }

    /// Whether a sync of its whole file system covers it, and tells of what went wrong: so it is with local ones.
    var maySharedSync: Bool { tellsChanges }

    /// Brings to the disk what has been written so far to parts of one file system, by one sync of all of it. Blocks.
    ///
    /// - Returns: for each part what ``synchronize()`` would say of it.
    static func synchronize(_ parts: [PartFile]) -> [Result<ByteRangeSet, TransferError>] {
        let snapshots = parts.map { part in part.state.withLock { part.written($0) } }
        // A failure may be another file's: then each of ours is asked by itself.
        let isShared = (try? parts.first?.directory.synchronizeFileSystem()) != nil
        return zip(parts, snapshots).map { part, snapshot in
            do throws(TransferError) {
                return .success(isShared ? try part.conclude(snapshot) : try part.synchronize())
            } catch {
                return .failure(error)
            }
        }
    }

    /// A sync of the whole file system began after `snapshot` had been written.
    private func conclude(_ snapshot: ByteRangeSet) throws(TransferError) -> ByteRangeSet {
        // The file system tells of a failure once, the file for itself.
        if linux_writeback_check(descriptor.raw) != 0 {
            let error = TransferError.file(errno, doing: "bring the file to the disk")
            state.withLock { $0.failure = $0.failure ?? error }
            throw error
        }
        try note(snapshot)
        return snapshot
    }

    private func note(_ synced: ByteRangeSet) throws(TransferError) {
        let failure = state.withLock { state in
            if state.failure == nil { state.durable = synced }
            return state.failure
        }
        if let failure { throw failure }
    }

    /// Cuts off what lies behind `length`: bytes of an attempt that went further than the file is long.
    func truncate(to length: Int64) throws(TransferError) {
        guard ftruncate(descriptor.raw, off_t(length)) == 0 else {
            throw directory.refusal(errno, doing: "cut the part file", of: name)
        }
        noteChange()
    }

    /// Makes sure that the file system takes a file of `size` bytes: FAT, for one, ends at 4 GiB.
    ///
    /// The place in the file that this moves is nobody's: all reading and writing names its own.
    ///
    /// - Throws: `tooLarge`.
    func check(canHold size: Int64) throws(TransferError) {
        guard lseek(descriptor.raw, off_t(size), SEEK_SET) < 0, errno == EINVAL || errno == EFBIG else { return }
        throw TransferError(
            .tooLarge, "the file has \(size) bytes, more than the file system of \(directory.path) takes in one file",
            systemError: EFBIG)
    }
}
