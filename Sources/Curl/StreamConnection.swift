import CCurl
import CLinux

#if canImport(Glibc)
import Glibc
#endif

/// A raw connection to a host and port: bytes both ways, each side closed by itself, TLS now or later.
///
/// libcurl connects, through proxies too, and speaks TLS with all its checks; we watch the socket and move the bytes.
/// Lives on its loop's thread. Once it has ended every call is without effect.
package final class StreamConnection {
    /// The most that one stream reads, or writes, before others of the loop have their turn, in bytes.
    private static let turnLimit = 1 << 20
    /// What one TLS record holds (RFC 8446, section 5.1): more in one write would only report its progress later.
    private static let recordLimit = 1 << 14
    /// How long, in milliseconds, and for how many bytes a stream with both sides closed by us waits for the peer's.
    private static let lingerTime: Int64 = 2000
    private static let lingerLimit = 1 << 20

    package let id: Int
    package let peer: StreamPeer
    /// Whether bytes travel under TLS, if only as far as a proxy.
    package private(set) var isSecure = false
    /// What carries the bytes; good for questions about the connection.
    package internal(set) var easy: EasyHandle
    unowned let loop: LoopCore

    var state = StreamState()
    private var handler: (any StreamHandler)?
    private var queue: StreamBuffer
    /// A write was not taken whole, and its writer waits for room.
    private var wasRefused = false
    /// Bytes may lie in the TLS library, where epoll does not see them.
    private var mayHoldBytes = false
    private var isStirred = false
    private var descriptor: Int32 = -1
    private var lingered = 0
    private var lingerTimer: Int?
    /// For both handles.
    private let errorText = ErrorText()

    // See StreamConnection+TLS.swift.
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

    /// Sets what a stream depends on, whatever else its opener has set.
    func prepare(_ easy: inout EasyHandle, secure: Bool) throws(CurlError) {
        try easy.set(.url, to: peer.url(secure: secure))
        try easy.set(.connectOnly, to: true)
        try easy.set(.httpProxyTunnel, to: true)
        // The bytes are the caller's protocol, which need not be HTTP.
        try easy.set(.enableALPN, to: false)
        // With this libcurl leaves the process's handling of SIGPIPE alone; it sends with MSG_NOSIGNAL, under TLS too.
        try easy.set(.noSignal, to: true)
        // Of what one curl_easy_recv brings.
        try easy.set(.bufferSize, to: BufferPool.bufferSize)
        try errorText.attach(to: easy)
        // What a proxy says while it refuses must not go to standard output.
        let code = ccurl_set_data_callback(easy.raw, CURLOPT_WRITEFUNCTION) { _, size, count, _ in size * count }
        try CurlError.check(code)
    }

    /// Whether the handler lets it connect to an address.
    func allows(_ address: UnsafeRawBufferPointer) -> Bool { handler?.judge(address: address) ?? false }

    // MARK: What its owner asks for

    /// Queues bytes; they leave after this turn of the loop. What is written before the connection stands, or while
    /// TLS starts, leaves after that.
    ///
    /// - Returns: how many were taken; where it is less than all, ``StreamHandler/streamCanWrite(_:)`` follows.
    ///   0 once the write side is closed.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard state.acceptsWrites else { return 0 }
        let taken = queue.append(bytes)
        if taken < bytes.count { wasRefused = true }
        if taken > 0 { stir() }
        return taken
    }

    package func write(_ bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { write($0) } }

    /// How many bytes are queued; at most ``StreamBuffer/limit``.
    package var queuedBytes: Int { queue.count }

    /// Goes on reading after ``StreamHandler/stream(_:didReceive:)`` had answered `false`.
    package func resumeReading() {
        guard state.resumeReading() else { return }
        mayHoldBytes = isSecure
        stir()
    }

    /// Delivers nothing more. What the peer still sends is not read, and holds it up sooner or later.
    package func closeRead() {
        state.closeRead()
        stir()
    }

    /// Sends FIN after what is queued; reading goes on.
    ///
    /// Under TLS this is TCP's FIN after the last record, without close_notify: libcurl sends that only as it closes
    /// the connection. A peer that insists on it (RFC 8446, section 6.1) takes such an end for a truncation, so that
    /// protocols under TLS should say in their own words that they are done.
    package func closeWrite() {
        state.closeWrite()
        stir()
    }

    /// Ends the stream at once; its handler hears of it before this returns.
    package func cancel() { end(.cancelled) }

    // MARK: Connecting

    /// libcurl is done with one of the handles: with connecting, or with the handshake.
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
        stir()
    }

    /// Lets `easy` carry the bytes from now on; ends the stream where its connection is gone.
    private func carry() -> Bool {
        guard easy.claimConnection(), let socket = easy.socket() else {
            fail(CURLE_RECV_ERROR, easy.systemError())
            return false
        }
        descriptor = socket
        // There may be words about an address that did not answer before another one did.
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
        // Only its own descriptor: the connection lives on in the other one, since libcurl closes and never shuts down.
        loop.leave(handle)
        guard carry() else { return }
        state.endUpgrade()
        handler?.streamDidSecure(self)
        stir()
    }

    // MARK: Moving bytes

    /// Has ``turn()`` called before the loop sleeps.
    func stir() {
        guard !isStirred, state.phase != .closed else { return }
        isStirred = true
        loop.streams.stir(self)
    }

    /// Does what was asked for since the last turn.
    func turn() {
        isStirred = false
        if mayHoldBytes { receive() }
        flush()
        settle()
    }

    private func receive() {
        mayHoldBytes = false
        guard state.receives else { return }
        let buffer = loop.buffers.take()
        defer { loop.buffers.give(buffer) }
        var left = Self.turnLimit
        while state.receives {
            guard left > 0 else {
                // For plain text epoll asks again.
                mayHoldBytes = isSecure
                if isSecure { stir() }
                return
            }
            let (code, count) = easy.receive(into: buffer)
            if code == CURLE_AGAIN { return }
            guard code == CURLE_OK else { return receiveDidFail(code) }
            guard count > 0 else { return peerDidClose() }
            left -= count
            deliver(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            // The socket was emptied most likely, and epoll knows.
            if !isSecure, count < buffer.count { return }
        }
    }

    private func receiveDidFail(_ code: CURLcode) {
        let systemError = easy.systemError()
        // A TLS peer that answers our FIN with a bare one: no one waits for bytes that might be missing.
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
            // What the peer said before it hung up may be why.
            receive()
            return fail(failure, systemError)
        }
        if wasRefused, queue.count <= StreamBuffer.limit / 2, state.acceptsWrites {
            wasRefused = false
            handler?.streamCanWrite(self)
        }
        if queue.isEmpty, state.sends, state.write == .closing {
            _ = shutdown(descriptor, Int32(SHUT_WR))  // fails after a reset, of which reading tells
            state.writeClosed()
        }
    }

    // MARK: Watching

    /// Ends or lingers where the state says so, and tells epoll what to look for.
    private func settle() {
        switch state.step {
        case .finish: return end(.finished)
        case .linger: linger()
        case .goOn: break
        }
        watch()
    }

    private func linger() {
        state.beganLingering()
        mayHoldBytes = isSecure
        if isSecure { stir() }
        lingerTimer = loop.after(milliseconds: Self.lingerTime) { [weak self] in self?.end(.finished) }
    }

    private func watch() {
        guard state.phase == .open || state.phase == .lingering else { return }
        var mask: UInt32 = 0
        if state.receives { mask |= LINUX_EPOLLIN }
        if state.sends, !queue.isEmpty { mask |= LINUX_EPOLLOUT }
        // epoll tells of a hang-up whatever the mask, again and again: where there is nothing to do it must not look.
        loop.register(descriptor, mask: mask == 0 ? nil : mask, watcher: mask == 0 ? nil : self)
    }

    func stopWatching() {
        if descriptor >= 0 { loop.register(descriptor, mask: nil, watcher: nil) }
    }

    /// Whether plain text waits in the socket that was not read; `nil` where the peer is gone.
    func hasUnreadBytes() -> Bool? {
        var byte: UInt8 = 0
        let count = recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count > 0 { return true }
        return count < 0 && (errno == EAGAIN || errno == EINTR) ? false : nil
    }

    /// Another descriptor of the same connection, for the caller to close.
    func duplicateDescriptor() -> Int32 { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }

    // MARK: The end

    private func fail(_ code: CURLcode, _ systemError: Int32) {
        end(.failed(CurlError(code, message: errorText.text), systemError: systemError))
    }

    /// libcurl failed at all that is on the loop.
    func loopDidFail(_ error: CurlError) { end(.failed(error, systemError: 0)) }

    private func end(_ ending: StreamEnding) {
        guard state.close() else { return }
        if let lingerTimer { loop.cancelTimer(lingerTimer) }
        // Before libcurl closes it: its number may be another's in the next moment.
        stopWatching()
        queue.release()
        leaveUpgrade()
        loop.leave(easy.raw, of: self)
        loop.remove(self)
        let listener = handler
        handler = nil
        listener?.streamDidEnd(self, ending)
    }
}

extension StreamConnection: DescriptorWatcher {
    func descriptorIsReady(_ mask: UInt32) {
        // First what came in: it may tell why nothing goes out.
        if mask & (LINUX_EPOLLIN | LINUX_EPOLLHUP | LINUX_EPOLLERR) != 0 { receive() }
        if mask & (LINUX_EPOLLOUT | LINUX_EPOLLHUP | LINUX_EPOLLERR) != 0 { flush() }
        settle()
    }
}
