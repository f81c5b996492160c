import Curl

/// A raw TCP connection: bytes both ways, each side closed by itself, TLS where it is asked for.
///
/// Made with ``Session/streamTask(host:port:progress:)``, or from a request whose URL is `tcp://host:port`. Of that
/// request the URL, the proxy, the certificates to trust and the identity count (an `http://` proxy is asked for a
/// tunnel, RFC 9110, section 9.3.6; `socks5://` after RFC 1928). Method, fields, credential and rates mean nothing to a
/// raw connection, and it is not counted among the connections to a host.
///
/// What is asked for before the connection stands waits for it. Reads are answered in the order of the calls, and
/// writes leave in that order; each call is answered once, however the stream ends. The task is complete when both
/// sides are closed, when the connection breaks (with ``TransferError/Code/truncated``), or when it is cancelled. A
/// peer that closes its side alone does not complete it: close the other one. Under TLS a connection that was cut looks
/// like one that the peer closed (libcurl 7.88 does not tell the two apart), so that only the protocol spoken there can
/// say whether all has come (RFC 8446, section 6.1).
///
/// The session's `connectTimeout` holds for connecting and again for the TLS handshake, and its `stallTimeout` while
/// some read or write waits that has no time of its own; a stream that nobody waits for may be silent for ever. While
/// the task is suspended no call is answered and none of these times runs, save that for connecting.
public final class StreamTask: LoopTask {
    let core: TaskCore
    let session: Session
    let channel: StreamChannel
    /// The channel is a request's, and outlasts an attempt that does not connect.
    private let isShared: Bool

    init(_ request: TransferRequest, progress: TransferProgress, session: Session, channel: StreamChannel? = nil) {
        core = TaskCore(request, progress: progress)
        self.session = session
        self.channel = channel ?? StreamChannel()
        isShared = channel != nil
    }

    func makeRun(on loop: LoopCore) -> any LoopRun { StreamRun(task: self, core: loop) }

    func didEnd(_ error: TransferError?) {
        if !isShared || channel.hasConnected { channel.end(error) }
    }

    /// Bytes that came from the peer, read or not.
    public var bytesReceived: Int64 { channel.bytesReceived }
    /// Bytes that the system has taken for the peer.
    public var bytesSent: Int64 { channel.bytesSent }

    /// Bytes of one read at most.
    public static let longestRead = StreamChannel.longestRead
    /// Unread bytes that are held before the peer is made to wait; one buffer (256 KiB) may come on top.
    public static let heldLimit = StreamChannel.heldLimit

    // MARK: Reading and writing

    /// Reads what comes next. Several reads may wait: they are served in their order.
    ///
    /// Cancelling the Swift task that waits takes the read back, and its bytes are the next one's.
    ///
    /// - Parameters:
    ///   - least: bytes to wait for; 0: what is there by now. Fewer come at the end only.
    ///   - most: bytes to take, up to ``longestRead``.
    ///   - timeout: milliseconds, in the place of the session's `stallTimeout`. What has come by then stays for the
    ///     next read.
    /// - Returns: the bytes, and whether nothing follows them. After the end: no bytes, each time.
    /// - Throws: ``TransferError``: `timedOut` and `cancelled` for this call alone; `streamClosed` after
    ///   ``closeRead()``; otherwise why the connection ended.
    public func readData(
        ofMinLength least: Int = 1, maxLength most: Int = 65536, timeout: Int64? = nil
    ) async throws(TransferError) -> (data: [UInt8], atEOF: Bool) {
        let piece = try await channel.read(least: least, most: most, limit: timeout)
        return (piece.data, piece.atEOF)
    }

    /// Writes, after what was written before. Returns when the system has taken all of it, which a peer that does not
    /// read delays: await each write, and the memory that is held stays small.
    ///
    /// A write that waits behind others is taken back when its time is up or the Swift task is cancelled. One that has
    /// begun cannot be taken back, and the peer would take what followed for its rest: the task then fails with
    /// ``TransferError/Code/timedOut``, or is cancelled.
    ///
    /// - Parameters:
    ///   - bytes: what to write.
    ///   - timeout: milliseconds, in the place of the session's `stallTimeout`.
    /// - Throws: ``TransferError``: `streamClosed` after ``closeWrite()`` and after the end; otherwise why the
    ///   connection ended.
    public func write(_ bytes: [UInt8], timeout: Int64? = nil) async throws(TransferError) {
        try await channel.write(bytes, limit: timeout)
    }

    /// Takes nothing more from the peer, once the reads that were asked for before are answered. What has come and was
    /// not read is dropped.
    public func closeRead() { channel.closeRead() }

    /// Tells the peer that nothing more comes (FIN), once what was written before has gone. Reading goes on.
    ///
    /// Under TLS the FIN comes without close_notify, which peers may take for a truncation (RFC 8446, section 6.1):
    /// protocols under TLS should say in their own words that they are done.
    public func closeWrite() { channel.closeWrite() }

    /// The bytes from the peer, one by one, up to its end; see ``StreamBytes``.
    public var bytes: StreamBytes { StreamBytes(reader: StreamReader(channel: channel, isCaptured: false)) }

    // MARK: Becoming something else

    /// Starts TLS, once what was asked for before has been written and read; what is asked for after it waits for the
    /// handshake. The certificate is judged against the host of the URL, by the session's policy for it and by the
    /// closures that take challenges of server trust; both may refuse a peer whom the evaluation of its chain trusts,
    /// and cannot trust one whom that refuses.
    ///
    /// Await it before anything that is to travel under TLS.
    ///
    /// - Throws: ``TransferError``: `secureRefused` where plain text has come that was not read (it must not count as
    ///   said under TLS), where a side is closed, or where TLS is spoken already, as it is with an `https://` proxy.
    ///   The connection is as it was then, and what waited for the handshake fails with the same. Otherwise the
    ///   handshake failed, and with it the task: `tls`, `timedOut`.
    public func startSecureConnection() async throws(TransferError) { try await channel.pass(.secure) }

    /// Turns the task into a sequence of pieces and a writer, once what was asked for before is done; the delegate
    /// hears of it (`streamTaskDidBecomeInputAndOutputStreams`). From the call on, reads, writes and closes of the task
    /// itself are refused with `streamClosed`.
    ///
    /// The task goes on beneath them until the connection ends, and can be cancelled.
    public func captureStreams() async throws(TransferError) -> (reader: StreamReader, writer: StreamWriter) {
        try await channel.pass(.capture)
        return (StreamReader(channel: channel), StreamWriter(channel: channel))
    }
}

extension Session {
    /// A connection to make with `resume()`.
    ///
    /// - Parameters:
    ///   - host: a name or an address; IPv6 with or without brackets. A wrong one fails the task.
    ///   - port: 1 to 65535.
    ///   - progress: counts the bytes that came.
    public func streamTask(host: String, port: Int, progress: TransferProgress = TransferProgress()) -> StreamTask {
        streamTask(with: TransferRequest(url: StreamAddress.url(host: host, port: port)), progress: progress)
    }

    /// A connection to make with `resume()`.
    ///
    /// - Parameters:
    ///   - request: its URL is `tcp://host:port`; see ``StreamTask`` for what else of it counts.
    ///   - progress: counts the bytes that came.
    public func streamTask(
        with request: TransferRequest, progress: TransferProgress = TransferProgress()
    ) -> StreamTask {
        StreamTask(request, progress: progress, session: self)
    }
}
