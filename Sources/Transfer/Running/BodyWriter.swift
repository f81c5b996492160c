import Curl
import Glibc

/// Puts one body's bytes where they belong in the part file: gathered into large writes, compared with what is
/// there already where they overlap it.
///
/// Lives on its loop's thread. A body that ends within one buffer is written only when it is whole: most small files
/// touch the disk once.
final class BodyWriter {
    let file: DownloadFile
    private let core: LoopCore

    /// What the answer under way says of its version: that of the part's bytes once they are seen to be the same.
    private var claimed: ResourceVersion?
    /// Where the next byte of the body belongs.
    private(set) var position: Int64 = 0
    /// Up to here the body's bytes are there already, and are compared.
    private var overlapEnd: Int64 = 0

    private var buffer: UnsafeMutableRawBufferPointer?
    private var filled = 0
    /// Bytes that have been gathered and not written.
    var pending: Int { filled }
    private var run: PartFile.WriteRun?

    init(file: DownloadFile) {
        self.file = file
        core = file.core
    }

    /// A body begins whose first byte is that of `offset`.
    ///
    /// - Parameter claimed: what its head says. Where the body overlaps what is there, that counts only when the
    ///   overlap has been compared: until then nothing tells that both are of one version.
    func begin(at offset: Int64, of claimed: ResourceVersion) {
        endRun()
        position = offset
        overlapEnd = file.written.end(ofRangeAt: offset)
        filled = 0
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
        guard filled > 0, let buffer else { return }
        let count = filled
        filled = 0
        let run: PartFile.WriteRun
        if let known = self.run {
            run = known
        } else {
            run = try file.beginRun(at: position - Int64(count))
            self.run = run
        }
        if file.handsOver() {
            self.buffer = nil
            file.hand(buffer, count, to: run, at: position - Int64(count))
        } else {
            try file.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: run)
        }
    }

    /// Whether no more is to be taken before the disk has what it was handed: there is too much of it, or it is to be
    /// compared.
    var isBlocked: Bool { file.isBehind || (position < overlapEnd && !file.isAtRest) }

    /// Forgets what has been gathered and not written.
    func drop() {
        filled = 0
        endRun()
    }

    private func endRun() {
        // What is still on its way to the disk goes on moving it.
        if let run, file.isAtRest { file.part?.end(run) }
        run = nil
    }

    func release() {
        endRun()
        if let buffer { core.buffers.give(buffer) }
        buffer = nil
        filled = 0
    }
}
