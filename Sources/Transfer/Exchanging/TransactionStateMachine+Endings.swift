import Curl

/// The ends of exchanges.
extension TransactionStateMachine {
    /// The end of an exchange, and what the decision about it depends on.
    struct ExchangeEnd {
        /// The way in which an exchange ended.
        enum Cause {
            case finished, cancelled, stalled
            /// The peer kept the loop busy with data without content.
            case flood
            case failed(CurlError.Code)
        }

        var cause: Cause
        /// The error to report; `nil` if libcurl reports success.
        var error: TransferError?
        /// Whether another version than HTTP/1 was offered to the server.
        var offersHTTP2 = false
        /// Whether HTTP/2 was used without asking the server for it.
        var hasPriorKnowledge = false
        /// Whether the connection was refused before a byte of the request was sent, because another request had opened
        /// it under another rule for addresses.
        var refusedConnection = false
        /// Whether the connection was refused because the server had sent bytes on it, or had ended it, before the
        /// request.
        var hasUnaskedInput = false
        /// Whether a delegate or a custom evaluation may accept a certificate that the evaluation of the exchange
        /// rejected.
        var mayForgive = false
    }

    /// Handles the end of the exchange.
    mutating func exchangeEnded(_ end: ExchangeEnd) -> TransactionAction {
        switch state {
        case .idle, .ended: return .proceed
        case .failing: return conclude(end.error)
        case .requested, .deciding, .delivering, .receiving, .discarding: break
        }
        guard let url else { return conclude(end.error) }
        if awaitsHead, end.refusedConnection, !connection.avoidsReuse(at: url) {
            connection.refusedOrigin = url.origin
            return send(to: url)
        }
        if awaitsHead, end.hasUnaskedInput, !connection.avoidsReuse(at: url) {
            connection.isStale = true
            return send(to: url)
        }
        if awaitsHead, end.mayForgive, end.isRefusedCertificate {
            // Repeat the request with lenient evaluation, so that a delegate can examine the certificates.
            trust.lenient = (url.origin, end.error)
            return send(to: url)
        }
        guard isBrokenHTTP2(end) else { return conclude(end.error) }
        // Before any response, repeating an idempotent request is safe.
        let repeats = awaitsHead && request.method.isIdempotent
        return .avoidHTTP2(origin: url.origin, then: repeats ? send(to: url) : conclude(end.error))
    }

    /// Returns the reason for which what is missing is requested over another connection or in another version of HTTP;
    /// `nil` if it is not.
    func departure(at end: ExchangeEnd) -> String? {
        if let reason = connection.departure { return reason }
        guard isUnderWay, isBrokenHTTP2(end) else { return nil }
        return "HTTP/1.1 from here on: \(end.error?.message ?? "HTTP/2 failed")"
    }

    /// Handles the absence of an exchange that could be cancelled.
    mutating func exchangeWasAbsent() -> TransactionAction { conclude(nil) }

    /// Handles the end of a stored response.
    mutating func storedBodyEnded() -> TransactionAction { conclude(nil) }

    private mutating func conclude(_ error: TransferError?) -> TransactionAction {
        switch state {
        case .failing(let reason): return end(reason)
        case .discarding(let continuation): return follow(continuation)
        case .deciding(let pending, _):
            state = .deciding(pending, .ended(error))
            return .proceed
        case .requested, .delivering, .receiving: return end(error)
        case .idle, .ended: return .proceed
        }
    }

    /// Returns whether an error is one of HTTP/2 or HTTP/3 itself rather than of the layers above or below.
    private func isBrokenHTTP2(_ end: ExchangeEnd) -> Bool {
        // This libcurl loses wake-ups after HTTP/2 errors, so an apparent stall may be such an error.
        if case .stalled = end.cause, awaitsHead { return end.offersHTTP2 }
        if case .flood = end.cause { return end.offersHTTP2 }
        guard case .failed(let code) = end.cause else { return false }
        // Before a response: perhaps the server does not know HTTP/2, and was not asked whether it does.
        if [.gotNothing, .sendError, .recvError].contains(code), awaitsHead, end.offersHTTP2 {
            return end.hasPriorKnowledge
        }
        // A stream that was ended before its body was, or a connection that went away.
        if code == .partialFile, connection.isHTTP1 == false { return true }
        return [.http2, .http2Stream, .http3].contains(code)
    }
}

extension TransactionStateMachine.ExchangeEnd.Cause {
    init(_ ending: ExchangeEnding) {
        self =
            switch ending {
            case .finished: .finished
            case .cancelled: .cancelled
            case .stalled: .stalled
            case .failed(let error): error.isFlood ? .flood : .failed(error.code)
            }
    }
}

extension TransactionStateMachine.ExchangeEnd {
    /// Whether the handshake failed because of the certificate: CURLE_PEER_FAILED_VERIFICATION, which stands for chain
    /// and name alike.
    var isRefusedCertificate: Bool {
        if case .failed(let code) = cause { code == .peerFailedVerification } else { false }
    }
}
