import CCurl
import CLinux

#if canImport(Glibc)
import Glibc
#endif

/// A raw connection to a host and port, with bytes in both directions, sides that close independently, and TLS from the
/// start or later.
///
/// libcurl connects, also through proxies, and does TLS with all its checks. This class watches the socket and moves
/// the bytes. It lives on its loop's thread. Once the stream has ended, calls have no effect.
package final class StreamConnection {
    /// The most bytes that one stream reads, or writes, before other streams of the loop have their turn.
    private static let turnLimit = 1 << 20
    /// The most bytes of one TLS record (RFC 8446, section 5.1). A larger write would only report its progress later.
    private static let recordLimit = 1 << 14
    /// The time in milliseconds, and the number of bytes, for which a stream waits for the peer to close after it has
    /// closed both its own sides.
    private static let lingerTime: Int64 = 2000
    private static let lingerLimit = 1 << 20

    package let id: Int
    package let peer: StreamPeer
    /// Whether bytes are sent under TLS, even if only as far as a proxy.
    package private(set) var isSecure = false
    /// The handle that carries the bytes; usable for queries about the connection.
    package internal(set) var easy: EasyHandle
    unowned let loop: LoopCore

    var state = StreamState()
    private var handler: (any StreamHandler)?
    private var queue: StreamBuffer
    /// Whether a write was not accepted in full and its writer waits for room.
    private var wasRefused = false
    /// Whether the TLS library may hold bytes, which epoll does not report.
    private var mayHoldBytes = false
    private var isWakePending = false
    private var descriptor: Int32 = -1
    private var lingered = 0
    private var lingerTimer: Int?
    /// The error buffer of both handles.
    private let errorText = ErrorText()

    // The handle and the socket of a TLS handshake: see StreamConnection+TLS.swift.
    var upgrade: EasyHandle?
    var upgradeDescriptor: Int32 = -1

    init(id: Int, peer: StreamPeer, handler: any StreamHandler, loop: LoopCore) throws(CurlError) {
        self.id = id
        self.peer = peer
        self.handler = handler
        self.loop = loop
        queue = StreamBuffer(pool: loop.buffers)
        easy = try EasyHandle()
    }

    deinit { errorText.detach(from: easy) }

    /// Sets the options that a stream requires, whatever options its opener has set.
    func prepare(_ easy: inout EasyHandle, secure: Bool) throws(CurlError) {
        try easy.set(.url, to: peer.url(secure: secure))
        try easy.set(.connectOnly, to: true)
        try easy.set(.httpProxyTunnel, to: true)
        // The bytes belong to the caller's protocol, which need not be HTTP.
        try easy.set(.enableALPN, to: false)
        // libcurl then does not change the process's handling of SIGPIPE; it sends with MSG_NOSIGNAL, under TLS too.
        try easy.set(.noSignal, to: true)
        // This is the size of one curl_easy_recv.
        try easy.set(.bufferSize, to: BufferPool.bufferSize)
        try errorText.attach(to: easy)
        // The body of a proxy's refusal must not be written to standard output.
        let code = ccurl_set_data_callback(easy.raw, CURLOPT_WRITEFUNCTION) { _, size, count, _ in size * count }
        try CurlError.check(code)
    }

    /// Whether the handler permits connecting to an address.
    func allows(_ address: UnsafeRawBufferPointer) -> Bool { handler?.evaluate(address: address) ?? false }

    // MARK: The owner's calls

    /// Queues bytes, which are sent after this turn of the loop. Bytes written before the connection is established, or
    /// while TLS starts, are sent after that.
    ///
    /// - Returns: the number of bytes queued. If it is less than all, ``StreamHandler/streamCanWrite(_:)`` follows. 0
    ///   once the write side is closed.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard state.acceptsWrites else { return 0 }
        let taken = queue.append(bytes)
        if taken < bytes.count { wasRefused = true }
        if taken > 0 { wake() }
        return taken
    }

    package func write(_ bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { write($0) } }

    /// The number of queued bytes, at most ``StreamBuffer/limit``.
    package var queuedBytes: Int { queue.count }

    /// Resumes reading after ``StreamHandler/stream(_:didReceive:)`` has returned `false`.
    package func resumeReading() {
        guard state.resumeReading() else { return }
        mayHoldBytes = isSecure
        wake()
    }

    /// Stops delivering bytes. Bytes that the peer still sends are not read, which blocks the peer sooner or later.
    package func closeRead() {
        state.closeRead()
        wake()
    }

    /// Sends FIN after the queued bytes; reading continues.
    ///
    /// Under TLS this is TCP's FIN after the last record, without close_notify: libcurl sends that only when it closes
    /// the connection. A peer that insists on close_notify (RFC 8446, section 6.1) takes such an end for a truncation.
    /// A protocol under TLS should therefore signal its own end.
    package func closeWrite() {
        state.closeWrite()
        wake()
    }

    /// Ends the stream at once; its handler is notified before this returns.
    package func cancel() { end(.cancelled) }

    // MARK: Connecting

    /// Handles the completion of one of the handles: of connecting or of the handshake.
    func handleDidFinish(_ raw: UnsafeMutableRawPointer, _ result: CURLcode) {
        switch state.phase {
        case .connecting: didConnect(result)
        case .upgrading: didUpgrade(result)
        case .open, .lingering, .closed: break
        }
    }

    private func didConnect(_ result: CURLcode) {
        guard result == CURLE_OK else { return fail(result, easy.systemError()) }
        guard carry() else { return }
        state.connected()
        handler?.streamDidConnect(self)
        wake()
    }

    /// Makes `easy` carry the bytes from now on. Ends the stream if the handle's connection is gone.
    private func carry() -> Bool {
        guard easy.claimConnection(), let socket = easy.socket() else {
            fail(CURLE_RECV_ERROR, easy.systemError())
            return false
        }
        descriptor = socket
        // The buffer may contain a message about an address that failed before another one succeeded.
        errorText.clear()
        isSecure = easy.carriesTLS()
        mayHoldBytes = isSecure
        return true
    }

    private func didUpgrade(_ result: CURLcode) {
        guard result == CURLE_OK else { return fail(result, upgrade?.systemError() ?? 0) }
        guard var handle = upgrade.take() else { return }
        descriptor = -1
        swap(&easy, &handle)
        // Only its own descriptor is closed. The connection lives on through the other one, since libcurl closes
        // sockets without shutting them down.
        loop.leaveBehind(handle)
        guard carry() else { return }
        state.endUpgrade()
        handler?.streamDidSecure(self)
        wake()
    }

    // MARK: Moving bytes

    /// Schedules ``turn()`` before the loop sleeps.
    func wake() {
        guard !isWakePending, state.phase != .closed else { return }
        isWakePending = true
        loop.streams.wake(self)
    }

    /// Does the work requested since the last turn.
    func turn() {
        isWakePending = false
        if mayHoldBytes { receive() }
        flush()
        settle()
    }

    private func receive() {
        mayHoldBytes = false
        guard state.receives else { return }
        let buffer = loop.buffers.acquire()
        defer { loop.buffers.release(buffer) }
        var left = Self.turnLimit
        while state.receives {
            guard left > 0 else {
                // For plain text, epoll reports the socket again.
                mayHoldBytes = isSecure
                if isSecure { wake() }
                return
            }
            let (code, count) = easy.receive(into: buffer)
            if code == CURLE_AGAIN { return }
            guard code == CURLE_OK else { return receiveDidFail(code) }
            guard count > 0 else { return peerDidClose() }
            left -= count
            deliver(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            // The socket was most likely emptied; otherwise epoll reports it again.
            if !isSecure, count < buffer.count { return }
        }
    }

    private func receiveDidFail(_ code: CURLcode) {
        let systemError = easy.systemError()
        // A TLS peer may respond to this side's FIN with FIN alone, without close_notify. Nobody waits for bytes that
        // could be missing.
        if state.phase == .lingering, systemError == 0 { return end(.finished) }
        fail(code, systemError)
    }

    private func deliver(_ bytes: UnsafeRawBufferPointer) {
        if state.phase == .lingering {
            lingered += bytes.count
            if lingered > Self.lingerLimit { end(.finished) }
        } else if handler?.stream(self, didReceive: bytes) == false {
            state.pauseReading()
        }
    }

    private func peerDidClose() {
        let wasLingering = state.phase == .lingering
        state.peerClosed()
        if !wasLingering { handler?.streamDidCloseRead(self) }
    }

    private func flush() {
        guard state.sends else { return }
        var sent = 0
        var failure: CURLcode?
        while !queue.isEmpty, sent < Self.turnLimit, failure == nil {
            let piece = queue.front(atMost: isSecure ? Self.recordLimit : queue.count)
            let (code, count) = easy.send(piece)
            if code == CURLE_AGAIN {
                if isSecure { queue.freeze(piece.count) }
                break
            }
            if code == CURLE_OK {
                sent += count
                queue.didSend(count)
            } else {
                failure = code
            }
        }
        if sent > 0 { handler?.stream(self, didWrite: sent) }
        if let failure {
            let systemError = easy.systemError()
            // Data that the peer sent before it closed may explain the failure.
            receive()
            return fail(failure, systemError)
        }
        if wasRefused, queue.count <= StreamBuffer.limit / 2, state.acceptsWrites {
            wasRefused = false
            handler?.streamCanWrite(self)
        }
        if queue.isEmpty, state.sends, state.write == .closing {
            _ = shutdown(descriptor, Int32(SHUT_WR))  // fails after a reset, which reading reports
            state.writeClosed()
        }
    }

    // MARK: Watching

    /// Ends the stream or starts lingering if the state requires it, and sets the events that epoll watches for.
    private func settle() {
        switch state.step {
        case .finish: return end(.finished)
        case .linger: linger()
        case .resume: break
        }
        watch()
    }

    private func linger() {
        state.beganLingering()
        mayHoldBytes = isSecure
        if isSecure { wake() }
        lingerTimer = loop.after(milliseconds: Self.lingerTime) { [weak self] in self?.end(.finished) }
    }

    private func watch() {
        guard state.phase == .open || state.phase == .lingering else { return }
        var mask: UInt32 = 0
        if state.receives { mask |= LINUX_EPOLLIN }
        if state.sends, !queue.isEmpty { mask |= LINUX_EPOLLOUT }
        // epoll reports a hang-up whatever the mask, and repeatedly. With nothing to do, the socket must not be
        // watched.
        loop.register(descriptor, mask: mask == 0 ? nil : mask, watcher: mask == 0 ? nil : self)
    }

    func stopWatching() {
        if descriptor >= 0 { loop.register(descriptor, mask: nil, watcher: nil) }
    }

    /// Whether unread plain text waits in the socket; `nil` if the peer has closed or the connection has failed.
    func hasUnreadBytes() -> Bool? {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count > 0 { return true }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? false : nil
    }

    /// Returns a duplicate descriptor of the same connection, which the caller closes.
    func duplicateDescriptor() -> Int32 { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }

    // MARK: Ending

    private func fail(_ code: CURLcode, _ systemError: Int32) {
        end(.failed(CurlError(code, message: errorText.text), systemError: systemError))
    }

    /// Ends the stream because libcurl failed for all transfers of the loop.
    func loopDidFail(_ error: CurlError) { end(.failed(error, systemError: 0)) }

    private func end(_ ending: StreamEnding) {
        guard state.close() else { return }
        if let lingerTimer { loop.cancelTimer(lingerTimer) }
        // This precedes libcurl's close, after which the descriptor's number may be reused at once.
        stopWatching()
        queue.release()
        leaveUpgrade()
        loop.leaveBehind(easy.raw, of: self)
        loop.remove(self)
        let listener = handler
        handler = nil
        listener?.streamDidEnd(self, ending)
    }
}

extension StreamConnection: DescriptorWatcher {
    func descriptorIsReady(_ mask: UInt32) {
        // Input is handled first, since it may explain why nothing can be sent.
        if mask & (LINUX_EPOLLIN | LINUX_EPOLLHUP | LINUX_EPOLLERR) != 0 { receive() }
        if mask & (LINUX_EPOLLOUT | LINUX_EPOLLHUP | LINUX_EPOLLERR) != 0 { flush() }
        settle()
    }
}
