/// Whoever listens to a stream, called on the loop's thread and never from within a call of its own other than
/// ``StreamConnection/cancel()``. Every call may use the stream as it likes.
package protocol StreamHandler: AnyObject {
    /// Whether to connect to an address; asked of streams that were opened so, for each connection that is to be made, and
    /// from within libcurl: the stream must not be used.
    ///
    /// - Parameter address: its 4 or 16 bytes in the network's order; empty where it is of another kind.
    func judge(address: UnsafeRawBufferPointer) -> Bool
    /// The connection stands, through proxies and with TLS where it was opened so.
    func streamDidConnect(_ stream: StreamConnection)
    /// Bytes from the peer; the memory is good for this call alone.
    ///
    /// - Returns: `false` to get no more of them until ``StreamConnection/resumeReading()``.
    func stream(_ stream: StreamConnection, didReceive bytes: UnsafeRawBufferPointer) -> Bool
    /// The peer will send nothing more. Under TLS this may be close_notify or, for libcurl 7.88.1 with OpenSSL does
    /// not tell the two apart, a connection that was cut: a protocol whose messages have no length of their own must
    /// not take it for the end of one (RFC 8446, section 6.1).
    func streamDidCloseRead(_ stream: StreamConnection)
    /// So many more of the queued bytes have gone to the system.
    func stream(_ stream: StreamConnection, didWrite count: Int)
    /// There is room again after ``StreamConnection/write(_:)-(UnsafeRawBufferPointer)`` took less than it was given.
    func streamCanWrite(_ stream: StreamConnection)
    /// The handshake that ``StreamConnection/startTLS(configure:)`` began has succeeded.
    func streamDidSecure(_ stream: StreamConnection)
    /// The stream is closed and has left the loop.
    func streamDidEnd(_ stream: StreamConnection, _ ending: StreamEnding)
}

extension StreamHandler {
    package func judge(address: UnsafeRawBufferPointer) -> Bool { false }
}

/// How a stream ended.
package enum StreamEnding: Sendable, Equatable {
    /// Both sides were closed in good order.
    case finished
    /// The connection, the handshake, a read or a write failed. `systemError` is an `errno`, 0 where there is none.
    case failed(CurlError, systemError: Int32)
    /// We ended it.
    case cancelled
}

/// Why TLS was not started; the stream is as it was.
package enum StartTLSRefusal: Error, Sendable, Equatable {
    /// Not connected, or a side of it is closed.
    case notOpen
    /// TLS is spoken already, if only to a proxy: libcurl cannot put the one into the other here.
    case alreadySecure
    /// Queued bytes have not gone: whether they are for plain text or for TLS would be a guess.
    case unsentBytes
    /// The peer has sent bytes that were not read. They are plain text that anyone on the way may have put there,
    /// and must not count as said under TLS (the class of CVE-2021-22947).
    case unreadBytes
    /// libcurl or the system would not.
    case failed(CurlError)
}
