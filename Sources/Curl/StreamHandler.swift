/// The receiver of a stream's events, called on the loop's thread. It is never called from within one of its own calls
/// to the stream, except for ``StreamConnection/cancel()``. Each method may use the stream freely, except for
/// ``evaluate(address:)``.
package protocol StreamHandler: AnyObject {
    /// Whether to connect to an address. Called for each new connection of streams that were opened with that option.
    /// It is called from within libcurl, so the stream must not be used.
    ///
    /// - Parameter address: the 4 or 16 bytes of the address in network byte order; empty if it is neither IPv4 nor
    ///   IPv6.
    func evaluate(address: UnsafeRawBufferPointer) -> Bool
    /// Notifies the handler that the connection is established, through proxies and with TLS if it was opened so.
    func streamDidConnect(_ stream: StreamConnection)
    /// Receives bytes from the peer; the memory is valid only during the call.
    ///
    /// - Returns: `false` to receive no more bytes until ``StreamConnection/resumeReading()``.
    func stream(_ stream: StreamConnection, didReceive bytes: UnsafeRawBufferPointer) -> Bool
    /// Notifies the handler that the peer will send nothing more. Under TLS the cause may be close_notify or a
    /// connection that was cut: libcurl 7.88.1 with OpenSSL does not distinguish the two. A protocol whose messages
    /// have no length of their own must not take it for the end of a message (RFC 8446, section 6.1).
    func streamDidCloseRead(_ stream: StreamConnection)
    /// Notifies the handler that `count` more of the queued bytes were passed to the system.
    func stream(_ stream: StreamConnection, didWrite count: Int)
    /// Notifies the handler that there is room again after ``StreamConnection/write(_:)-(UnsafeRawBufferPointer)``
    /// accepted less than all bytes.
    func streamCanWrite(_ stream: StreamConnection)
    /// Notifies the handler that the handshake started by ``StreamConnection/startTLS(configure:)`` has succeeded.
    func streamDidSecure(_ stream: StreamConnection)
    /// Notifies the handler that the stream is closed and has left the loop.
    func streamDidEnd(_ stream: StreamConnection, _ ending: StreamEnding)
}

extension StreamHandler {
    package func evaluate(address: UnsafeRawBufferPointer) -> Bool { false }
}

/// The way in which a stream ended.
package enum StreamEnding: Sendable, Equatable {
    /// Both sides closed in an orderly way.
    case finished
    /// The connection, the handshake, a read or a write failed. `systemError` is an `errno`, 0 if there is none.
    case failed(CurlError, systemError: Int32)
    /// The stream's owner cancelled it.
    case cancelled
}

/// The reason why TLS was not started; the stream is unchanged.
package enum StartTLSRefusal: Error, Sendable, Equatable {
    /// The stream is not connected, or one of its sides is closed.
    case notOpen
    /// TLS is already in use, even if only to a proxy: libcurl cannot nest one TLS session in another here.
    case alreadySecure
    /// Queued bytes have not been sent, and it is unknown whether they are meant to be sent as plain text or under TLS.
    case unsentBytes
    /// The peer has sent bytes that were not read. They are plain text that anyone on the path may have inserted, and
    /// must not be treated as received under TLS (the class of CVE-2021-22947).
    case unreadBytes
    /// libcurl or the system failed.
    case failed(CurlError)
}
