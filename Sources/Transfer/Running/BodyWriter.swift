import Curl
import Glibc

/// Puts a body's bytes where they belong in the part file: gathered into large writes, compared with what is
/// there already where they overlap it.
///
/// Lives on its loop's thread. A body that ends within one buffer is written only when it is whole: most small files
/// touch the disk once.
final class BodyWriter {
    let task: DownloadTask
    private unowned let core: LoopCore
    private let checkpointInterval: Int64
    private let checkpointLimit: Int64

    /// Where the part lies; `nil` while a destination is yet to be decided.
    private(set) var target: DownloadTarget?
    private(set) var part: PartFile?
    /// What is known of the version that the bytes in the part are of.
    private(set) var version = ResourceVersion()
    /// What the answer under way says of its version: that of the part's bytes once they are seen to be the same.
    private var claimed: ResourceVersion?
    /// Bytes at the front that are there, of this version.
    private(set) var have: Int64 = 0
    /// Where the next byte of the body belongs.
    private(set) var position: Int64 = 0

    private var buffer: UnsafeMutableRawBufferPointer?
    private var filled = 0
    private var sinceCheckpoint: Int64 = 0
    /// Bytes at the front that a confirmed checkpoint covers.
    private var confirmed: Int64 = 0

    init(task: DownloadTask, core: LoopCore, configuration: SessionConfiguration) {
        self.task = task
        self.core = core
        if case .fixed(let target) = task.placement { self.target = target }
        checkpointInterval = configuration.checkpointInterval
        checkpointLimit = configuration.checkpointLimit ?? .max
    }

    /// Takes up what an earlier attempt left, where it is still what the resume data say.
    func reopen(_ resumeData: ResumeData) {
        guard resumeData.resource == ResumeData.resource(of: task.originalRequest.url),
            let found = task.reopenPart(resumeData)
        else {
            return startOver()
        }
        part = found
        version = resumeData.version
        have = resumeData.ranges.contiguousEnd
        position = have
        confirmed = have
        task.progress.setTotal(version.total)
        task.progress.setCompleted(have)
        task.setPart(found, version)
    }

    /// A destination has been decided: what is there of the part goes along.
    ///
    /// - Returns: `false` where it cannot, and has been removed.
    func settle(in target: DownloadTarget) throws(TransferError) -> Bool {
        let before = part
        if let before {
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
        part = nil
        version = ResourceVersion()
        claimed = nil
        have = 0
        position = 0
        confirmed = 0
        filled = 0
        task.setPart(nil, version)
        task.progress.setTotal(nil)
        task.progress.setCompleted(0)
    }

    /// A body begins whose first byte is that of `offset`.
    ///
    /// - Parameter claimed: what its head says. Where the body overlaps what is there, that counts only when the
    ///   overlap has been compared: until then nothing tells that both are of one version.
    func begin(at offset: Int64, of claimed: ResourceVersion) {
        position = offset
        filled = 0
        self.claimed = claimed
        task.progress.setTotal(claimed.total)
        adoptVersion()
    }

    private func adoptVersion() {
        guard position >= have, let claimed else { return }
        version = version.continued(by: claimed)
        self.claimed = nil
        task.setPart(part, version)
    }

    /// Whether no more is to be taken before a checkpoint has been confirmed.
    var isAhead: Bool { position - confirmed >= checkpointLimit }

    /// A checkpoint that covers `count` bytes at the front has been written down.
    func confirm(_ count: Int64) {
        confirmed = min(count, have)
    }

    /// - Throws: where the disk refuses, or the bytes are not those that are there (`remoteChanged`).
    func append(_ bytes: UnsafeRawBufferPointer) throws(TransferError) {
        task.progress.transferred(bytes.count)
        var rest = bytes
        if position < have {
            rest = try compare(rest)
            adoptVersion()
        }
        while !rest.isEmpty {
            let space = buffer ?? core.buffers.take()
            buffer = space
            let count = min(rest.count, space.count - filled)
            UnsafeMutableRawBufferPointer(rebasing: space[filled..<(filled + count)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: rest[..<count]))
            filled += count
            position += Int64(count)
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            if filled == space.count { try flush() }
        }
    }

    /// - Returns: what lies behind the bytes that are there.
    private func compare(_ bytes: UnsafeRawBufferPointer) throws(TransferError) -> UnsafeRawBufferPointer {
        let count = Int(min(Int64(bytes.count), have - position))
        guard let part else { throw TransferError(.internal, "nothing to compare with") }
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { space.deallocate() }
        let read = try part.descriptor.read(into: space, at: position)
        guard read == count, zip(space, bytes).allSatisfy(==) else {
            throw TransferError(.remoteChanged, "the file on the server is not the one that was begun")
        }
        position += Int64(count)
        return UnsafeRawBufferPointer(rebasing: bytes[count...])
    }

    /// A body that ended before it came to new bytes tells nothing about them.
    func endOfBody() throws(TransferError) {
        if position < have {
            throw TransferError(.remoteChanged, "the file on the server is shorter than what is here of it")
        }
    }

    /// Hands what has been gathered to the kernel.
    func flush() throws(TransferError) {
        guard filled > 0, let buffer else { return }
        if have > 0 { try part?.check(holds: have) }
        let part = try partForWriting()
        let count = filled
        filled = 0
        try part.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: position - Int64(count))
        have = max(have, position)
        task.progress.setCompleted(position)
        session.delegate.downloadTask(
            task, didWriteData: Int64(count), total: position, expected: task.progress.totalBytes)
        sinceCheckpoint += Int64(count)
        if sinceCheckpoint >= checkpointInterval {
            sinceCheckpoint = 0
            session.delegate.downloadTask(wantsCheckpoint: task)
        }
    }

    private var session: Session { task.session }

    private func partForWriting() throws(TransferError) -> PartFile {
        if let part { return part }
        guard let target else { throw TransferError(.internal, "bytes without a place") }
        let made = try PartFile.make(in: target.directory, name: target.partName, owner: target.owner)
        part = made
        task.setPart(made, version)
        return made
    }

    /// The body is whole: everything is written, and the part is exactly so long.
    ///
    /// - Throws: `remoteChanged` where someone took the part away or cut it short: it is to be fetched anew.
    func complete() throws(TransferError) -> (part: PartFile, size: Int64) {
        let size = max(position, have)
        let before = part
        try flush()
        let part = try partForWriting()
        try before?.checkName()
        // An earlier attempt may have gone further with a longer version.
        if try part.check(holds: size) > size { try part.truncate(to: size) }
        task.progress.setCompleted(size)
        return (part, size)
    }

    func release() {
        if let buffer { core.buffers.give(buffer) }
        buffer = nil
    }
}
