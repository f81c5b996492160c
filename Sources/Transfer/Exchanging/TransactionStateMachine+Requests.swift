import Curl

/// The events of requests.
extension TransactionStateMachine {
    /// Handles the client's order to send the current request: the first time, or after it was notified of an end.
    ///
    /// - Parameter parse: returns the URL that a text stands for.
    mutating func start(
        parsing parse: (String) throws(CurlError) -> CurlURL = { (text: String) throws(CurlError) in try CurlURL(text) }
    ) -> TransactionAction {
        if isUnderWay { return .proceed }
        isShortcut = redirects > 0
        if let url { return send(to: url) }
        do throws(CurlError) {
            return send(to: try parse(request.url))
        } catch {
            return end(.unreadable(request.url))
        }
    }

    mutating func send(to url: CurlURL) -> TransactionAction {
        self.url = url
        beginExchange()
        state = .requested
        return .send(request, url)
    }

    private mutating func beginExchange(isStored: Bool = false) {
        exchange = ExchangeProgress(isStored: isStored)
        connection.departure = nil
        reasons.formIntersection(.suspended)
    }

    /// Records the expectation of the request that is about to be sent; `nil` if it has none.
    mutating func prepared(expecting expectation: Expectation?) { exchange.expectation = expectation }

    /// Makes `request` the next request and forgets earlier redirects.
    mutating func restart(from request: TransferRequest) {
        self.request = request
        url = nil
        redirects = 0
    }

    /// Handles a stored response that is used in place of a server's.
    mutating func storedResponseFound(_ head: ResponseHead) -> TransactionAction {
        guard let url else { return .proceed }
        switch state {
        case .requested, .ended: break
        case .idle, .deciding, .delivering, .receiving, .discarding, .failing: return .proceed
        }
        beginExchange(isStored: true)
        return deliver(head, at: url, .inCallback)
    }

    /// Handles a request that goes to the network after a stub has read its body.
    mutating func passedToNetwork() {
        let expectation = exchange.expectation
        if awaitsHead { beginExchange() }
        exchange.expectation = expectation
    }

    /// Handles a request that could not be sent.
    mutating func sendingFailed(_ error: TransferError) -> TransactionAction {
        awaitsHead ? end(error) : .proceed
    }

    /// Handles an exhaustible rate limit, for which the transfer may be paused.
    mutating func rateIsLimited() { connection.needsOwn = true }

    /// Handles the order to abort the current exchange.
    mutating func cancel(_ reason: TransferError) -> TransactionAction {
        if case .ended = state { return .proceed }
        state = .failing(reason)
        return .cancelExchange
    }
}
