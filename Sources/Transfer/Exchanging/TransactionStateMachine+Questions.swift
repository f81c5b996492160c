import Curl

/// The events of questions to a delegate: redirects, authentication of the client, trust in the server, and the use of
/// the response.
extension TransactionStateMachine {
    mutating func ask(_ question: TransactionQuestion, _ standing: ExchangeState) -> TransactionAction {
        questions += 1
        let pending = PendingQuestion(number: questions, question: question)
        state = .deciding(pending, standing)
        return .ask(pending)
    }

    /// Handles a delegate that does not answer immediately.
    mutating func answerDelayed(_ number: Int) -> TransactionAction {
        guard case .deciding(let pending, .inCallback) = state, pending.number == number else { return .proceed }
        state = .deciding(pending, .waiting)
        // Without an immediate decision, the exchange is aborted before a byte of the request is sent.
        if case .trust = pending.question { return .refuse }
        return .proceed
    }

    /// Handles a delegate's answer. An answer to an earlier question is ignored.
    mutating func answered(_ number: Int, _ decision: Decision) -> TransactionAction {
        guard case .deciding(let pending, let standing) = state, pending.number == number, let url else {
            return .proceed
        }
        switch pending.question {
        case .redirect(let head, _, let proposed):
            guard case .redirect(let request?) = decision else { return deliver(head, at: url, standing) }
            return discard(then: continuation(with: request, proposed), standing)
        case .challenge(let demand, let head):
            return challengeAnswered(decision, demand, head, at: url, standing)
        case .trust(let shown): return trustAnswered(decision, shown, at: url, standing)
        case .response(let head):
            state = .delivering(head, standing)
            guard case .response(let disposition) = decision else { return .deliverDecision(.allow, head, url) }
            return .deliverDecision(disposition, head, url)
        }
    }

    private func continuation(with request: TransferRequest, _ proposed: CurlURL) -> Continuation {
        do throws(CurlError) {
            return .send(request, request.url == proposed.text ? proposed : try CurlURL(request.url))
        } catch {
            return .fail(.unreadable(request.url, name: "the URL to go on with"))
        }
    }

    // MARK: Client authentication

    mutating func challenged(
        _ demand: Authorization.Demand, _ head: ResponseHead, at url: CurlURL
    ) -> TransactionAction {
        if authorization.renew(demand, at: url) { return discard(then: .send(request, url), .inCallback) }
        authorization.recordRefusal(demand, at: url, own: request.unaskedLogin(at: url))
        return ask(.challenge(demand, head), .inCallback)
    }

    private mutating func challengeAnswered(
        _ decision: Decision, _ demand: Authorization.Demand, _ head: ResponseHead, at url: CurlURL,
        _ standing: ExchangeState
    ) -> TransactionAction {
        guard case .challenge(let disposition, let credential) = decision else {
            return deliver(head, at: url, standing)
        }
        switch disposition {
        case .cancelAuthenticationChallenge: return abort(.cancelled, standing)
        case .useCredential:
            guard let credential, authorization.use(credential, for: demand, at: url) else {
                return deliver(head, at: url, standing)
            }
            return discard(then: .send(request, url), standing)
        case .performDefaultHandling, .rejectProtectionSpace: return deliver(head, at: url, standing)
        }
    }

    // MARK: Server trust

    /// Whether the default evaluation failed at this URL.
    func isLenient(at url: CurlURL) -> Bool { trust.lenient?.origin == url.origin }

    /// Handles the certificates of the server, before a byte of the request is sent.
    ///
    /// - Parameter asksDelegate: whether a delegate evaluates them.
    mutating func certificatesReceived(_ shown: ServerTrust, asksDelegate: Bool) -> TransactionAction {
        guard case .requested = state, let url else { return .refuse }
        if let accepted = trust.accepted, accepted.origin == url.origin, accepted.chain == shown.certificates {
            return .proceed
        }
        return asksDelegate ? ask(.trust(shown), .inCallback) : .evaluate(shown)
    }

    private mutating func trustAnswered(
        _ decision: Decision, _ shown: ServerTrust, at url: CurlURL, _ standing: ExchangeState
    ) -> TransactionAction {
        guard case .challenge(let disposition, _) = decision else { return .evaluate(shown) }
        switch disposition {
        case .useCredential: return trusted(shown, at: url, standing)
        case .performDefaultHandling: return .evaluate(shown)
        case .cancelAuthenticationChallenge: return abort(.cancelled, standing)
        case .rejectProtectionSpace: return abort(.untrusted(shown), standing)
        }
    }

    /// Handles the verdict of the policy, with or without a question to the delegate before.
    mutating func trustEvaluated(_ shown: ServerTrust, isTrusted: Bool) -> TransactionAction {
        guard let url else { return .refuse }
        let standing: ExchangeState
        switch state {
        case .requested: standing = .inCallback
        case .deciding(let pending, let current):
            guard case .trust = pending.question else { return .refuse }
            standing = current
        case .idle, .delivering, .receiving, .discarding, .failing, .ended: return .refuse
        }
        if isTrusted { return trusted(shown, at: url, standing) }
        // Without a valid chain, the default evaluation has failed before.
        let failure = shown.isChainValid ? nil : trust.lenient?.error
        return abort(failure?.naming(keysOf: shown) ?? .untrusted(shown), standing)
    }

    private mutating func trusted(
        _ shown: ServerTrust, at url: CurlURL, _ standing: ExchangeState
    ) -> TransactionAction {
        if case .inCallback = standing {
            state = .requested
            return .proceed
        }
        trust.accepted = (url.origin, shown.certificates)
        return discard(then: .send(request, url), standing)
    }
}
