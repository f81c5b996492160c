import Curl
import Glibc

/// A download's part file while it grows: the byte ranges present and their version, the checkpointed byte count, and
/// the destination.
///
/// Used on the loop's thread only. One ``BodyWriter`` per connection supplies the bytes.
final class DownloadFile {
    let task: DownloadTask
    unowned let core: LoopCore
    /// The run that downloads the file.
    weak var run: (any DownloadTaskRun)?
    private var checkpoints: CheckpointWindow

    /// The location of the part file; `nil` while the destination is not decided.
    private(set) var target: DownloadTarget?
    private(set) var part: PartFile? {
        didSet { disk = part.map { session.resources.disk(of: $0) } }
    }
    /// The byte ranges that the part holds, and their version.
    // Read for each chunk of a body. Its methods only change the value itself.
    @exclusivity(unchecked) private(set) var contents = PartContents()
    var version: ResourceVersion { contents.version }
    /// Whether the bytes were decoded on arrival. Read for each chunk, so the access copies nothing.
    var isDecoded: Bool { contents.version.isDecoded }
    var written: ByteRangeSet { contents.written }
    var count: Int64 { contents.count }

    /// The expected digest of the whole file.
    private var digest: FileDigest? {
        didSet { contents.hasDigest = digest != nil }
    }
    private var verifier: Verification?
    /// Whether digests of the file's pieces are known.
    var isChecked: Bool {
        get { contents.hasPieceDigests }
        set { contents.hasPieceDigests = newValue }
    }
    /// The front that was last passed to the verifier, in bytes.
    private var verifiedFront: Int64 = 0

    /// The device on which the space requirement of this download is recorded.
    var needsOn: UInt64?

    /// Whether there is no file with the part's name: this is the first attempt, and it has not made one.
    private var isPartNameFree = false

    init(task: DownloadTask, core: LoopCore) {
        self.task = task
        self.core = core
        if case .fixed(let target) = task.placement { self.target = target }
        checkpoints = CheckpointWindow(
            interval: task.session.configuration.checkpointInterval, limit: task.session.configuration.checkpointLimit,
            isDueAtOnce: task.session.delegate.wantsFirstCheckpoint(of: task))
    }

    deinit {
        forgetNeed()
        endFastFile()
    }

    /// The number of contiguous bytes present from the start of the file.
    var front: Int64 { contents.front }

    private var session: Session { task.session }

    // MARK: Life cycle

    /// Opens the part file of an earlier attempt if it exists and still matches the resume data.
    ///
    /// - Throws: an error if this cannot be determined now.
    func reopen() throws(TransferError) {
        guard let resumeData = task.resumeData else {
            // Check before a server is asked for bytes that could not be stored.
            isPartNameFree = target?.isNew == true
            if let target, !isPartNameFree {
                if try PartLock.checkFree(target.partName, in: target.directory) == S_IFDIR {
                    throw .file(EISDIR, doing: "create the part file \(target.directory.path(of: target.partName))")
                }
            }
            if target != nil, task.originalRequest.checksDestinationFirst { _ = try partForWriting() }
            return
        }
        guard resumeData.resource == ResumeData.resource(of: task.originalRequest.url),
            let found = try task.reopenPart(resumeData)
        else {
            session.delegate.downloadTask(task, didRestartBecause: "the part file is gone, or was changed")
            startOver()
            if target != nil, task.originalRequest.checksDestinationFirst { _ = try partForWriting() }
            return
        }
        part = found
        contents = PartContents(version: resumeData.version, written: resumeData.ranges)
        checkpoints.confirm(count, of: count)
        task.progress.setTotal(version.total)
        task.progress.setCompleted(count)
        task.setPart(found, version)
    }

    /// Sets a newly decided destination and moves the existing part there.
    ///
    /// - Returns: `false` if the part could not be moved and was removed.
    func settle(in target: DownloadTarget) throws(TransferError) -> Bool {
        let before = part
        if let before {
            stopVerifying()
            part = try before.moved(to: target.directory, name: target.partName)
            task.setPart(part, version)
        }
        self.target = target
        guard let before, part == nil else { return true }
        try before.directory.remove(before.name)
        return false
    }

    /// Discards all bytes; the next body starts a new version.
    func startOver() {
        stopVerifying()
        digest = nil
        part = nil
        droppedParts += 1
        blockWriter = nil
        queue = BlockQueue()
        drained = nil
        contents.removeAll()
        checkpoints.limit(to: 0)
        task.setPart(nil, version)
        task.progress.setTotal(nil)
        task.progress.setCompleted(0)
    }

    /// Discards the bytes behind the front, because nothing proves that they belong to the same version.
    func keepFront() {
        guard contents.keepFront() else { return }
        if verifiedFront > front { stopVerifying() }
        checkpoints.limit(to: count)
        part?.forget(behind: front)
        task.progress.setCompleted(count)
    }

    /// Returns the offset at which to start so that `overlap` ends within the front; 0 if no overlap would distinguish
    /// versions.
    func start(of overlap: Overlap) throws(TransferError) -> Int64 {
        guard let part else { return 0 }
        return try overlap.start(before: front) { (space, offset) throws(TransferError) in
            try part.descriptor.read(into: space, at: offset)
        }
    }

    /// Merges the version stated by a response whose bytes belong to the part's version.
    func adopt(_ claimed: ResourceVersion) {
        contents.adopt(claimed)
        task.setPart(part, version)
    }

    /// Records that another source contributes bytes.
    func join() {
        guard contents.join() else { return }
        task.setPart(part, version)
    }

    // MARK: The digest

    /// Whether bytes of several sources may be combined.
    var isJoinable: Bool { contents.isJoinable }

    /// Whether another source may fetch the missing bytes.
    var mayBeJoined: Bool { contents.mayBeJoined(hasMismatch: !task.mismatches.isEmpty) }

    /// Whether another source is tried after the source of the present bytes failed with `error`.
    func isLeft(after error: TransferError) -> Bool {
        contents.mayLeaveSource(
            after: error, hasMismatch: !task.mismatches.isEmpty,
            leavesFailingSource: task.originalRequest.leavesFailingSource)
    }

    /// Sets the expected digest.
    ///
    /// - Parameters:
    ///   - known: the digest stated by the user; it takes precedence over the server's.
    ///   - stated: the digest stated by the server.
    func expect(_ known: FileDigest?, stated: FileDigest?) {
        if let known, let stated, known.contradicts(stated) {
            session.delegate.downloadTask(task, didDoubt: "the server reported another digest than expected")
        }
        guard (known ?? stated) != digest else { return }
        stopVerifying()
        digest = known ?? stated
        verify()
    }

    private func stopVerifying() {
        verifier?.abandon()
        verifier = nil
        verifiedFront = 0
    }

    /// Starts to hash the bytes present.
    private func verify() {
        guard let digest, let part, verifier == nil else { return }
        verifier = Verification(of: part, against: digest, on: session.resources.digestThreads)
        advanceVerifier()
    }

    /// Starts to hash the file again: another process wrote to it, so the bytes hashed may differ from those in the file.
    private func verifyAnew() {
        stopVerifying()
        verify()
    }

    private func advanceVerifier() {
        // Blocks that are still to be written belong to the front, too.
        guard let verifier, queue.isEmpty, front - verifiedFront >= Verification.step else { return }
        verifiedFront = front
        verifier.advance(to: front)
    }

    /// Returns the verification of the whole file; `nil` if no digest is known.
    func verification() -> Verification? {
        verify()
        return verifier
    }

    // MARK: Checkpoints

    /// Whether receiving must pause until a checkpoint has been confirmed.
    var isAhead: Bool { !isDecoded && checkpoints.isExceeded(by: count) }

    /// Records that a checkpoint covering `count` bytes has been written.
    ///
    /// - Parameter generation: the part's at the checkpoint; the checkpoint of a part that was dropped since is
    ///   ignored.
    func confirm(_ count: Int64, of generation: String) {
        guard part?.generation == generation else { return }
        checkpoints.confirm(count, of: self.count)
    }

    // MARK: Blocks that another thread writes

    /// The disk that holds the part file.
    private var disk: Disk?
    /// The writer that replaces writes on the loop's thread while the disk is slow or a body is fast.
    private var blockWriter: BlockWriter?
    /// The number of part files that were dropped. Blocks of those are not in the queue.
    private var droppedParts = 0
    private var queue = BlockQueue()
    /// The number of bodies that are gathered in large blocks.
    private var fastBodies = 0
    /// The disk that counts this file as one with large blocks.
    private var fastDisk: Disk?
    /// The closure called when all queued blocks are written.
    private var drained: (() -> Void)?

    /// The least number of missing bytes for which large blocks are worth their thread and memory.
    private static let leastForBlocks: Int64 = 4 << 20

    /// Whether receiving must pause until the disk has written queued blocks.
    var isBehind: Bool { queue.isFull }

    /// Whether the file is complete except for blocks that are still queued.
    var isCompleting: Bool { drained != nil }

    /// Whether no blocks are queued for the disk.
    var isAtRest: Bool { queue.isEmpty }

    /// The writer that has blocks still to write.
    var busyWriter: BlockWriter? { queue.isEmpty ? nil : blockWriter }

    /// Returns whether blocks are handed to the block writer. The disk is slow if a write of this or of another download
    /// showed it.
    func usesBlockWriter() -> Bool {
        if !queue.isDiskSlow, disk?.isSlow == true {
            queue.diskBecameSlow()
            makeBlockWriter()
        }
        if blockWriter != nil, !queue.isDiskSlow, fastBodies == 0, queue.isEmpty {
            blockWriter = nil
            part?.endUncachedWrites()
        }
        return blockWriter != nil
    }

    private func makeBlockWriter() {
        guard blockWriter == nil, let disk else { return }
        let (loop, file, dropped) = (core.loop, LoopReference(self, on: core), droppedParts)
        // Safe because only the function for other threads is called on another thread.
        nonisolated(unsafe) let buffers = core.buffers
        blockWriter = BlockWriter(on: disk.threads) { block, outcome in
            let isPosted = loop.post { core in
                Self.release(block.buffer, on: core)
                guard let file = file.object(on: core) else { return }
                file.didWrite(block, outcome, isDropped: dropped != file.droppedParts)
            }
            if isPosted { return }
            // The loop has ended.
            if block.isLarge { BlockPool.unmap(block.buffer) } else { buffers.abandon(block.buffer) }
        }
    }

    /// Begins to take large blocks of a body, where the disk writes them without the page cache.
    ///
    /// A file that is read back for its digest stays in the page cache. So does one whose last bytes may have to be
    /// compared with those of a later response, because the server states no validator.
    ///
    /// - Returns: `false` if that is impossible, or would not pay.
    func beginBlocks() -> Bool {
        guard let part, let disk, digest == nil, !isChecked, !isDecoded, version.validator.ifRange != nil, !disk.isSlow,
            checkpoints.allowsBlocks(of: Int64(BlockPool.blockSize)),
            version.total.map({ $0 - count >= Self.leastForBlocks }) ?? true
        else { return false }
        if fastDisk == nil {
            guard disk.beginFastFile() else { return false }
            fastDisk = disk
        }
        guard part.beginUncachedWrites() else {
            if fastBodies == 0 { endFastFile() }
            return false
        }
        fastBodies += 1
        makeBlockWriter()
        return true
    }

    /// Ends what ``beginBlocks()`` has begun.
    func endBlocks() {
        fastBodies -= 1
        if fastBodies == 0 { endFastFile() }
    }

    private func endFastFile() {
        fastDisk?.endFastFile()
        fastDisk = nil
    }

    /// Queues a block for the block writer and passes ownership of its buffer.
    ///
    /// - Throws: an error if the disk has no room for the rest of the file.
    func hand(
        _ buffer: UnsafeMutableRawBufferPointer, _ count: Int, to run: PartFile.WriteRun, at offset: Int64
    ) throws(TransferError) {
        guard let part, let blockWriter else { return Self.release(buffer, on: core) }
        queue.add(buffer.count)
        blockWriter.write(
            BlockWriter.Block(buffer: buffer, count: count, part: part, run: run, refusesChanges: digest == nil))
        record(offset..<offset + Int64(count))
        // The loop does not wait for a slow disk.
        if checkpoints.isFresh, !queue.isDiskSlow { try checkSpace() }
    }

    /// Ends a run, after its blocks that are still to be written.
    func end(_ run: PartFile.WriteRun) {
        guard let part else { return }
        if let busyWriter { busyWriter.perform { part.end(run) } } else { part.end(run) }
    }

    private static func release(_ buffer: UnsafeMutableRawBufferPointer, on core: LoopCore) {
        if buffer.count == BlockPool.blockSize { core.blocks.release(buffer) } else { core.buffers.release(buffer) }
    }

    private func didWrite(_ block: BlockWriter.Block, _ outcome: BlockWriter.Outcome, isDropped: Bool) {
        guard let run, task.run(on: core) === run else { return }
        // Receiving may have paused for it.
        if isDropped { return run.diskDidMove(nil) }
        // A large block waits for the disk itself, so it may take longer.
        disk?.record(write: block.isLarge ? outcome.milliseconds / 8 : outcome.milliseconds)
        queue.remove(block.buffer.count, after: outcome.milliseconds, failed: outcome.error != nil)
        if outcome.wasModified, outcome.error == nil { verifyAnew() }
        advanceVerifier()
        run.diskDidMove(outcome.error)
        notifyIfDrained()
    }

    private func notifyIfDrained() {
        guard queue.isEmpty, let drained else { return }
        self.drained = nil
        drained()
    }

    // MARK: Bytes

    /// The size in bytes up to which the part may grow before its share must be enlarged.
    var allowed: Int64 = 0
    /// The step in bytes by which a file of unknown size enlarges its share.
    private static let growth: Int64 = 4 << 20

    /// Ensures that `more` further bytes may be written.
    func allow(_ more: Int) throws(TransferError) {
        let wanted = count + Int64(more)
        if wanted <= allowed { return }
        allowed = try target?.share?.grow(to: wanted, ahead: Self.growth) ?? .max
    }

    /// Begins a run of blocks at `offset`.
    func beginRun(at offset: Int64) throws(TransferError) -> PartFile.WriteRun {
        try partForWriting().beginRun(at: offset)
    }

    /// Writes bytes at the end of a run.
    ///
    /// - Throws: an error if the write fails, or `remoteChanged` if another process truncated the part.
    func write(_ bytes: UnsafeRawBufferPointer, to run: PartFile.WriteRun) throws(TransferError) {
        guard let part else { throw TransferError(.internal, "bytes without a part") }
        if queue.isEmpty, count > 0 { _ = try check(part, holds: written.end) }
        let start = run.end
        let begun = MonotonicTime.now()
        try part.write(bytes, to: run)
        disk?.record(write: MonotonicTime.now().milliseconds(since: begun))
        record(start..<run.end)
        advanceVerifier()
        if checkpoints.isFresh { try checkSpace() }
    }

    /// Checks the part for changes by other processes.
    ///
    /// - Returns: the size of the part file.
    /// - Throws: `remoteChanged` if another process truncated the part, or wrote to it and no digest is known to detect
    ///   that.
    private func check(_ part: PartFile, holds count: Int64) throws(TransferError) -> Int64 {
        let (size, wasModified) = try part.check(holds: count)
        guard wasModified else { return size }
        guard digest != nil else { throw TransferError(.remoteChanged, "another process changed the part file") }
        part.recordChange()
        verifyAnew()
        return size
    }

    private func record(_ range: Range<Int64>) {
        contents.record(range)
        task.progress.setCompleted(count)
        session.delegate.downloadTask(
            task, didWriteData: Int64(range.count), total: count, expected: task.progress.totalBytes)
        if checkpoints.receive(Int64(range.count)) { session.delegate.downloadTask(wantsCheckpoint: task) }
    }

    private func partForWriting() throws(TransferError) -> PartFile {
        if let part { return part }
        guard let target else { throw TransferError(.internal, "bytes without a place") }
        let made = try PartFile.make(in: target.directory, name: target.partName, owner: target.owner)
        isPartNameFree = false
        do throws(TransferError) {
            if let total = version.total { try made.check(canHold: total) }
        } catch {
            // The part is empty. If the removal fails, it is removed with its task.
            try? target.directory.remove(target.partName)
            throw error
        }
        part = made
        task.setPart(made, version)
        verify()
        return made
    }

    /// Creates a part file without a name for a file that was received as a whole, where that is possible.
    ///
    /// The sync of its name is one of the whole file system, which pays only for many files together. Later attempts
    /// use a part file with a name, so that they can go on where linking fails.
    private func makeUnnamedPart(for destination: FileDestination?) {
        guard session.resources.isBusy, isPartNameFree, let target, let destination, !destination.conflict.replaces
        else { return }
        part = PartFile.makeUnnamed(
            in: target.directory, name: target.partName, owner: target.owner, isPrivate: destination.isPrivate)
        if part != nil { verify() }
    }

    /// Completes the part after all `size` bytes were received: writes the last of them from `writer` and truncates the
    /// part to `size`.
    ///
    /// - Parameter destination: the file's destination, if it is decided.
    /// - Returns: `nil` if a slow disk has yet to write blocks; `again` is called afterwards.
    /// - Throws: `remoteChanged` if another process removed or truncated the part. The file must then be downloaded
    ///   again.
    func complete(
        size: Int64, flushing writer: BodyWriter, to destination: FileDestination?, again: @escaping () -> Void
    ) throws(TransferError) -> PartFile? {
        let before = part
        if before == nil, Int64(writer.pending) == size { makeUnnamedPart(for: destination) }
        try writer.flush()
        guard queue.isEmpty else {
            drained = again
            return nil
        }
        let part = try partForWriting()
        try before?.checkName()
        // An earlier attempt may have written more bytes of a longer version.
        if part.isNamed, try check(part, holds: size) > size { try part.truncate(to: size) }
        task.progress.setCompleted(size)
        return part
    }
}
