import DequeModule
import Glibc

extension WebSocketStateMachine {
    /// Receives bytes from the server.
    mutating func received(_ bytes: UnsafeRawBufferPointer) {
        bytesReceived += Int64(bytes.count)
        clock.sawTraffic = true
        var bytes = bytes
        if phase == .upgrading { readHead(&bytes) }
        while phase == .open || phase == .closing, closure == nil, failure == nil {
            do throws(WebSocketViolation) {
                guard let event = try assembler.next(&bytes) else { return }
                receive(event)
            } catch {
                fail(error.error, code: error.code)
            }
        }
    }

    private mutating func readHead(_ bytes: inout UnsafeRawBufferPointer) {
        do throws(TransferError) {
            guard let upgrade, let head = try reader.next(&bytes) else { return }
            self.head = head
            subprotocol = try upgrade.check(head, now: Int64(time(nil)))
            phase = .open
            hasConnected = true
            serveReceivers()
        } catch {
            fail(error)
        }
    }

    private mutating func receive(_ event: WebSocketEvent) {
        switch event {
        case .message(let message):
            // After a call to close, messages are discarded, so that the server's Close frame is reached.
            guard outbox.close == nil, phase == .open else { return }
            inbox.messages.append(message)
            inbox.size += message.size + Self.overhead
            serveReceivers()
        case .ping(let payload):
            if phase == .open { outbox.pong = payload }
        case .pong(let payload): receivePong(payload)
        case .close(let closure): receive(closure)
        }
    }

    /// Completes the ping that a pong answers, and those before it: only the latest ping need be answered (RFC 6455,
    /// section 5.5.3).
    private mutating func receivePong(_ payload: [UInt8]) {
        guard let index = outbox.awaitedPongs.firstIndex(where: { Self.payload(ofPing: $0) == payload }) else { return }
        for id in outbox.awaitedPongs.prefix(index + 1) { complete(id, .success(nil)) }
        outbox.awaitedPongs.removeFirst(index + 1)
    }

    static func payload(ofPing id: Int) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: id >> $0) }
    }

    private mutating func receive(_ closure: WebSocketClosure) {
        self.closure = closure
        outbox.pong = nil
        failSending(failure ?? .webSocketClosed)
        if outbox.isCloseSent {
            phase = .finishing
        } else if phase == .open {
            // The response to a Close frame has the same code (RFC 6455, section 5.5.1).
            outbox.close = WebSocketClosure(code: closure.code).payload
            outbox.closesAtOnce = true
            phase = .closing
        }
        clock.isClosing = true
        serveReceivers()
    }

    /// Returns whether the connection is to receive more.
    mutating func wantsMore() -> Bool {
        inbox.isPaused = isSuspended || isFull
        return !inbox.isPaused
    }

    /// Whether the unread messages are so many that the server has to wait.
    private var isFull: Bool {
        phase == .open && outbox.close == nil && inbox.receivers.isEmpty && inbox.size >= heldLimit
    }

    /// Whether reading is paused and is to go on.
    var wantsReading: Bool {
        inbox.isPaused
            && (inbox.size <= heldLimit / 2 || !inbox.receivers.isEmpty || phase != .open || outbox.close != nil)
    }

    /// The server has closed its side of the connection.
    mutating func peerClosed() {
        clock.sawTraffic = true
        switch phase {
        case .waiting, .connected, .securing, .upgrading: fail(Self.closedEarly)
        case .open, .closing:
            if closure == nil {
                let words = "the server closed the connection without closing the WebSocket"
                fail(TransferError(.truncated, words))
            }
        case .finishing, .ended: break
        }
    }

    // MARK: Failing

    /// Fails the connection (RFC 6455, section 7.1.7).
    ///
    /// - Parameter code: the code of the Close frame to send; `nil` to send none.
    mutating func fail(_ error: TransferError, code: WebSocketCloseCode? = nil) {
        guard failure == nil, phase != .finishing else { return }
        failure = error
        outbox.pong = nil
        clock.isClosing = true
        if let code, !outbox.isCloseSent, !isClosePieceBegun {
            outbox.close = WebSocketClosure(code: code).payload
            outbox.closesAtOnce = true
            phase = .closing
        } else {
            outbox.piece = nil
            phase = .finishing
        }
        // Calls made before the opening handshake wait, since another attempt may follow.
        guard hasConnected else { return }
        failSending(error)
        serveReceivers()
    }

    private var isClosePieceBegun: Bool {
        if case .close = outbox.piece?.purpose { true } else { false }
    }
}
