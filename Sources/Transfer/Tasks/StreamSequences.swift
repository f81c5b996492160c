/// The read half of a captured stream: pieces of any length as they are received, until the peer has closed its side. A
/// slow reader makes the peer wait.
///
/// Iterators of one reader share its bytes: each piece goes to one of them. Cancelling the Swift task that waits for a
/// piece cancels the wait and loses no byte.
public struct StreamReader: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = TransferError

    let channel: StreamChannel
    var isCaptured = true

    public func makeAsyncIterator() -> Iterator { Iterator(channel: channel, isCaptured: isCaptured) }

    /// Closes the read side as ``StreamTask/closeRead()`` does.
    public func close() { channel.closeRead(captured: isCaptured) }

    /// The iterator over the pieces. A piece goes to only one iterator.
    public struct Iterator: AsyncIteratorProtocol {
        /// The maximum number of bytes of one piece.
        static let longestPiece = 64 * 1024

        let channel: StreamChannel
        let isCaptured: Bool
        private var isAtEnd = false

        init(channel: StreamChannel, isCaptured: Bool) {
            self.channel = channel
            self.isCaptured = isCaptured
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(TransferError) -> [UInt8]? {
            guard !isAtEnd else { return nil }
            let piece = try await channel.read(
                least: 1, most: Self.longestPiece, limit: nil, captured: isCaptured)
            isAtEnd = piece.atEOF
            return piece.data.isEmpty ? nil : piece.data
        }

        public mutating func next() async throws(TransferError) -> [UInt8]? { try await next(isolation: nil) }
    }
}

/// The write half of a captured stream.
public struct StreamWriter: Sendable {
    let channel: StreamChannel

    /// Writes as ``StreamTask/write(_:timeout:)-([UInt8],_)`` does.
    public func write(_ bytes: [UInt8], timeout: Int64? = nil) async throws(TransferError) {
        try await channel.write(bytes, limit: timeout, captured: true)
    }

    /// Closes the write side as ``StreamTask/closeWrite()`` does.
    public func close() { channel.closeWrite(captured: true) }
}

/// The bytes of a stream, one at a time.
public struct StreamBytes: AsyncSequence, Sendable {
    public typealias Element = UInt8
    public typealias Failure = TransferError

    let reader: StreamReader

    public func makeAsyncIterator() -> Iterator { Iterator(pieces: reader.makeAsyncIterator()) }

    /// The iterator over the bytes. Bytes that it has read but not returned are lost when it is released.
    public struct Iterator: AsyncIteratorProtocol {
        private var pieces: StreamReader.Iterator
        private var piece: [UInt8] = []
        private var offset = 0

        init(pieces: StreamReader.Iterator) {
            self.pieces = pieces
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(TransferError) -> UInt8? {
            if offset == piece.count {
                guard let next = try await pieces.next(isolation: actor) else { return nil }
                (piece, offset) = (next, 0)
            }
            defer { offset += 1 }
            return piece[offset]
        }

        public mutating func next() async throws(TransferError) -> UInt8? { try await next(isolation: nil) }
    }
}
