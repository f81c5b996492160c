import CCurl

#if canImport(Glibc)
import Glibc
#endif

/// TLS that starts on a connection which has carried plain text.
///
/// A second handle gets a duplicate of the socket and is told that it is connected already; libcurl then shakes hands
/// with all its checks, against the stream's own host. The first handle keeps the connection until that has succeeded.
/// (libcurl 7.88.1 calls `connect` nevertheless, which Linux answers with success the first time after a connect
/// without blocking, such as every one of libcurl's, and does nothing. Hence the address that it is connected to,
/// which needs no look-up either.)
extension StreamConnection {
    /// Starts TLS. Nothing is read from now on until ``StreamHandler/streamDidSecure(_:)``; a handshake that fails ends
    /// the stream.
    ///
    /// All that was read so far has gone to the handler: whoever keeps any of it must not call this before it has
    /// found its place, nor take it for something said under TLS.
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
        // epoll follows the connection, not the descriptor: left there it would report the duplicate's events as well.
        stopWatching()
        do throws(CurlError) {
            try beginHandshake(configure)
        } catch {
            leaveUpgrade()
            state.endUpgrade()
            stir()
            throw .failed(error)
        }
    }

    private func beginHandshake(_ configure: (inout EasyHandle) throws(CurlError) -> Void) throws(CurlError) {
        var handle = try EasyHandle()
        try configure(&handle)
        try prepare(&handle, secure: true)
        // The tunnel, where there is one, is this connection.
        try handle.set(.proxy, to: "")
        guard let address = easy.connectedAddress() else { throw CurlError(CURLE_COULDNT_CONNECT) }
        try handle.setConnectTo(HeaderList(["::\(address)"]))
        let context = Unmanaged.passUnretained(self).toOpaque()
        // The pointer is good: the handle leaves its multi before the stream goes.
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

    /// - Returns: the descriptor, now libcurl's; −1 the second time.
    private func takeUpgradeDescriptor() -> Int32 {
        defer { upgradeDescriptor = -1 }
        return upgradeDescriptor
    }

    /// Gives up what the handshake had.
    func leaveUpgrade() {
        if let handle = upgrade.take() { loop.leave(handle) }
        // A duplicate: the connection's own descriptor stays open.
        if upgradeDescriptor >= 0 { _ = close(upgradeDescriptor) }
        upgradeDescriptor = -1
    }
}
