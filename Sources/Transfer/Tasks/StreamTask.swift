import Curl
public import FoundationEssentials

/// A raw TCP connection: bytes in both directions, sides that close separately, and TLS on request.
///
/// It is created with ``Session/streamTask(host:port:progress:)``, or from a request whose URL is `tcp://host:port`. Of
/// that request, the URL, the proxy, the trusted certificates and the identity apply (an `http://` proxy is asked for a
/// tunnel, RFC 9110, section 9.3.6; `socks5://` follows RFC 1928). Method, fields, credential and rates have no meaning
/// for a raw connection, and it does not count among the connections to a host.
///
/// Calls made before the connection is established wait for it. Reads complete in the order of the calls, and writes
/// are sent in that order. Each call returns exactly once, however the stream ends. The task is complete when both
/// sides are closed, when the connection breaks (with ``TransferError/Code/truncated``), or when it is cancelled. A
/// peer that closes only its side does not complete the task: close the other side. Under TLS a connection that was cut
/// looks like one that the peer closed (libcurl 7.88 does not tell the two apart). So only the protocol above can tell
/// whether all bytes have been received (RFC 8446, section 6.1).
///
/// The session's `connectTimeout` applies to connecting and again to the TLS handshake. Its `stallTimeout` applies
/// while a read or write without a time limit of its own waits; a stream that no call waits for may be silent
/// indefinitely. While the task is suspended, calls do not complete and none of these time-outs runs, except that for
/// connecting.
public final class StreamTask: LoopTask {
    let core: TaskCore
    let session: Session
    let channel: StreamChannel
    /// The work of the task on its connection: ``channel``, or a WebSocket.
    let link: any StreamLink
    /// Whether the channel belongs to a request and outlives an attempt that does not connect.
    private let isShared: Bool

    init(
        _ request: TransferRequest, progress: TransferProgress, session: Session, channel: StreamChannel? = nil
    ) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.channel = channel ?? StreamChannel()
        link = self.channel
        isShared = channel != nil
    }

    /// Creates a task that carries another protocol. The calls of the task itself are refused.
    init(
        _ request: TransferRequest, progress: TransferProgress, session: Session, link: any StreamLink
    ) {
        core = TaskCore(request, progress: progress)
        self.session = session
        channel = StreamChannel()
        channel.end(.streamClosed("the connection belongs to another protocol"))
        self.link = link
        isShared = true
    }

    func didEnd(_ error: TransferError?) {
        if !isShared || channel.hasConnected { channel.end(error) }
    }

    /// The number of bytes received from the peer, read or not.
    public var bytesReceived: Int64 { link.bytesReceived }
    /// The number of bytes that the system has accepted for sending.
    public var bytesSent: Int64 { link.bytesSent }

    /// The maximum number of bytes of one read.
    public static let longestRead = StreamChannel.longestRead
    /// The number of buffered unread bytes at which the peer has to wait; one buffer (256 KiB) may come on top.
    public static let heldLimit = StreamChannel.heldLimit

    // MARK: Reading and writing

    /// Reads the next bytes. Several reads may wait: they are served in their order.
    ///
    /// Cancelling the Swift task that waits withdraws the read, and its bytes go to the next read.
    ///
    /// - Parameters:
    ///   - least: the number of bytes to wait for; 0 returns what is buffered. Fewer are returned only at the end.
    ///   - most: the maximum number of bytes to return, up to ``longestRead``.
    ///   - timeout: the time limit in milliseconds, in place of the session's `stallTimeout`. Bytes received by then
    ///     stay for the next read.
    /// - Returns: the bytes, and whether these are the last ones. After the end: no bytes, each time.
    /// - Throws: ``TransferError``: `timedOut` and `cancelled` for this call alone; `streamClosed` after
    ///   ``closeRead()``; otherwise the reason why the connection ended.
    public func readData(
        ofMinLength least: Int = 1, maxLength most: Int = 65536, timeout: Int64? = nil
    ) async throws(TransferError) -> (data: [UInt8], atEOF: Bool) {
        let piece = try await channel.read(least: least, most: most, limit: timeout)
        return (piece.data, piece.atEOF)
    }

    /// Writes bytes, after earlier writes. Returns when the system has accepted all of them, which a peer that does not
    /// read delays. Await each write, so that little memory is used.
    ///
    /// A write that waits behind others is withdrawn when its time is up or the Swift task is cancelled. A write that
    /// has begun cannot be withdrawn, since the peer would take later bytes for its rest: the task then fails with
    /// ``TransferError/Code/timedOut``, or is cancelled.
    ///
    /// - Parameters:
    ///   - bytes: the bytes to write.
    ///   - timeout: the time limit in milliseconds, in place of the session's `stallTimeout`.
    /// - Throws: ``TransferError``: `streamClosed` after ``closeWrite()`` and after the end; otherwise the reason why
    ///   the connection ended.
    public func write(_ bytes: [UInt8], timeout: Int64? = nil) async throws(TransferError) {
        try await channel.write(bytes, limit: timeout)
    }

    /// Stops receiving from the peer, once the earlier reads have completed. Unread bytes are dropped.
    public func closeRead() { channel.closeRead() }

    /// Announces the end of sending to the peer (FIN), once the earlier writes are sent. Reading goes on.
    ///
    /// Under TLS the FIN comes without close_notify, which peers may take for a truncation (RFC 8446, section 6.1). So
    /// a protocol under TLS should mark its end itself.
    public func closeWrite() { channel.closeWrite() }

    /// The received bytes, one at a time, up to the end; see ``StreamBytes``.
    public var bytes: StreamBytes { StreamBytes(reader: StreamReader(channel: channel, isCaptured: false)) }

    // MARK: TLS and capture

    /// Starts TLS, once the earlier calls have been written and read; later calls wait for the handshake. The
    /// certificate is evaluated for the URL's host, by the session's policy for it and by the closures for challenges
    /// of server trust. Both may refuse a peer whose certificate chain is trusted, and cannot accept one whose chain is
    /// not.
    ///
    /// Await it before any call that is meant for TLS.
    ///
    /// - Throws: ``TransferError``: `secureRefused` if plain text was received and not read (it must not count as
    ///   received under TLS), if a side is closed, or if TLS is in use already, as with an `https://` proxy. The
    ///   connection then stays as it is, and the calls that waited for the handshake fail with the same error.
    ///   Otherwise the handshake failed, and with it the task: `tls`, `timedOut`.
    public func startSecureConnection() async throws(TransferError) { try await channel.pass(.secure) }

    /// Turns the task into a sequence of pieces and a writer, once the earlier calls are complete. The delegate is
    /// notified (`streamTaskDidBecomeInputAndOutputStreams`). From the call on, reads, writes and closes of the task
    /// itself are refused with `streamClosed`.
    ///
    /// The task continues below them until the connection ends, and can be cancelled.
    public func captureStreams() async throws(TransferError) -> (reader: StreamReader, writer: StreamWriter) {
        try await channel.pass(.capture)
        return (StreamReader(channel: channel), StreamWriter(channel: channel))
    }
}

extension StreamTask {
    /// Writes data.
    ///
    /// - Parameters:
    ///   - data: the bytes to write.
    ///   - timeout: the time limit in milliseconds, in place of the session's `stallTimeout`.
    /// - Throws: ``TransferError``, as for an array of bytes.
    @_disfavoredOverload
    public func write(_ data: Data, timeout: Int64? = nil) async throws(TransferError) {
        try await write(Array(data), timeout: timeout)
    }
}

extension StreamWriter {
    /// Writes data as a ``StreamTask`` does.
    @_disfavoredOverload
    public func write(_ data: Data, timeout: Int64? = nil) async throws(TransferError) {
        try await write(Array(data), timeout: timeout)
    }
}
