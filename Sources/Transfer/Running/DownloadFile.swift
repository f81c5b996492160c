import Curl
import Glibc

/// A download's part file while it grows: which bytes of which version are there, what of them a checkpoint covers, and
/// where the file will lie.
///
/// Lives on its loop's thread. ``BodyWriter``s bring the bytes, one for each connection.
final class DownloadFile {
    let task: DownloadTask
    unowned let core: LoopCore
    private let checkpointInterval: Int64
    private let checkpointLimit: Int64

    /// Where the part lies; `nil` while a destination is yet to be decided.
    private(set) var target: DownloadTarget?
    private(set) var part: PartFile? {
        didSet { disk = part.map { session.disk(of: $0) } }
    }
    /// The bytes that the part holds, and their version.
    private(set) var contents = PartContents()
    var version: ResourceVersion { contents.version }
    /// Whether the bytes were decoded on their way. Read for every chunk, so that it copies nothing.
    var isDecoded: Bool { contents.version.isDecoded }
    var written: ByteRangeSet { contents.written }
    var count: Int64 { contents.count }

    /// The digest that the whole file must have.
    private var digest: FileDigest? {
        didSet { contents.hasDigest = digest != nil }
    }
    private var verifier: Verification?
    /// Whether digests of the file's pieces are known.
    var isChecked: Bool {
        get { contents.hasPieceDigests }
        set { contents.hasPieceDigests = newValue }
    }
    /// The front that the verifier knows of.
    private var told: Int64 = 0

    /// The file system that knows what it has yet to write there.
    var needsOn: UInt64?

    private var sinceCheckpoint: Int64 = 0
    /// Bytes that a confirmed checkpoint covers.
    private var confirmed: Int64 = 0

    init(task: DownloadTask, core: LoopCore) {
        self.task = task
        self.core = core
        if case .fixed(let target) = task.placement { self.target = target }
        checkpointInterval = task.session.configuration.checkpointInterval
        checkpointLimit = task.session.configuration.checkpointLimit ?? .max
    }

    deinit { forgetNeed() }

    /// Bytes at the front that are there.
    var front: Int64 { contents.front }

    private var session: Session { task.session }

    // MARK: Its life

    /// Takes up what an earlier attempt left, if there was one and it is still what the resume data say.
    ///
    /// - Throws: where that cannot be told now.
    func reopen() throws(TransferError) {
        guard let resumeData = task.resumeData else {
            if let target, target.directory.isDirectory(target.partName) {
                throw .file(EISDIR, doing: "make the part file \(target.directory.path(of: target.partName))")
            }
            // Before a server is asked for what could not be kept.
            if let target { try PartLock.checkFree(target.partName, in: target.directory) }
            if target != nil, task.originalRequest.provesPlace { _ = try partForWriting() }
            return
        }
        guard resumeData.resource == ResumeData.resource(of: task.originalRequest.url),
            let found = try task.reopenPart(resumeData)
        else {
            session.delegate.downloadTask(task, didRestartBecause: "what was here of the file is not as it was left")
            startOver()
            if target != nil, task.originalRequest.provesPlace { _ = try partForWriting() }
            return
        }
        part = found
        contents = PartContents(version: resumeData.version, written: resumeData.ranges)
        confirmed = count
        task.progress.setTotal(version.total)
        task.progress.setCompleted(count)
        task.setPart(found, version)
    }

    /// A destination has been decided: what is there of the part goes along.
    ///
    /// - Returns: `false` where it cannot, and has been removed.
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

    /// Forgets all that is there: the next body begins a new generation.
    func startOver() {
        stopVerifying()
        digest = nil
        part = nil
        contents.removeAll()
        confirmed = 0
        task.setPart(nil, version)
        task.progress.setTotal(nil)
        task.progress.setCompleted(0)
    }

    /// Forgets what lies behind the bytes at the front: nothing ties it to them.
    func keepFront() {
        guard contents.keepFront() else { return }
        if told > front { stopVerifying() }
        confirmed = min(confirmed, count)
        part?.forget(behind: front)
        task.progress.setCompleted(count)
    }

    /// Where to begin for `overlap` to end with the bytes at the front; 0 where none would tell anything.
    func start(of overlap: Overlap) throws(TransferError) -> Int64 {
        guard let part else { return 0 }
        return try overlap.start(before: front) { (space, offset) throws(TransferError) in
            try part.descriptor.read(into: space, at: offset)
        }
    }

    /// What comes is of the version that is there, and says `claimed` of it.
    func adopt(_ claimed: ResourceVersion) {
        contents.adopt(claimed)
        task.setPart(part, version)
    }

    /// Another source brings bytes too.
    func join() {
        guard contents.join() else { return }
        task.setPart(part, version)
    }

    // MARK: Its digest

    /// Whether bytes of several sources may be combined.
    var isJoinable: Bool { contents.isJoinable }

    /// Whether another source may fetch the missing bytes.
    var mayBeJoined: Bool { contents.mayBeJoined(hasMismatch: !task.mismatches.isEmpty) }

    /// Whether another source is tried after `error` of the source that the bytes are from.
    func isLeft(after error: TransferError) -> Bool {
        contents.mayLeaveSource(
            after: error, hasMismatch: !task.mismatches.isEmpty,
            leavesFailingSource: task.originalRequest.leavesFailingSource)
    }

    /// - Parameters:
    ///   - known: what a person says that the file hashes to; outranks what the server says.
    ///   - stated: what the server says.
    func expect(_ known: FileDigest?, stated: FileDigest?) {
        if let known, let stated, known.contradicts(stated) {
            session.delegate.downloadTask(task, didDoubt: "the server states another digest than the one expected")
        }
        guard (known ?? stated) != digest else { return }
        stopVerifying()
        digest = known ?? stated
        verify()
    }

    private func stopVerifying() {
        verifier?.abandon()
        verifier = nil
        told = 0
    }

    /// Begins to read what is there.
    private func verify() {
        guard let digest, let part, verifier == nil else { return }
        verifier = Verification(of: part, against: digest, on: session.digestThreads)
        tellVerifier()
    }

    private func tellVerifier() {
        guard let verifier, front - told >= Verification.step else { return }
        told = front
        verifier.advance(to: front)
    }

    /// Who says whether the whole file is right; `nil` where nothing is known of it.
    func verification() -> Verification? {
        verify()
        return verifier
    }

    // MARK: Checkpoints

    /// Whether no more is to be taken before a checkpoint has been confirmed.
    var isAhead: Bool { !isDecoded && count - confirmed >= checkpointLimit }

    /// A checkpoint that covers `count` bytes has been written down.
    func confirm(_ count: Int64) { confirmed = min(count, self.count) }

    // MARK: A slow disk

    /// Where the part lies.
    private var disk: Disk?
    /// Once writing has been slow: what writes in the loop's place.
    private var slowWriter: SlowWriter?
    /// Blocks that it has not written yet; they count as written here, and not in the part.
    private var inFlight = 0
    private var quickWrites = 0
    /// Called when every block is written.
    private var drained: (() -> Void)?

    /// Milliseconds that a quick write takes at most.
    private static let quickWrite: Int64 = 10
    /// So many quick writes in a row, and the loop writes by itself again.
    private static let recovery = 256
    /// Blocks that may wait for a slow disk.
    private static let queueLimit = 16

    /// Whether no more is to be taken before the disk has written what it has.
    var isBehind: Bool { inFlight >= Self.queueLimit }

    /// Whether the file is complete but for blocks that a slow disk had yet to write when that was seen.
    var isCompleting: Bool { drained != nil }

    /// Whether no block is on its way to the disk.
    var isAtRest: Bool { inFlight == 0 }

    /// Whether blocks are handed over: this download's disk is slow, as a write of this or of another one showed.
    func handsOver() -> Bool {
        if slowWriter == nil, disk?.isSlow == true { becomeSlow() }
        return slowWriter != nil
    }

    private func becomeSlow() {
        guard let disk else { return }
        let (session, task) = (session, task)
        quickWrites = 0
        slowWriter = SlowWriter(on: disk.threads) { block, error, milliseconds in
            session.loop(for: task).post { core in
                core.buffers.give(block.buffer)
                guard let run = core.client(task.identifier) as? any FileRun else { return }
                run.file.didWrite(block, error, milliseconds)
                run.diskDidMove(error)
                run.file.tellIfDrained()
            }
        }
    }

    /// Hands over a block, and its buffer with it.
    func hand(_ buffer: UnsafeMutableRawBufferPointer, _ count: Int, to run: PartFile.WriteRun, at offset: Int64) {
        guard let part, let slowWriter else { return core.buffers.give(buffer) }
        inFlight += 1
        slowWriter.write(SlowWriter.Block(buffer: buffer, count: count, part: part, run: run))
        note(offset..<offset + Int64(count))
    }

    private func didWrite(_ block: SlowWriter.Block, _ error: TransferError?, _ milliseconds: Int64) {
        inFlight -= 1
        disk?.note(write: milliseconds)
        guard error == nil else { return }
        quickWrites = milliseconds <= Self.quickWrite ? quickWrites + 1 : 0
        if inFlight == 0, quickWrites >= Self.recovery { slowWriter = nil }
    }

    private func tellIfDrained() {
        guard inFlight == 0, let drained else { return }
        self.drained = nil
        drained()
    }

    // MARK: Bytes

    /// Bytes that the part may have before its share is asked for more.
    var allowed: Int64 = 0
    /// Bytes that a file of unknown size takes of its share at a time.
    private static let growth: Int64 = 4 << 20

    /// Makes sure that so many bytes more may be written.
    func allow(_ more: Int) throws(TransferError) {
        let wanted = count + Int64(more)
        if wanted <= allowed { return }
        allowed = try target?.share?.grow(to: wanted, ahead: Self.growth) ?? .max
    }

    /// Where blocks that begin at `offset` are to be written.
    func beginRun(at offset: Int64) throws(TransferError) -> PartFile.WriteRun {
        try partForWriting().beginRun(at: offset)
    }

    /// - Throws: where the disk refuses, or someone cut the part short (`remoteChanged`).
    func write(_ bytes: UnsafeRawBufferPointer, to run: PartFile.WriteRun) throws(TransferError) {
        guard let part else { throw TransferError(.internal, "bytes without a part") }
        if inFlight == 0, count > 0 { _ = try check(part, holds: written.end) }
        let start = run.end
        let begun = MonotonicTime.now()
        try part.write(bytes, to: run)
        disk?.note(write: MonotonicTime.now().milliseconds(since: begun))
        note(start..<run.end)
        tellVerifier()
        if sinceCheckpoint == 0 { try checkSpace() }
    }

    /// - Returns: how long the part is.
    /// - Throws: `remoteChanged` where someone cut it short, or wrote to it and no digest would tell.
    private func check(_ part: PartFile, holds count: Int64) throws(TransferError) -> Int64 {
        let (size, isMeddledWith) = try part.check(holds: count)
        guard isMeddledWith else { return size }
        guard digest != nil else { throw TransferError(.remoteChanged, "someone changed the part file") }
        // What has been hashed may not be what is there.
        part.noteChange()
        stopVerifying()
        verify()
        return size
    }

    private func note(_ range: Range<Int64>) {
        contents.record(range)
        task.progress.setCompleted(count)
        session.delegate.downloadTask(
            task, didWriteData: Int64(range.count), total: count, expected: task.progress.totalBytes)
        sinceCheckpoint += Int64(range.count)
        if sinceCheckpoint >= checkpointInterval {
            sinceCheckpoint = 0
            session.delegate.downloadTask(wantsCheckpoint: task)
        }
    }

    private func partForWriting() throws(TransferError) -> PartFile {
        if let part { return part }
        guard let target else { throw TransferError(.internal, "bytes without a place") }
        let made = try PartFile.make(in: target.directory, name: target.partName, owner: target.owner)
        do throws(TransferError) {
            if let total = version.total { try made.check(canHold: total) }
        } catch {
            // It is empty; one that stays goes with its task.
            try? target.directory.remove(target.partName)
            throw error
        }
        part = made
        task.setPart(made, version)
        verify()
        return made
    }

    /// All `size` bytes are there, the last of them in `writer`: the part is cut to them.
    ///
    /// - Returns: `nil` where a slow disk has yet to write some of them: `again` is called once it has.
    /// - Throws: `remoteChanged` where someone took the part away or cut it short: it is to be fetched anew.
    func complete(
        size: Int64, flushing writer: BodyWriter, again: @escaping () -> Void
    ) throws(TransferError) -> PartFile? {
        let before = part
        try writer.flush()
        guard inFlight == 0 else {
            drained = again
            return nil
        }
        let part = try partForWriting()
        try before?.checkName()
        // An earlier attempt may have gone further with a longer version.
        if try check(part, holds: size) > size { try part.truncate(to: size) }
        task.progress.setCompleted(size)
        return part
    }
}
