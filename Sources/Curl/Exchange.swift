import CCurl
import CLinux

/// One request with its answer on a loop: a fresh easy handle and whoever listens to it.
///
/// Lives on its loop's thread from its making to its end.
package final class Exchange {
    package let id: Int
    package var easy: EasyHandle
    package let handler: any ExchangeHandler
    /// When a byte last came or went, or since when it has been allowed to.
    package internal(set) var lastActivity: MonotonicTime
    /// Without activity for so many milliseconds it has stalled; 0: never.
    package var stallTimeout: Int64 = 0
    /// Bytes of a body that have to come within ``stallTimeout``, once one has; fewer are a stall too.
    package var leastBytes: Int64 = 0
    /// Milliseconds from the first line of an answer until its head has to be whole, those left out in which bytes are sent;
    /// 0: as long as it takes. Each line by itself is no stall.
    package var headTimeout: Int64 = 0
    /// When the first line came of heads that are not whole yet.
    private var headBegun: MonotonicTime?
    /// The final head is whole: lines that come now are trailers.
    private var isHeadWhole = false
    /// Whether bytes that come count as activity: not while it has more to send to a peer that has answered, and takes
    /// nothing.
    package var isWaitingToSend = false
    /// Since when bytes are counted, and how many came.
    private var window: (begun: MonotonicTime, bytes: Int64)?
    /// Paused by us: no byte is expected.
    var pausedDirections: Int32 = 0
    /// Its handler has heard of its end, and hears nothing more.
    var hasEnded = false
    unowned let loop: LoopCore
    /// See ``watches(_:)``.
    var watch = ExchangeWatch()
    /// The newest socket that libcurl used for it.
    var socket: SocketIdentity?
    /// Whether libcurl goes on to watch its socket while it is paused. The loop has to ignore that socket then: its
    /// events are reported again and again, and nobody takes them.
    var watchesWhilePaused = false
    /// Whether its connection gets a ``ReceiptLimit``.
    var limitsReceipts = false
    /// The limit of its connection.
    var receipts: ReceiptLimit?
    /// Bytes that the peer had acknowledged when that was last looked at.
    private var acknowledged: UInt64 = 0
    /// Whether it has asked its handler for bytes to send.
    private(set) var hasAskedForBytes = false
    /// See ``ForgottenExchange``.
    var suspicion = ForgottenExchange()
    /// Whether the peer of an exchange that ``watchesEndOfTLS()`` has not said within TLS that nothing more comes; never
    /// known with another TLS library than OpenSSL.
    package private(set) var lacksEndOfTLS = false
    private let errorText = ErrorText()
    /// How often in a row ``forgive(_:)`` was called without a byte in between, and what it made of the last activity.
    private var forgivings = 0
    private var forgivenUntil: MonotonicTime?
    private static let mostForgivings = 30

    init(id: Int, handler: any ExchangeHandler, loop: LoopCore) throws(CurlError) {
        self.id = id
        self.handler = handler
        self.loop = loop
        lastActivity = loop.now
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
        try CurlError.check(ccurl_set_socket_option_callback(easy.raw, Self.socketMade, nil))
    }

    deinit { errorText.detach(from: easy) }

    /// Why libcurl failed, in its own words; `nil` where it has none.
    package var failureText: String? { errorText.text }

    /// Has the handler judge the server's certificates on a connection before a byte of the request goes out
    /// (``ExchangeHandler/judge(_:on:)``).
    package func judgesCertificates() throws(CurlError) {
        try easy.set(.certificateInformation, to: true)
        let context = Unmanaged.passUnretained(self).toOpaque()
        try CurlError.check(ccurl_set_prerequest_callback(easy.raw, Self.prerequest, context))
    }

    /// The final head of the answer is whole.
    package func noteHead() {
        isHeadWhole = true
        headBegun = nil
    }

    /// Has the end of the connection looked at, where that of the answer is the same: libcurl 7.88 takes a FIN for an end
    /// within TLS too, and anyone on the network can send one. To be called when the head is whole.
    package func watchesEndOfTLS() {
        lacksEndOfTLS = false
        // libcurl calls it once more at the end, when the connection is still the exchange's. It fails for no known option.
        _ = ccurl_set_progress_callback(easy.raw, Self.tlsProgress, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Whether fewer bytes came than have to, or the head does not end. To be asked now and then.
    func drips() -> Bool {
        if headTimeout > 0, pausedDirections == 0, let headBegun,
            loop.now.milliseconds(since: headBegun) >= headTimeout
        {
            return true
        }
        guard leastBytes > 0, pausedDirections == 0, let window else {
            window = nil
            return false
        }
        guard loop.now.milliseconds(since: window.begun) >= stallTimeout else { return false }
        self.window = (loop.now, 0)
        return window.bytes < leastBytes
    }

    /// The loop was busy elsewhere for so many milliseconds.
    ///
    /// Not again and again without a byte in between: it may be this one's peer who keeps the loop busy.
    func forgive(_ milliseconds: Int64) {
        forgivings = lastActivity == forgivenUntil ? forgivings + 1 : 1
        guard forgivings <= Self.mostForgivings else { return }
        lastActivity = lastActivity.advanced(milliseconds: milliseconds)
        forgivenUntil = lastActivity
        if let begun = window?.begun { window?.begun = begun.advanced(milliseconds: milliseconds) }
        headBegun = headBegun?.advanced(milliseconds: milliseconds)
    }

    /// Counts bytes of an upload that the peer acknowledged as activity: libcurl has handed them to the kernel long before
    /// where the way is slow.
    func noteAcknowledged() {
        guard hasAskedForBytes, let count = socket?.acknowledged, count != acknowledged else { return }
        acknowledged = count
        noteSending()
    }

    private func noteSending() {
        lastActivity = loop.now
        window = nil
        if headBegun != nil { headBegun = loop.now }
    }

    private func noteHeaderLine() {
        if !isWaitingToSend { lastActivity = loop.now }
        if isHeadWhole { return count(0) }
        headBegun = headBegun ?? loop.now
    }

    private func count(_ bytes: Int) {
        receipts?.noteReceived(bytes)
        guard leastBytes > 0 else { return }
        if window == nil { window = (loop.now, 0) }
        window?.bytes += Int64(bytes)
    }

    private func didPause(_ direction: Int32) {
        pausedDirections |= direction
        if watchesWhilePaused, let socket { loop.mute(socket.descriptor) }
    }

    /// Ends the pause of both directions. Must be called from outside libcurl's callbacks.
    package func unpause() {
        guard pausedDirections != 0 else { return }
        pausedDirections = 0
        if watchesWhilePaused, let socket { loop.unmute(socket.descriptor) }
        lastActivity = loop.now
        if headBegun != nil { headBegun = loop.now }
        setPause(CURLPAUSE_CONT)
        loop.scheduleWatch()
    }

    /// Sets libcurl's pause flags, and has the loop end the exchange where libcurl fails.
    ///
    /// libcurl 7.88 delivers the bytes that it kept back inside `curl_easy_pause`. Where a callback refuses them, it
    /// returns that error and schedules nothing: dropped, the exchange would stand still until its connect timer fires.
    func setPause(_ flags: Int32) {
        let code = loop.mark.inside {
            let code = curl_easy_pause(easy.raw, flags)
            return code
        }
        // A transfer without a connection (CURLE_BAD_FUNCTION_ARGUMENT) has nothing to pause: libcurl is at it by itself.
        if code != CURLE_OK, code != CURLE_BAD_FUNCTION_ARGUMENT { loop.willFail(self, CurlError(code)) }
    }

    // The pointer is good: an exchange leaves its handle, and the handle its multi, before either is freed.

    private static let write: ccurl_data_callback = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            let isInside = exchange.loop.mark.leave()
            defer { if isInside { exchange.loop.mark.enter() } }
            guard !exchange.hasEnded else { return Int(UInt32.max) }
            if !exchange.isWaitingToSend { exchange.lastActivity = exchange.loop.now }
            let length = size * count
            exchange.count(length)
            switch exchange.handler.receive(UnsafeRawBufferPointer(start: bytes, count: length), on: exchange) {
            case .accepted: return length
            case .refused: return Int(UInt32.max)
            case .paused:
                exchange.didPause(CURLPAUSE_RECV)
                return Int(CURL_WRITEFUNC_PAUSE)
            }
        }
    }

    private static let header: ccurl_data_callback = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            let isInside = exchange.loop.mark.leave()
            defer { if isInside { exchange.loop.mark.enter() } }
            guard !exchange.hasEnded else { return Int(UInt32.max) }
            exchange.noteHeaderLine()
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
            let isInside = exchange.loop.mark.leave()
            defer { if isInside { exchange.loop.mark.enter() } }
            guard !exchange.hasEnded else { return Int(CURL_READFUNC_ABORT) }
            exchange.noteSending()
            exchange.hasAskedForBytes = true
            let space = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
            switch exchange.handler.fill(space, on: exchange) {
            case .filled(let count):
                exchange.receipts?.noteSent(count)
                return count
            case .failed: return Int(CURL_READFUNC_ABORT)
            case .paused:
                exchange.didPause(CURLPAUSE_SEND)
                return Int(CURL_READFUNC_PAUSE)
            }
        }
    }

    /// Bytes that the kernel may keep of what is to be sent, beyond what is on its way. More would count as sent long before
    /// they go out, and a stall could not be told from a slow way.
    private static let unsentLimit: UInt32 = 128 << 10

    private static let socketMade: curl_sockopt_callback = { _, socket, _ in
        _ = linux_tcp_limit_unsent(socket, unsentLimit)  // what is no TCP has no such limit
        return CURL_SOCKOPT_OK
    }

    private static let tlsProgress: curl_xferinfo_callback = { context, _, _, _, _ in
        guard let context else { return 1 }
        Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            exchange.lacksEndOfTLS = ccurl_has_tls_ended(exchange.easy.raw) == 0
        }
        return 0
    }

    private static let prerequest: curl_prereq_callback = { context, _, _, _, _ in
        guard let context else { return CURL_PREREQFUNC_ABORT }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            guard !exchange.hasEnded else { return CURL_PREREQFUNC_ABORT }
            let certificates = exchange.easy.serverCertificates()
            if exchange.handler.judge(certificates, on: exchange) { return CURL_PREREQFUNC_OK }
            // libcurl closes a connection of HTTP/1 then. One of HTTP/2 it would keep, for the next request to find.
            try? exchange.easy.set(.forbidReuse, to: true)
            return CURL_PREREQFUNC_ABORT
        }
    }
}

/// Whoever listens to an exchange, called on the loop's thread.
package protocol ExchangeHandler: AnyObject {
    /// A header line with its line end: the status line, a field, or the empty line.
    ///
    /// - Returns: whether to go on.
    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool
    /// Bytes of the body; the memory is libcurl's and good for this call alone.
    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict
    /// Puts bytes of the request's body into `space`.
    ///
    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict
    /// The request's body has to be sent again from `offset`, as when a kept connection turned out to be dead.
    ///
    /// - Returns: whether it can.
    func rewind(to offset: Int64) -> Bool
    /// Whether to trust the server behind a connection; asked where ``Exchange/judgesCertificates()`` was called.
    func judge(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool
    /// Whether to trust the SSH server that proved itself by this key; asked where ``Exchange/judgesHostKey()`` was
    /// called.
    func judge(hostKey: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool
    /// Whether to connect to an address; asked where ``Exchange/judgesAddresses()`` was called, for each connection that
    /// is to be made.
    ///
    /// - Parameter address: its 4 or 16 bytes in the network's order; empty where it is of another kind.
    func judge(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool
    /// Whether to go on, within a call of libcurl's that may wait; asked where ``Exchange/watches(_:)`` was called.
    func goesOn(_ exchange: Exchange) -> Bool
    /// Whether a reason to pause the exchange holds. A paused exchange without one would stand still for ever.
    var holdsPause: Bool { get }
    /// The exchange has ended and has left the loop.
    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding)
}

extension ExchangeHandler {
    package func judge(hostKey: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { false }
    package func judge(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { false }
    package func goesOn(_ exchange: Exchange) -> Bool { true }
    package var holdsPause: Bool { true }
}

package enum BodyVerdict {
    case accepted, refused, paused
}

package enum FillVerdict {
    /// So many bytes; 0: there are no more.
    case filled(Int)
    case paused, failed
}

/// What a TLS handshake brought.
package struct ServerCertificates: Sendable {
    /// PEM, the server's own first; empty on a connection without TLS.
    package var chain: [String]
    /// OpenSSL's verdict (X509_V_…, 0: good), reached whether or not it was asked to refuse.
    package var verifyResult: Int

    package init(chain: [String], verifyResult: Int) {
        self.chain = chain
        self.verifyResult = verifyResult
    }
}

/// How an exchange ended.
package enum ExchangeEnding {
    /// libcurl is content; whether the body is whole is for us to judge.
    case finished
    case failed(CurlError)
    /// No byte for longer than the stall timeout.
    case stalled
    /// We ended it.
    case cancelled
}
