import Curl
import Glibc

/// A writer of one response body to the part file. It gathers bytes into large writes and compares bytes that overlap
/// existing contents.
///
/// Used on the loop's thread only. A body that arrives quickly and fits into the largest buffer is written once it is
/// complete, so most small files need one write. A body that arrives fast is gathered in large blocks, where the disk
/// writes these without the page cache.
final class BodyWriter {
    let file: DownloadFile
    private let core: LoopCore
    private let clock: LoopClock

    /// The version stated by the current response. It becomes the version of the part file once the overlapping bytes
    /// have been compared.
    private var claimed: ResourceVersion?
    // The properties marked below are used for each chunk of a body. No access to one of them calls code that leads back
    // to the writer.

    /// The file offset of the next body byte.
    @exclusivity(unchecked) private(set) var position: Int64 = 0
    /// The end offset of the existing bytes; body bytes before it are compared instead of written.
    @exclusivity(unchecked) private var overlapEnd: Int64 = 0

    /// The number of exchanges on a loop above which a body is assumed to arrive slowly until it proves fast.
    private static let crowd = 128
    /// The number of exchanges on a loop above which the bytes of slow bodies are written as they arrive. A buffer for
    /// each, filled over seconds, would take more memory than the further writes take time.
    private static let multitude = 1_024
    /// The number of bytes from which that is done. Fewer are gathered.
    private static let worthWriting = 1_024

    /// The buffered bytes, unless ``block`` is in use.
    @exclusivity(unchecked) private var buffer: BodyBuffer
    /// The buffered bytes of a fast body.
    @exclusivity(unchecked) private var block: BlockBuffer
    /// The number of buffered bytes that are not yet written.
    var pending: Int { block.isInUse ? block.count : buffer.count }
    private var run: PartFile.WriteRun?

    init(file: DownloadFile) {
        self.file = file
        core = file.core
        clock = core.clock
        buffer = BodyBuffer(pool: core.buffers)
        block = BlockBuffer(pool: core.blocks)
    }

    /// Starts a body whose first byte has the file offset `offset`.
    ///
    /// - Parameter claimed: the version in the response's head. If the body overlaps existing bytes, it is adopted only
    ///   after the overlap has been compared, because until then the two versions may differ.
    func begin(at offset: Int64, of claimed: ResourceVersion) {
        endRun()
        position = offset
        overlapEnd = file.written.end(ofRangeAt: offset)
        discard()
        self.claimed = claimed
        adoptVersion()
    }

    private func adoptVersion() {
        guard position >= overlapEnd, let claimed else { return }
        self.claimed = nil
        file.adopt(claimed)
    }

    /// Compares or buffers body bytes, and writes full buffers.
    ///
    /// - Throws: an error if a write fails, or `remoteChanged` if the bytes differ from the existing ones.
    func append(_ bytes: UnsafeRawBufferPointer) throws(TransferError) {
        var rest = bytes
        if position < overlapEnd {
            rest = try compare(rest)
            adoptVersion()
        }
        let exchanges = core.exchangeCount
        if exchanges > Self.multitude, pending == 0, rest.count >= Self.worthWriting, !block.isInUse,
            !fitsIntoBuffer, !file.usesBlockWriter()
        {
            return try write(rest)
        }
        while !rest.isEmpty {
            let taken =
                block.isInUse
                ? block.append(rest, at: position, now: clock.now)
                : buffer.append(rest, now: clock.now, isCrowded: exchanges > Self.crowd)
            position += Int64(taken)
            rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
            if taken == 0 {
                try flush()
                // The body is not fast any more, or others have all blocks.
                endBlocks()
            } else if block.isFull {
                try flush()
            } else if buffer.isFull {
                try flush()
                if buffer.isFast, file.beginBlocks() { block.begin() }
            }
        }
    }

    private func endBlocks() {
        guard block.isInUse else { return }
        block.end()
        file.endBlocks()
    }

    /// Discards the buffered bytes.
    private func discard() {
        buffer.release()
        endBlocks()
    }

    /// Compares bytes with the existing part.
    ///
    /// - Returns: the bytes behind the overlap.
    private func compare(_ bytes: UnsafeRawBufferPointer) throws(TransferError) -> UnsafeRawBufferPointer {
        let count = Int(min(Int64(bytes.count), overlapEnd - position))
        guard let part = file.part, let theirs = bytes.baseAddress else {
            throw TransferError(.internal, "nothing to compare with")
        }
        let space = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { space.deallocate() }
        let read = try part.descriptor.read(into: space, at: position)
        guard read == count, let ours = space.baseAddress, memcmp(ours, theirs, count) == 0 else {
            throw TransferError(.remoteChanged, "the file on the server is not the one whose download began")
        }
        position += Int64(count)
        return UnsafeRawBufferPointer(rebasing: bytes[count...])
    }

    /// Checks that the body reached new bytes. A body that ends within the overlap does not confirm the version, so the
    /// check throws `remoteChanged`.
    func endOfBody() throws(TransferError) {
        if position < overlapEnd {
            throw TransferError(.remoteChanged, "the file on the server is shorter than the part already downloaded")
        }
    }

    /// Whether the smallest buffer holds the whole file, which is then written at once.
    private var fitsIntoBuffer: Bool {
        guard file.count == 0, let total = file.version.total else { return false }
        return total <= Int64(BufferPool.smallestSize)
    }

    /// Writes bytes without buffering them.
    private func write(_ bytes: UnsafeRawBufferPointer) throws(TransferError) {
        try file.allow(bytes.count)
        try file.write(bytes, to: try currentRun(at: position))
        position += Int64(bytes.count)
    }

    /// Writes the buffered bytes, or hands them to the block writer.
    func flush() throws(TransferError) {
        let count = pending
        guard count > 0 else { return }
        try file.allow(count)
        let run = try currentRun(at: position - Int64(count))
        if block.isInUse {
            guard let memory = block.detachMemory() else { return }
            try file.hand(memory, count, to: run, at: position - Int64(count))
        } else if file.usesBlockWriter() {
            guard let memory = buffer.detachMemory(now: clock.now) else { return }
            try file.hand(memory, count, to: run, at: position - Int64(count))
        } else {
            defer { buffer.didWrite(now: clock.now) }
            try file.write(buffer.bytes, to: run)
        }
    }

    /// Returns the current write run, or begins one at `offset`.
    private func currentRun(at offset: Int64) throws(TransferError) -> PartFile.WriteRun {
        if let run { return run }
        do throws(TransferError) {
            let begun = try file.beginRun(at: offset)
            run = begun
            return begun
        } catch {
            discard()
            throw error
        }
    }

    /// Whether the receiver must pause until pending writes complete: too many blocks are queued, or the written bytes
    /// are needed for a comparison.
    var isBlocked: Bool { file.isBehind || (position < overlapEnd && !file.isAtRest) }

    /// The reason for which no more of the body is taken for now; `nil` where more is taken.
    var pause: PauseReasons? {
        if file.isAhead { return .checkpoint }
        return isBlocked ? .disk : nil
    }

    /// Discards the buffered bytes.
    func drop() {
        discard()
        endRun()
    }

    private func endRun() {
        if let run { file.end(run) }
        run = nil
    }

    func release() {
        endRun()
        discard()
    }
}
