import Curl
import HTTPTypes

/// The rate limits.
extension Transaction {
    /// Whether the transaction is paused for a rate limit, with a timer that ends the pause.
    var isResting: Bool { timer != nil }

    /// Applies the rate limits to the next exchange.
    func limitRates(of request: TransferRequest, at url: CurlURL) {
        let origin = (url.scheme, url.host, url.port)
        // The gates are used by the transaction only. A closure that one of them hands on may outlive it.
        let makeWake = { [unowned self] in { [weak self] in self?.endRatePauseSoon() ?? () } }
        incoming = RateLimitGate(.download, at: origin, limits: limits, session: session, makeWake: makeWake)
        outgoing = RateLimitGate(.upload, at: origin, limits: limits, session: session, makeWake: makeWake)
        if incoming?.rate() != nil || (![.get, .head].contains(request.method) && outgoing?.rate() != nil) {
            machine.rateIsLimited()
        }
    }

    /// Returns whether a rate limit is exhausted. If so, the transfer is paused until the bytes may pass.
    func mustPauseForRate(_ gate: inout RateLimitGate?, toPass bytes: Int) -> Bool {
        guard let wait = gate?.wait(toPass: bytes, now: clock.now), wait > 0 else { return false }
        rest(wait)
        return true
    }

    /// Returns whether a local condition limits the throughput: an exhausted rate limit, a wait for the request's turn, a
    /// slow disk or reader, a pending decision, or a suspension.
    func isHeldBack(now: MonotonicTime) -> Bool {
        launcher.awaitsTurn || !pauses.subtracting(.rate).isEmpty || incoming?.isAtLimit(now: now) ?? false
    }

    private func rest(_ milliseconds: Int64) {
        machine.pause(.rate)
        task.progress.setHeldBack(true)
        // The limit is checked again from time to time, because it may be raised.
        timer = core.after(milliseconds: min(milliseconds, ByteLimits.longestRest)) { [unowned self] in endRatePause() }
    }

    private func endRatePause() {
        timer = nil
        let now = MonotonicTime.now()
        let left = max(incoming?.wait(now: now) ?? 0, outgoing?.wait(now: now) ?? 0)
        if left > 0 { return rest(left) }
        task.progress.setHeldBack(false)
        resume(.rate)
    }

    /// Ends the pause at the loop's next turn, after another connection of the request has left the shared limits or has
    /// given back bytes.
    private func endRatePauseSoon() {
        guard let timer else { return }
        core.cancelTimer(timer)
        self.timer = core.after(milliseconds: 0) { [unowned self] in endRatePause() }
    }

    /// Ends the pause because the exchange is over, and returns the bytes that will not pass.
    func stopRatePause() {
        if let timer {
            core.cancelTimer(timer)
            task.progress.setHeldBack(false)
        }
        timer = nil
        incoming?.giveBack()
        outgoing?.giveBack()
    }
}
