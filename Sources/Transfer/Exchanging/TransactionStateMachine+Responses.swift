import Curl

/// The events of responses and bodies.
extension TransactionStateMachine {
    // MARK: Heads

    /// Handles the head of a response from the server.
    ///
    /// - Parameter asksAboutRedirects: whether a delegate decides about redirects.
    mutating func headReceived(_ head: ResponseHead, asksAboutRedirects: Bool) -> TransactionAction {
        guard case .requested = state, let url else { return .refuse }
        connection.isStale = false
        if head.status == 417, hasExpectation(head) {
            // libcurl 7.88 would repeat the request within the exchange, and this status would stand for the next one.
            state = .discarding(then: .send(request, url))
            return .omitExpectation(origin: url.origin)
        }
        if RedirectRule.isRedirect(head.status), request.redirects.follows(head.status, method: request.method) {
            return redirected(head, at: url, asksDelegate: asksAboutRedirects)
        }
        let proxy = configuration.proxies.choose(own: request.proxy, for: url.host, port: url.port)?.url
        if let demand = authorization.demand(
            of: head, at: url, proxy: proxy, assumesBasic: request.withholdsLogin(at: url))
        {
            return challenged(demand, head, at: url)
        }
        return deliver(head, at: url, .inCallback)
    }

    /// Whether the request of a response had an `Expect` field, without which it is to be repeated (RFC 9110, section
    /// 10.1.1).
    private func hasExpectation(_ head: ResponseHead) -> Bool {
        switch exchange.expectation {
        case .named: true
        case .overHTTP1: head.version.hasPrefix("1")
        case nil: false
        }
    }

    /// Delivers the head of the final response to the client.
    mutating func deliver(_ head: ResponseHead, at url: CurlURL, _ standing: ExchangeState) -> TransactionAction {
        connection.isHTTP1 = head.version.hasPrefix("1")
        state = .delivering(head, standing)
        return .deliverHead(head, url)
    }

    private mutating func redirected(
        _ head: ResponseHead, at url: CurlURL, asksDelegate: Bool
    ) -> TransactionAction {
        redirects += 1
        isShortcut = false
        guard redirects <= configuration.maximumRedirects else {
            let words = "more than \(configuration.maximumRedirects) redirects"
            return discard(then: .fail(TransferError(.tooManyRedirects, words)), .inCallback)
        }
        do throws(TransferError) {
            let next = try RedirectRule.follow(head, from: request, at: url, protocols: RequestOptions.protocols)
            if asksDelegate { return ask(.redirect(head, next.request, next.url), .inCallback) }
            return discard(then: .send(next.request, next.url), .inCallback)
        } catch {
            return discard(then: .fail(error), .inCallback)
        }
    }

    /// Handles the client's decision about the final response.
    mutating func headHandled(_ disposition: HeadDisposition) -> TransactionAction {
        guard case .delivering(let head, let standing) = state else { return .proceed }
        switch disposition {
        case .receive:
            if case .ended(let error) = standing { return end(error) }
            state = .receiving
            return resumption(after: standing)
        case .discard: return discard(then: .end, standing)
        case .ask: return ask(.response(head), standing)
        case .refuse(let error): return abort(error, standing)
        }
    }

    /// Handles a line after the head. Trailers are discarded up to a total length: endless trailers would occupy the
    /// transfer for ever without counting as a stall.
    mutating func trailerReceived(_ count: Int) -> TransactionAction {
        switch state {
        case .deciding, .delivering, .receiving, .discarding: break
        case .idle, .requested, .failing, .ended: return .refuse
        }
        exchange.trailerBytes += count
        guard exchange.trailerBytes > ResponseHeadParser.maximumLength else { return .proceed }
        return refuse(TransferError(.tooLarge, "the server's trailer fields are too long"))
    }

    /// Aborts the exchange within a callback, unless it is being aborted or has ended.
    mutating func refuse(_ error: TransferError) -> TransactionAction {
        switch state {
        case .idle, .failing, .ended, .deciding(_, .ended): return .refuse
        case .requested, .deciding, .delivering, .receiving, .discarding: return abort(error, .inCallback)
        }
    }

    // MARK: Bodies

    /// Handles bytes of the response's body. Called for every chunk.
    mutating func bytesReceived(_ count: Int) -> BodyStep {
        guard reasons.isEmpty else { return .pause }
        switch state {
        case .receiving:
            exchange.bodyBegun = true
            return .pass
        case .discarding:
            exchange.discarded += count
            return exchange.discarded <= Self.discardLimit ? .discard : .refuse
        case .deciding: return .pause
        case .idle, .requested, .delivering, .failing, .ended: return .refuse
        }
    }

    /// Handles a call for bytes of the request's body. Called for every chunk.
    func bytesRequested() -> BodyStep {
        guard reasons.isEmpty else { return .pause }
        switch state {
        case .requested, .delivering, .receiving, .discarding: return .pass
        case .deciding: return .pause
        case .idle, .failing, .ended: return .refuse
        }
    }

    /// Handles bytes of the request's body that were sent.
    ///
    /// - Returns: whether these are the first bytes of a body in this exchange.
    mutating func bytesSent(_ count: Int) -> Bool {
        guard count > 0, !exchange.bodyBegun else { return false }
        exchange.bodyBegun = true
        return true
    }

    /// Handles bytes of a stored body that the client has accepted.
    mutating func storedBytesDelivered() { exchange.bodyBegun = true }

    // MARK: Pauses

    mutating func pause(_ reason: PauseReasons) { reasons.insert(reason) }

    /// Handles the end of a reason to pause.
    mutating func resume(_ reason: PauseReasons) -> TransactionAction {
        guard reasons.contains(reason) else { return .proceed }
        reasons.remove(reason)
        return pauses.isEmpty && isUnderWay ? .resume : .proceed
    }

    /// Handles the client's decision to request the rest over its own connection in place of a pause.
    ///
    /// - Parameter inCallback: whether a callback of libcurl waits for the decision.
    mutating func leaveSharedConnection(inCallback: Bool) -> TransactionAction {
        connection.needsOwn = true
        connection.departure =
            inCallback
            ? "left the HTTP/2 connection that others use, because of a rate limit"
            : "left the HTTP/2 connection that others use, because of a long pause"
        return inCallback ? refuse(.cancelled) : cancel(.cancelled)
    }
}
