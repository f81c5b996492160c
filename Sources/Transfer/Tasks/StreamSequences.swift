/// The reading half of a stream that was captured: pieces as they come, of any length, until the peer has closed its
/// side. The peer waits for whoever reads.
///
/// Iterators of one reader share its bytes: each piece goes to one of them. Cancelling the Swift task that waits for a
/// piece takes the wait back and loses no byte.
public struct StreamReader: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = TransferError

    let channel: StreamChannel
    var isCaptured = true

    public func makeAsyncIterator() -> Iterator { Iterator(channel: channel, isCaptured: isCaptured) }

    /// As ``StreamTask/closeRead()``.
    public func close() { channel.closeRead(captured: isCaptured) }

    /// Takes the pieces, each for itself alone.
    public struct Iterator: AsyncIteratorProtocol {
        /// Bytes of one piece at most.
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

/// The writing half of a stream that was captured.
public struct StreamWriter: Sendable {
    let channel: StreamChannel

    /// As ``StreamTask/write(_:timeout:)``.
    public func write(_ bytes: [UInt8], timeout: Int64? = nil) async throws(TransferError) {
        try await channel.write(bytes, limit: timeout, captured: true)
    }

    /// As ``StreamTask/closeWrite()``.
    public func close() { channel.closeWrite(captured: true) }
}

/// The bytes of a stream, one by one.
public struct StreamBytes: AsyncSequence, Sendable {
    public typealias Element = UInt8
    public typealias Failure = TransferError

    let reader: StreamReader

    public func makeAsyncIterator() -> Iterator { Iterator(pieces: reader.makeAsyncIterator()) }

    /// What an iterator has taken and not given out is lost with it.
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
