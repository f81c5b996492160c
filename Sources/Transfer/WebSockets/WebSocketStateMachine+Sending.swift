import Curl
import DequeModule

extension WebSocketStateMachine {
    /// Returns the next work for the event loop; `nil` if there is none for now.
    ///
    /// - Parameter mask: the masking key for a frame, called once for each.
    mutating func nextWork(mask: () -> UInt32) -> StreamOperationQueue.Work? {
        guard !isSuspended else { return nil }
        switch phase {
        case .waiting, .securing, .ended: return nil
        case .connected:
            if upgrade?.url.isSecure == true {
                phase = .securing
                return .secure(0)
            }
            beginUpgrade()
        case .upgrading, .open, .closing, .finishing: break
        }
        if wantsReading, !closedSides.read {
            inbox.isPaused = false
            return .resumeReading
        }
        if outbox.piece == nil {
            outbox.piece = nextPiece(mask: mask)
            outbox.isBlocked = false
        }
        if let piece = outbox.piece {
            guard piece.accepted < piece.bytes.count, !outbox.isBlocked else { return nil }
            return .write(0, piece.bytes, from: piece.accepted)
        }
        guard phase == .finishing else { return nil }
        if !closedSides.write {
            closedSides.write = true
            return .closeWrite
        }
        if !closedSides.read {
            closedSides.read = true
            return .closeRead
        }
        return nil
    }

    /// Returns the next frame: control frames first, then the messages, and the Close frame after them.
    private mutating func nextPiece(mask: () -> UInt32) -> Piece? {
        guard phase == .open || phase == .closing, !outbox.isCloseSent else { return nil }
        if outbox.closesAtOnce { return closePiece(mask: mask) }
        if let payload = outbox.pong {
            outbox.pong = nil
            return control(.pong, payload, .control, mask: mask)
        }
        if let id = outbox.pings.popFirst() {
            outbox.awaitedPongs.append(id)
            return control(.ping, Self.payload(ofPing: id), .control, mask: mask)
        }
        if clock.wantsPing {
            clock.wantsPing = false
            return control(.ping, [], .keepAlive, mask: mask)
        }
        if !outbox.sendings.isEmpty { return dataPiece(mask: mask) }
        return closePiece(mask: mask)
    }

    private func control(
        _ opcode: WebSocketOpcode, _ payload: [UInt8], _ purpose: Piece.Purpose, mask: () -> UInt32
    ) -> Piece {
        Piece(bytes: WebSocketFrame.bytes(opcode, payload[...], mask: mask()), purpose: purpose)
    }

    private mutating func dataPiece(mask: () -> UInt32) -> Piece {
        let sending = outbox.sendings[0]
        let end = min(sending.payload.count, sending.offset + Self.longestFrame)
        let isLast = end == sending.payload.count
        let opcode = sending.isBegun ? .continuation : sending.opcode
        let bytes = WebSocketFrame.bytes(
            opcode, isFinal: isLast, sending.payload[sending.offset..<end], mask: mask())
        outbox.sendings[0].offset = end
        outbox.sendings[0].isBegun = true
        return Piece(bytes: bytes, purpose: .message(sending.id, isLast: isLast))
    }

    private mutating func closePiece(mask: () -> UInt32) -> Piece? {
        guard let payload = outbox.close else { return nil }
        outbox.close = nil
        phase = .closing
        return control(.close, payload, .close, mask: mask)
    }

    /// - Parameter count: the number accepted. If it is less than `offered`, the connection notifies when it has room.
    mutating func accepted(_ count: Int, of offered: Int) {
        outbox.piece?.accepted += count
        outbox.isBlocked = count < offered
    }

    mutating func hasRoom() { outbox.isBlocked = false }

    /// Records that bytes were passed to the system.
    mutating func sent(_ count: Int) {
        bytesSent += Int64(count)
        guard var piece = outbox.piece else { return }
        if case .keepAlive = piece.purpose {} else { clock.sawTraffic = true }
        piece.sent += count
        guard piece.sent >= piece.bytes.count else {
            outbox.piece?.sent = piece.sent
            return
        }
        outbox.piece = nil
        switch piece.purpose {
        case .handshake, .control, .keepAlive: break
        case .message(let id, let isLast):
            guard isLast, outbox.sendings.first?.id == id else { return }
            outbox.sendings.removeFirst()
            complete(id, .success(nil))
        case .close:
            outbox.isCloseSent = true
            clock.isClosing = true
            if closure != nil || failure != nil { phase = .finishing }
        }
    }

    /// Whether the loop may find work that it has not been notified of.
    var wantsLoop: Bool {
        !inbox.receivers.isEmpty || !outbox.sendings.isEmpty || !outbox.pings.isEmpty || outbox.close != nil
            || wantsReading
    }

    // MARK: Time

    /// Whether the server is expected to send or to accept something.
    var isAwaited: Bool {
        guard !isSuspended else { return false }
        switch phase {
        case .waiting, .securing, .ended: return false
        case .connected, .upgrading, .closing, .finishing: return true
        case .open:
            return !inbox.receivers.isEmpty || outbox.piece != nil || !outbox.sendings.isEmpty
                || !outbox.awaitedPongs.isEmpty
        }
    }

    /// Called when the event loop begins a turn.
    ///
    /// - Returns: the earliest time to call ``expire(at:)``; `nil` if there is none.
    mutating func beginTurn(_ now: MonotonicTime) -> MonotonicTime? {
        isSuspended ? nil : clock.beginTurn(now, isAwaited: isAwaited && phase == .open)
    }

    /// Handles the end of a time.
    ///
    /// - Returns: an error if the connection is to be cut.
    mutating func expire(at now: MonotonicTime) -> TransferError? {
        guard !isSuspended, let expiry = clock.expire(at: now, isAwaited: isAwaited && phase == .open) else {
            return nil
        }
        switch expiry {
        case .close: return TransferError(.timedOut, "the server did not close the WebSocket in time")
        case .stall: return TransferError(.stalled, "no data for \(TransferError.duration(clock.stallTimeout))")
        }
    }
}
