import ControlProtocol
import Glibc
import NIOCore

/// Cuts a connection's bytes into lines: bytes go in as they arrive, lines come out when they are wanted.
///
/// A value without I/O. It holds at most one line that is still growing, of `limit` bytes, and what one read
/// brought on top.
struct LineDecoder {
    enum Item: Equatable {
        /// Without its LF, and without a CR before it.
        case line(ByteBuffer)
        /// The line is longer than allowed; nothing comes after it.
        case tooLong
    }

    private let limit: Int
    private var buffer = ByteBuffer()
    /// Bytes from the reader index on that are known to hold no LF.
    private var scanned = 0
    /// Bytes of the first complete line, without its LF.
    private var lineEnd: Int?
    private var isOver = false
    /// Lines given out so far.
    private var linesTaken = 0

    init(limit: Int = MessageLimits.lineLength) {
        self.limit = limit
    }

    /// Bytes that wait here.
    var count: Int { buffer.readableBytes }

    /// Bytes of storage held for them.
    var capacity: Int { buffer.storageCapacity }

    /// Bytes of the first whole line, without its LF; 0 where there is none.
    var lineLength: Int { lineEnd ?? 0 }

    /// Whether ``next()`` has something to give.
    var hasItem: Bool { lineEnd != nil || scanned > limit }

    /// The number of the line, where what waits is the beginning of one and no more.
    var growingLine: Int? { !hasItem && scanned > 0 ? linesTaken : nil }

    /// - Parameter bytes: are copied: their storage is as large as the largest read.
    mutating func append(_ bytes: ByteBuffer) {
        guard !isOver else { return }
        buffer.writeImmutableBuffer(bytes)
        scan()
    }

    mutating func next() -> Item? {
        guard !isOver else { return nil }
        guard let end = lineEnd, end <= limit, var line = buffer.readSlice(length: end) else {
            guard hasItem else { return nil }
            isOver = true
            buffer = ByteBuffer()
            scanned = 0
            lineEnd = nil
            return .tooLong
        }
        buffer.moveReaderIndex(forwardBy: 1)
        linesTaken += 1
        lineEnd = nil
        scanned = 0
        // Neither the line nor what comes after it keeps the other's storage.
        if buffer.readableBytes <= end {
            buffer = ByteBuffer(bytes: buffer.readableBytesView)
        } else {
            line = ByteBuffer(bytes: line.readableBytesView)
            if buffer.readerIndex > buffer.readableBytes { buffer.discardReadBytes() }
        }
        scan()
        if line.readableBytesView.last == UInt8(ascii: "\r") {
            line.moveWriterIndex(to: line.writerIndex - 1)
        }
        return .line(line)
    }

    private mutating func scan() {
        guard lineEnd == nil else { return }
        lineEnd = buffer.withUnsafeReadableBytes { [scanned] bytes in
            guard let base = bytes.baseAddress, bytes.count > scanned,
                let end = memchr(base + scanned, Int32(UInt8(ascii: "\n")), bytes.count - scanned)
            else { return nil }
            return UnsafeRawPointer(end) - base
        }
        if lineEnd == nil { scanned = buffer.readableBytes }
    }
}
