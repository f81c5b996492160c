import CCurl

#if canImport(Glibc)
import Glibc
#endif

/// TLS that starts on a connection which has carried plain text.
///
/// A second handle gets a duplicate of the socket, marked as already connected. libcurl then does the TLS handshake
/// with all its checks, against the stream's own host. The first handle keeps the connection until the handshake has
/// succeeded. (libcurl 7.88.1 calls `connect` nevertheless. Linux returns success without doing anything for the first
/// such call after a non-blocking connect, and all of libcurl's connects are non-blocking. The handle is therefore set
/// to the address that the socket is connected to, which needs no look-up either.)
extension StreamConnection {
    /// Starts TLS. Nothing is read from now on until ``StreamHandler/streamDidSecure(_:)``; a failed handshake ends the
    /// stream.
    ///
    /// All bytes read so far have been passed to the handler. A caller that buffers any of them must not call this
    /// before it has processed them, and must not treat them as received under TLS.
    ///
    /// - Parameter configure: sets certificates and the time limit; the host's name and the proxies stay as they are.
    package func startTLS(
        configure: (inout EasyHandle) throws(CurlError) -> Void = { (_: inout EasyHandle) throws(CurlError) in }
    ) throws(StartTLSRefusal) {
        guard state.phase == .open else { throw .notOpen }
        guard !isSecure else { throw .alreadySecure }
        guard queuedBytes == 0 else { throw .unsentBytes }
        guard let isUnread = hasUnreadBytes() else { throw .notOpen }
        guard !isUnread else { throw .unreadBytes }
        guard state.beginUpgrade() else { throw .notOpen }
        // epoll watches the connection, not the descriptor. A remaining registration would report the duplicate's
        // events as well.
        stopWatching()
        do throws(CurlError) {
            try beginHandshake(configure)
        } catch {
            leaveUpgrade()
            state.endUpgrade()
            wake()
            throw .failed(error)
        }
    }

    private func beginHandshake(_ configure: (inout EasyHandle) throws(CurlError) -> Void) throws(CurlError) {
        var handle = try EasyHandle()
        try configure(&handle)
        try prepare(&handle, secure: true)
        // This connection already includes the tunnel, if there is a proxy.
        try handle.set(.proxy, to: "")
        guard let address = easy.connectedAddress() else { throw CurlError(CURLE_COULDNT_CONNECT) }
        try handle.setConnectTo(HeaderList(["::\(address)"]))
        let context = Unmanaged.passUnretained(self).toOpaque()
        // The pointer is valid: the handle leaves its multi handle before the stream is freed.
        let opened = ccurl_set_open_socket_callback(
            handle.raw,
            { context, _, _ in
                guard let context else { return -1 }
                return Unmanaged<StreamConnection>.fromOpaque(context)._withUnsafeGuaranteedRef {
                    $0.takeUpgradeDescriptor()
                }
            }, context)
        try CurlError.check(opened)
        let marked = ccurl_set_socket_option_callback(
            handle.raw, { _, _, _ in Int32(CURL_SOCKOPT_ALREADY_CONNECTED) }, nil)
        try CurlError.check(marked)
        upgradeDescriptor = duplicateDescriptor()
        guard upgradeDescriptor >= 0 else { throw CurlError(CURLE_COULDNT_CONNECT) }
        let raw = handle.raw
        upgrade = consume handle
        try loop.enter(raw, of: self)
    }

    /// Passes ownership of the duplicate to libcurl.
    ///
    /// - Returns: the descriptor; −1 from the second call on.
    private func takeUpgradeDescriptor() -> Int32 {
        defer { upgradeDescriptor = -1 }
        return upgradeDescriptor
    }

    /// Releases the handle and the duplicate of the handshake.
    func leaveUpgrade() {
        if let handle = upgrade.take() { loop.leaveBehind(handle) }
        // The descriptor is a duplicate, so the connection's own stays open.
        if upgradeDescriptor >= 0 { _ = close(upgradeDescriptor) }
        upgradeDescriptor = -1
    }
}
