import CCurl
import CLinux

/// A request with its response on a loop: a new easy handle and its handler.
///
/// The exchange lives on its loop's thread from creation to end.
package final class Exchange {
    package let id: Int
    // Used several times for each line of a head. No access to it calls code that leads back to the exchange.
    @exclusivity(unchecked) package var easy: EasyHandle
    package let handler: any ExchangeHandler
    /// The times by which a stall is detected.
    @exclusivity(unchecked) package var activity: ExchangeActivity
    /// The directions that the handler has paused, in which no byte is expected.
    var pausedDirections: Int32 = 0
    /// Whether the handler was notified of the end; it receives no further calls.
    var hasEnded = false
    unowned let loop: LoopCore
    private let mark: CallMark
    private let clock: LoopClock
    /// The state of ``watches(_:)``.
    var watch = ExchangeWatch()
    /// The latest socket that libcurl used for the exchange.
    var socket: SocketIdentity?
    /// Whether libcurl continues to watch the exchange's socket during a pause. The loop then has to ignore that
    /// socket, because its events would be reported repeatedly and never handled.
    var watchesWhilePaused = false
    /// Whether the exchange's connection gets a ``ReceiptLimit``.
    var limitsReceipts = false
    /// The limit of the exchange's connection.
    var receipts: ReceiptLimit?
    /// The number of body bytes that the handler has accepted.
    @exclusivity(unchecked) private var delivered: Int64 = 0
    /// The number of bytes that the peer had acknowledged at the last check.
    private var acknowledged: UInt64 = 0
    /// Whether the exchange has called its handler for bytes to send.
    private(set) var hasAskedForBytes = false
    /// The state of the watchdog: see ``StallWatch``.
    var suspicion = StallWatch()
    /// Whether the peer has not sent TLS's close_notify. Set only for an exchange that ``watchesEndOfTLS()``, and never
    /// with a TLS library other than OpenSSL.
    package private(set) var lacksEndOfTLS = false
    private var overhead = WireOverhead()
    private let errorText = ErrorText()
    /// The sockets that libcurl has opened for the exchange.
    private var openedSockets: [Int32] = []
    /// The socket of the connection on which the request was sent; `nil` before that, and if it is unknown.
    private(set) var connection: SocketIdentity?
    /// Whether the handler cannot go on over another connection than the present one.
    package var staysOnConnection = false
    /// The checks of a connection before the request is sent on it.
    private var connectionChecks: ConnectionChecks = []
    /// Whether a connection was refused because of ``refusesUnaskedInput()``.
    package private(set) var hasUnaskedInput = false

    /// The checks of a connection before a byte of the request is sent.
    private struct ConnectionChecks: OptionSet {
        let rawValue: Int
        static let input = ConnectionChecks(rawValue: 1)
        static let address = ConnectionChecks(rawValue: 2)
        static let certificates = ConnectionChecks(rawValue: 4)
    }

    init(id: Int, handler: any ExchangeHandler, loop: LoopCore) throws(CurlError) {
        self.id = id
        self.handler = handler
        self.loop = loop
        mark = loop.mark
        clock = loop.clock
        activity = ExchangeActivity(now: loop.now)
        easy = try EasyHandle()
        try errorText.attach(to: easy)
        let context = Unmanaged.passUnretained(self).toOpaque()
        for option in [CURLOPT_PRIVATE, CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_READDATA] {
            try CurlError.check(ccurl_set_pointer(easy.raw, option, context))
        }
        try CurlError.check(ccurl_set_data_callback(easy.raw, CURLOPT_WRITEFUNCTION, Self.write))
        try CurlError.check(ccurl_set_data_callback(easy.raw, CURLOPT_HEADERFUNCTION, Self.header))
        try CurlError.check(ccurl_set_data_callback(easy.raw, CURLOPT_READFUNCTION, Self.read))
        try CurlError.check(ccurl_set_seek_callback(easy.raw, Self.seek, context))
        try CurlError.check(ccurl_set_socket_option_callback(easy.raw, Self.socketMade, context))
        try CurlError.check(ccurl_set_prerequest_callback(easy.raw, Self.prerequest, context))
    }

    deinit { errorText.detach(from: easy) }

    /// libcurl's message on the failure; `nil` if it has none.
    package var failureText: String? { errorText.text }

    /// Lets the handler decide on a connection's server certificates before a byte of the request is sent
    /// (``ExchangeHandler/evaluate(_:on:)``).
    package func evaluatesCertificates() throws(CurlError) {
        try easy.set(.certificateInformation, to: true)
        connectionChecks.insert(.certificates)
    }

    /// Lets the handler decide on the address of each connection, a reused one too, before a byte of the request is sent
    /// (``ExchangeHandler/evaluate(connectedAddress:on:)``).
    package func evaluatesConnectedAddresses() { connectionChecks.insert(.address) }

    /// Refuses a connection on which the peer speaks first: what it has sent would be taken for the response. A kept
    /// connection that the peer has ended is refused too. HTTP/2 is exempt, where the server may send at any time, and
    /// each response carries the number of its request.
    package func refusesUnaskedInput() { connectionChecks.insert(.input) }

    /// Closes the connection after the response if further bytes follow it. libcurl 7.88 drops those behind a response
    /// without a body, or behind the last chunk, and keeps the connection. Its message is the only sign. Call it within
    /// ``ExchangeHandler/receiveHeader(_:on:)``, when the head of such a response is complete.
    package func closesAfterExcess() {
        // At worst the connection is kept.
        _ = ccurl_set_debug_callback(easy.raw, Self.message, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Records that the final head of the response is complete.
    package func recordHead() { activity.headCompleted() }

    /// Checks how the connection ends, for a response that ends with its connection. libcurl 7.88 takes a TCP FIN for
    /// an orderly end within TLS too, and anyone on the network can send one. Call it when the head is complete.
    package func watchesEndOfTLS() {
        lacksEndOfTLS = false
        // libcurl runs the callback once more at the end, while the exchange still owns the connection. Setting it
        // fails for no supported option.
        _ = ccurl_set_progress_callback(easy.raw, Self.tlsProgress, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Returns whether the exchange has stalled. Call it periodically.
    func isStalled() -> Bool {
        recordAcknowledged()
        guard pausedDirections == 0 else {
            activity.paused()
            return false
        }
        return activity.isStalled(at: loop.now)
    }

    /// Counts acknowledged bytes of an upload as activity. On a slow path, libcurl hands bytes to the kernel long
    /// before they are sent.
    private func recordAcknowledged() {
        guard hasAskedForBytes, let count = socket?.acknowledged, count != acknowledged else { return }
        acknowledged = count
        activity.bytesSent(at: loop.now)
    }

    private func didPause(_ direction: Int32) {
        pausedDirections |= direction
        if watchesWhilePaused, let socket { loop.mute(socket.descriptor) }
        if direction == CURLPAUSE_RECV, let connection, easy.usesHTTP2() {
            loop.pausedStreams.pause(id, on: connection, at: clock.now, stays: staysOnConnection)
        }
    }

    /// The number of bytes of the body that libcurl has read and not handed over.
    var keptBytes: Int64 { max(0, easy.receivedBytes() - delivered) }

    /// Ends the pause of both directions. Call it from outside libcurl's callbacks.
    package func unpause() {
        guard pausedDirections != 0 else { return }
        pausedDirections = 0
        loop.pausedStreams.end(id)
        if watchesWhilePaused, let socket { loop.unmute(socket.descriptor) }
        activity.resumed(at: loop.now)
        setPause(CURLPAUSE_CONT)
        loop.scheduleWatch()
    }

    /// Sets libcurl's pause flags, and makes the loop end the exchange if libcurl fails.
    ///
    /// libcurl 7.88 delivers the bytes that it held back within `curl_easy_pause`. If a callback refuses them, the
    /// function returns the error and schedules nothing. If that error were ignored, the exchange would hang until its
    /// connect timer fires.
    func setPause(_ flags: Int32) {
        let code = loop.mark.inside {
            let code = curl_easy_pause(easy.raw, flags)
            return code
        }
        // A transfer without a connection (CURLE_BAD_FUNCTION_ARGUMENT) has nothing to pause: libcurl proceeds with it
        // by itself.
        if code != CURLE_OK, code != CURLE_BAD_FUNCTION_ARGUMENT { loop.willFail(self, CurlError(code)) }
    }

    // The pointer is valid: an exchange leaves its handle, and the handle its multi handle, before either is freed.

    private static let write: ccurl_data_callback = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            let isInside = exchange.mark.exit()
            defer { if isInside { exchange.mark.enter() } }
            guard !exchange.hasEnded else { return Int(UInt32.max) }
            let length = size * count
            exchange.activity.bodyReceived(length, at: exchange.clock.now)
            exchange.receipts?.recordReceived(length)
            if length <= WireOverhead.tiny { exchange.watchOverhead(length) }
            switch exchange.handler.receive(UnsafeRawBufferPointer(start: bytes, count: length), on: exchange) {
            case .accepted:
                exchange.delivered += Int64(length)
                return length
            case .refused: return Int(UInt32.max)
            case .paused:
                exchange.didPause(CURLPAUSE_RECV)
                return Int(CURL_WRITEFUNC_PAUSE)
            }
        }
    }

    /// Records a tiny piece of the body, and makes the loop end the exchange if the peer sends little else than what
    /// libcurl passes over. Several streams of HTTP/2 share a connection, so that its bytes tell nothing there.
    private func watchOverhead(_ length: Int) {
        guard overhead.record(length), let received = socket?.received, overhead.isExcessive(received: received),
            let version = easy.timing().httpVersion, version == .http10 || version == .http11
        else { return }
        // The piece is delivered all the same: the part of a file that is kept has no gap.
        loop.willFail(self, CurlError(ofFlood: CurlError(CURLE_RECV_ERROR)))
    }

    private static let header: ccurl_data_callback = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            let isInside = exchange.mark.exit()
            defer { if isInside { exchange.mark.enter() } }
            guard !exchange.hasEnded else { return Int(UInt32.max) }
            exchange.activity.headerLineReceived(at: exchange.clock.now)
            let length = size * count
            let line = UnsafeRawBufferPointer(start: bytes, count: length)
            return exchange.handler.receiveHeader(line, on: exchange) ? length : Int(UInt32.max)
        }
    }

    private static let seek: curl_seek_callback = { context, offset, origin in
        guard let context, origin == 0 else { return CURL_SEEKFUNC_CANTSEEK }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            !exchange.hasEnded && exchange.handler.rewind(to: Int64(offset)) ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL
        }
    }

    private static let read: ccurl_data_callback = { bytes, size, count, context in
        guard let bytes, let context else { return Int(CURL_READFUNC_ABORT) }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            let isInside = exchange.mark.exit()
            defer { if isInside { exchange.mark.enter() } }
            guard !exchange.hasEnded else { return Int(CURL_READFUNC_ABORT) }
            exchange.activity.bytesSent(at: exchange.clock.now)
            exchange.hasAskedForBytes = true
            let space = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            switch exchange.handler.fill(space, on: exchange) {
            case .filled(let count):
                exchange.receipts?.recordSent(count)
                return count
            case .failed: return Int(CURL_READFUNC_ABORT)
            case .paused:
                exchange.didPause(CURLPAUSE_SEND)
                return Int(CURL_READFUNC_PAUSE)
            }
        }
    }

    /// The number of unsent bytes that the kernel may buffer, beyond those in flight. With more, bytes would count as
    /// sent long before they are, and a stall could not be distinguished from a slow path.
    private static let unsentLimit: UInt32 = 128 << 10

    private static let socketMade: curl_sockopt_callback = { context, socket, _ in
        _ = linux_tcp_limit_unsent(socket, unsentLimit)  // fails for a socket other than TCP
        if let context {
            Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
                if !exchange.openedSockets.contains(socket) { exchange.openedSockets.append(socket) }
            }
        }
        return CURL_SOCKOPT_OK
    }

    private static let message: curl_debug_callback = { _, kind, bytes, count, context in
        guard kind == CURLINFO_TEXT, let context, let bytes else { return 0 }
        let text = UnsafeRawBufferPointer(start: bytes, count: count)
        guard text.starts(with: "Excess found".utf8) || text.starts(with: "Leftovers after chunking".utf8) else {
            return 0
        }
        Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            try? exchange.easy.set(.forbidReuse, to: true)
        }
        return 0
    }

    private static let tlsProgress: curl_xferinfo_callback = { context, _, _, _, _ in
        guard let context else { return 1 }
        Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            exchange.lacksEndOfTLS = ccurl_has_tls_ended(exchange.easy.raw) == 0
        }
        return 0
    }

    /// Finds the connection's socket.
    ///
    /// - Returns: whether the connection was opened for this exchange.
    private func didConnect(between ends: ConnectionSockets.Ends) -> Bool {
        if let opened = openedSockets.first(where: { linux_local_port($0) == ends.localPort }) {
            let socket = SocketIdentity(opened)
            connection = socket
            loop.connections.record(socket, between: ends)
            return true
        }
        connection = loop.connections[ends]
        return connection == nil && !openedSockets.isEmpty
    }

    /// Returns whether the peer has spoken before the request was sent, or has ended a kept connection.
    private func hasInput(isNew: Bool) -> Bool {
        if ccurl_has_chosen_http2(easy.raw) != 0 { return false }
        // In TLS 1.3, the server's tickets follow the handshake, and only OpenSSL can tell them from a response.
        if isNew, ccurl_carries_tls(easy.raw) != 0 { return false }
        if ccurl_holds_tls_input(easy.raw) != 0 { return true }
        guard let socket = connection?.descriptor else { return !isNew }
        let input = linux_peek(socket)
        return input > 0 || (input < 0 && !isNew)
    }

    private static let prerequest: curl_prereq_callback = { context, address, local, port, localPort in
        guard let context else { return CURL_PREREQFUNC_ABORT }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            guard !exchange.hasEnded else { return CURL_PREREQFUNC_ABORT }
            let isNew = exchange.didConnect(
                between: ConnectionSockets.Ends(
                    local: local.map { String(cString: $0) } ?? "", localPort: localPort,
                    peer: address.map { String(cString: $0) } ?? "", peerPort: port))
            if exchange.connectionChecks.contains(.input), exchange.hasInput(isNew: isNew) {
                exchange.hasUnaskedInput = true
                return CURL_PREREQFUNC_ABORT
            }
            if exchange.connectionChecks.contains(.address) {
                let address = address.map { String(cString: $0) } ?? ""
                // libcurl then closes an HTTP/1 connection. An HTTP/2 connection stays with the requests that use it.
                guard exchange.handler.evaluate(connectedAddress: address, on: exchange) else {
                    return CURL_PREREQFUNC_ABORT
                }
            }
            guard exchange.connectionChecks.contains(.certificates) else { return CURL_PREREQFUNC_OK }
            let certificates = exchange.easy.serverCertificates()
            if exchange.handler.evaluate(certificates, on: exchange) { return CURL_PREREQFUNC_OK }
            // libcurl then closes an HTTP/1 connection. It would keep an HTTP/2 connection, which the next request
            // would reuse.
            try? exchange.easy.set(.forbidReuse, to: true)
            return CURL_PREREQFUNC_ABORT
        }
    }
}

/// The receiver of an exchange's data and events, called on the loop's thread.
package protocol ExchangeHandler: AnyObject {
    /// Receives a header line with its line end: the status line, a field or the empty line.
    ///
    /// - Returns: whether to continue.
    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool
    /// Receives bytes of the body. The memory belongs to libcurl and is valid only during the call.
    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict
    /// Writes bytes of the request's body to `space`.
    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict
    /// Prepares to send the request's body again from `offset`, for example because a reused connection turned out to
    /// be dead.
    ///
    /// - Returns: whether that is possible.
    func rewind(to offset: Int64) -> Bool
    /// Whether to trust the server of a connection. Called if ``Exchange/evaluatesCertificates()`` was called.
    func evaluate(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool
    /// Whether to trust the SSH server with this key. Called if ``Exchange/evaluatesHostKey()`` was called.
    func evaluate(hostKey: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool
    /// Whether to connect to an address. Called for each new connection if ``Exchange/evaluatesAddresses()`` was
    /// called.
    ///
    /// - Parameter address: the 4 or 16 bytes of the address in network byte order; empty if it is neither IPv4 nor
    ///   IPv6.
    func evaluate(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool
    /// Whether to use a connection to an address. Called for each connection, new or reused, if
    /// ``Exchange/evaluatesConnectedAddresses()`` was called.
    ///
    /// - Parameter address: the address as text; empty if libcurl knows none.
    func evaluate(connectedAddress address: String, on exchange: Exchange) -> Bool
    /// Whether to continue, within a libcurl call that may wait. Called if ``Exchange/watches(_:)`` was called.
    func goesOn(_ exchange: Exchange) -> Bool
    /// Whether the handler goes on over another connection, and has ended the exchange. Called for an exchange whose
    /// response has been paused for long, on an HTTP/2 connection that others use.
    func leavesSharedConnection(_ exchange: Exchange) -> Bool
    /// Whether a reason to pause the exchange exists. Without one, a paused exchange would hang for ever.
    var holdsPause: Bool { get }
    /// Notifies the handler that the exchange has ended and has left the loop.
    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding)
}

extension ExchangeHandler {
    package func evaluate(hostKey: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { false }
    package func evaluate(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { false }
    package func evaluate(connectedAddress address: String, on exchange: Exchange) -> Bool { false }
    package func goesOn(_ exchange: Exchange) -> Bool { true }
    package func leavesSharedConnection(_ exchange: Exchange) -> Bool { false }
    package var holdsPause: Bool { true }
}

package enum BodyVerdict {
    case accepted, refused, paused
}

package enum FillVerdict {
    /// The number of bytes written; 0 at the end of the body.
    case filled(Int)
    case paused, failed
}

/// The result of a TLS handshake.
package struct ServerCertificates: Sendable {
    /// The certificates in PEM format, the server's own first; empty on a connection without TLS.
    package var chain: [String]
    /// OpenSSL's verdict (X509_V_…, 0: valid), determined whether or not OpenSSL was set to refuse.
    package var verifyResult: Int

    package init(chain: [String], verifyResult: Int) {
        self.chain = chain
        self.verifyResult = verifyResult
    }
}

/// The way in which an exchange ended.
package enum ExchangeEnding {
    /// libcurl reports success. The handler decides whether the body is complete.
    case finished
    case failed(CurlError)
    /// The time without a byte exceeded the stall time-out.
    case stalled
    /// The loop's caller cancelled the exchange.
    case cancelled
}
