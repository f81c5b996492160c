import CCurl

/// The watchdog, which finds exchanges that have work but do not proceed.
///
/// libcurl 7.88 loses wake-ups in several places, and a fault in this program would look the same: a transfer stands
/// still until a timeout. Each such case counts as an internal fault and is reported once. libcurl is then made to
/// process the exchange.
extension LoopCore {
    /// Schedules the watchdog while an exchange may stand still. A loop without exchanges, or with paused ones only, is
    /// not woken for it.
    func scheduleWatch() {
        if deadlines.watch == nil { deadlines.watch = now.advanced(milliseconds: StallWatch.interval) }
    }

    func watchExchanges() {
        guard let due = deadlines.watch, due <= now else { return }
        deadlines.watch = nil
        var verdicts: [(Exchange, StallWatch.Verdict)] = []
        var isWatching = false
        for exchange in exchanges.values {
            if exchange.pausedDirections == 0 || !exchange.handler.holdsPause { isWatching = true }
            guard now.milliseconds(since: exchange.activity.last) >= StallWatch.timeout else { continue }
            let hasWork = standstill(of: exchange) != nil
            if hasWork, exchange.hasAskedForBytes, exchange.easy.isAnsweredInHTTP2() {
                willFail(
                    exchange, CurlError(CURLE_SEND_ERROR, message: "the server does not accept the rest of the request")
                )
                continue
            }
            let verdict = exchange.suspicion.look(lastActivity: exchange.activity.last, hasWork: hasWork)
            if verdict != .none { verdicts.append((exchange, verdict)) }
        }
        if isWatching { scheduleWatch() }
        leaveHeldConnections()
        for (exchange, verdict) in verdicts {
            report(exchange)
            if verdict == .end {
                willFail(exchange, CurlError(CURLE_RECV_ERROR, message: "libcurl lost track of the transfer"))
            } else if exchange.pausedDirections != 0 {
                exchange.unpause()
            } else {
                exchange.nudge()
            }
        }
    }

    /// Returns the reason why an exchange should not stand still; `nil` if it may.
    private func standstill(of exchange: Exchange) -> String? {
        if exchange.pausedDirections != 0 {
            return exchange.handler.holdsPause ? nil : "paused without a reason"
        }
        // A socket that epoll watches is handled at every turn.
        if let socket = exchange.socket, !isWatched(socket.descriptor), socket.hasInput {
            return "bytes wait in a socket that libcurl does not watch"
        }
        return !exchange.hasAskedForBytes && exchange.easy.hasWholeBody() ? "every byte of the body is there" : nil
    }

    private func report(_ exchange: Exchange) {
        let silence = now.milliseconds(since: exchange.activity.last)
        faults.report(
            "exchange \(exchange.id) stood still for \(silence) ms: \(standstill(of: exchange) ?? "unknown"); "
                + exchange.easy.state())
    }
}
