import ControlProtocol
import Glibc
import NIOCore

/// A decoder that splits a connection's bytes into lines. Bytes are appended as they are received, and lines are taken
/// on demand.
///
/// A value without I/O. It holds at most one incomplete line, of up to `limit` bytes, and the bytes of one more read.
struct LineDecoder {
    enum Item: Equatable {
        /// A line without its LF and without a CR before that.
        case line(ByteBuffer)
        /// A line longer than allowed. The decoder yields nothing after it.
        case tooLong
    }

    private let limit: Int
    private var buffer = ByteBuffer()
    /// The number of bytes, from the reader index on, that are known to contain no LF.
    private var scanned = 0
    /// The length of the first complete line in bytes, without its LF.
    private var lineEnd: Int?
    private var isOver = false
    /// The number of lines taken so far.
    private var linesTaken = 0

    init(limit: Int = MessageLimits.lineLength) {
        self.limit = limit
    }

    /// The number of bytes that wait in the decoder.
    var count: Int { buffer.readableBytes }

    /// The size of their storage, in bytes.
    var capacity: Int { buffer.storageCapacity }

    /// The length of the first complete line in bytes, without its LF; 0 if there is none.
    var lineLength: Int { lineEnd ?? 0 }

    /// Whether ``next()`` would return an item.
    var hasItem: Bool { lineEnd != nil || scanned > limit }

    /// The number of the incomplete line; `nil` unless the waiting bytes are the beginning of a line and nothing else.
    var growingLine: Int? { !hasItem && scanned > 0 ? linesTaken : nil }

    /// - Parameter bytes: the received bytes. They are copied, since their storage is as large as the largest read.
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
        // The line and the bytes after it must not keep each other's storage alive.
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
