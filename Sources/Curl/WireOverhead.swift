/// The relation between the bytes that a peer sends and the bytes of a body among them, for a body that arrives in tiny
/// pieces. libcurl 7.88 reads chunk extensions (RFC 9112, section 7.1.1) of any length without a word, as fast as they
/// come. A value without I/O.
struct WireOverhead {
    /// The greatest length in bytes of a piece that counts as tiny.
    static let tiny = 64
    /// The number of tiny pieces between two checks.
    static let piecesPerCheck = 256
    /// The bytes that a peer may send beside the body, beyond ``factor`` times the body. A thread reads them in less
    /// than a second.
    static let allowance: UInt64 = 64 << 20
    /// An honest server that sends single bytes in chunks and TLS records of their own stays below a third of this.
    static let factor: UInt64 = 128

    private var tinyPieces = 0
    private var body: UInt64 = 0
    /// The bytes that the peer had sent at the first check.
    private var before: UInt64?

    /// Records a tiny piece.
    ///
    /// - Returns: whether ``isExcessive(received:)`` is to be asked.
    mutating func record(_ length: Int) -> Bool {
        body &+= UInt64(length)
        tinyPieces += 1
        guard tinyPieces >= Self.piecesPerCheck else { return false }
        tinyPieces = 0
        return true
    }

    /// Returns whether the peer sends far more than the body.
    ///
    /// - Parameter received: the number of bytes that the peer has sent on the connection.
    mutating func isExcessive(received: UInt64) -> Bool {
        guard let before else {
            before = received
            body = 0
            return false
        }
        let sent = received > before ? received - before : 0
        return sent > Self.allowance && (sent - Self.allowance) / Self.factor > body
    }
}
