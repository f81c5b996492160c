import Curl
import Glibc

/// Puts one body's bytes where they belong in the part file: gathered into large writes, compared with what is
/// there already where they overlap it.
///
/// Lives on its loop's thread. A body that comes quickly and ends within the largest buffer is written only when it is
/// whole: most small files touch the disk once.
final class BodyWriter {
    let file: DownloadFile
    private let core: LoopCore

    /// What the answer under way says of its version: that of the part's bytes once they are seen to be the same.
    private var claimed: ResourceVersion?
    /// Where the next byte of the body belongs.
    private(set) var position: Int64 = 0
    /// Up to here the body's bytes are there already, and are compared.
    private var overlapEnd: Int64 = 0

    /// Exchanges on a loop above which bodies arrive slowly until they are seen to be fast.
    private static let crowd = 128

    private var buffer: BodyBuffer
    /// Bytes that have been gathered and not written.
    var pending: Int { buffer.count }
    private var run: PartFile.WriteRun?

    init(file: DownloadFile) {
        self.file = file
        core = file.core
        buffer = BodyBuffer(pool: core.buffers)
    }

    /// A body begins whose first byte is that of `offset`.
    ///
    /// - Parameter claimed: what its head says. Where the body overlaps what is there, that counts only when the
    ///   overlap has been compared: until then nothing tells that both are of one version.
    func begin(at offset: Int64, of claimed: ResourceVersion) {
        endRun()
        position = offset
        overlapEnd = file.written.end(ofRangeAt: offset)
        buffer.release()
        self.claimed = claimed
        adoptVersion()
    }

    private func adoptVersion() {
        guard position >= overlapEnd, let claimed else { return }
        self.claimed = nil
        file.adopt(claimed)
    }

    /// - Throws: where the disk refuses, or the bytes are not those that are there (`remoteChanged`).
    func append(_ bytes: UnsafeRawBufferPointer) throws(TransferError) {
        var rest = bytes
        if position < overlapEnd {
            rest = try compare(rest)
            adoptVersion()
        }
        while !rest.isEmpty {
            let taken = buffer.append(rest, now: core.now, isCrowded: core.exchangeCount > Self.crowd)
            position += Int64(taken)
            rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
            if taken == 0 || buffer.isFull { try flush() }
        }
    }

    /// - Returns: what lies behind the bytes that are there.
    private func compare(_ bytes: UnsafeRawBufferPointer) throws(TransferError) -> UnsafeRawBufferPointer {
        let count = Int(min(Int64(bytes.count), overlapEnd - position))
        guard let part = file.part, let theirs = bytes.baseAddress else {
            throw TransferError(.internal, "nothing to compare with")
        }
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { space.deallocate() }
        let read = try part.descriptor.read(into: space, at: position)
        guard read == count, let ours = space.baseAddress, memcmp(ours, theirs, count) == 0 else {
            throw TransferError(.remoteChanged, "the file on the server is not the one that was begun")
        }
        position += Int64(count)
        return UnsafeRawBufferPointer(rebasing: bytes[count...])
    }

    /// A body that ended before it came to new bytes tells nothing about them.
    func endOfBody() throws(TransferError) {
        if position < overlapEnd {
            throw TransferError(.remoteChanged, "the file on the server is shorter than what is here of it")
        }
    }

    /// Hands what has been gathered to the kernel.
    func flush() throws(TransferError) {
        let count = buffer.count
        guard count > 0 else { return }
        try file.allow(count)
        let run = try currentRun(at: position - Int64(count))
        if file.handsOver() {
            guard let memory = buffer.take(now: core.now) else { return }
            file.hand(memory, count, to: run, at: position - Int64(count))
        } else {
            defer { buffer.didWrite(now: core.now) }
            try file.write(buffer.bytes, to: run)
        }
    }

    /// The run that a block at `offset` belongs to.
    private func currentRun(at offset: Int64) throws(TransferError) -> PartFile.WriteRun {
        if let run { return run }
        do throws(TransferError) {
            let begun = try file.beginRun(at: offset)
            run = begun
            return begun
        } catch {
            buffer.release()
            throw error
        }
    }

    /// Whether no more is to be taken before the disk has what it was handed: there is too much of it, or it is to be
    /// compared.
    var isBlocked: Bool { file.isBehind || (position < overlapEnd && !file.isAtRest) }

    /// Forgets what has been gathered and not written.
    func drop() {
        buffer.release()
        endRun()
    }

    private func endRun() {
        // What is still on its way to the disk goes on moving it.
        if let run, file.isAtRest { file.part?.end(run) }
        run = nil
    }

    func release() {
        endRun()
        buffer.release()
    }
}
