import Curl

/// Who asks, and whether it is the right one who answers.
extension Transaction {
    // MARK: Who asks

    func challenge(_ demand: Authorization.Demand, _ head: ResponseHead, _ url: CurlURL) -> Bool {
        if authorization.renew(demand, at: url) {
            phase = .discarding(.ask(request, url))
            return true
        }
        authorization.noteRefusal(demand, at: url, sentOwn: request.credential != nil)
        var challenge = AuthenticationChallenge(
            protectionSpace: demand.space, proposedCredential: proposal(for: demand),
            previousFailureCount: authorization.failureCount(demand), failureResponse: head, serverTrust: nil)
        challenge.isFromOrigin =
            !demand.space.isProxy && (try? CurlURL(task.originalRequest.url))?.origin == url.origin
        phase = .deciding
        let (session, task) = (session, task)
        return decide(otherwise: .challenge(.performDefaultHandling, nil)) { reply in
            session.delegate.task(task, didReceive: challenge) { reply(.challenge($0, $1)) }
        } then: { [unowned self] decision in
            guard case .challenge(let disposition, let credential) = decision else { return handOver(head, url) }
            switch disposition {
            case .cancelAuthenticationChallenge:
                failure = .cancelled
                return false
            case .useCredential:
                guard let credential, authorization.use(credential, for: demand, at: url) else {
                    return handOver(head, url)
                }
                phase = .discarding(.ask(request, url))
                return true
            case .performDefaultHandling, .rejectProtectionSpace: return handOver(head, url)
            }
        }
    }

    /// What nobody refused yet: the request's own, otherwise a stored one.
    private func proposal(for demand: Authorization.Demand) -> Credential? {
        if !demand.space.isProxy, let own = request.credential { return own }
        return session.configuration.credentialStorage.credential(for: demand.space)
    }

    // MARK: Who answers

    func trustOptions(for url: CurlURL) -> TrustOptions {
        var options = TrustOptions(for: url.host, of: task)
        options.asksTask = session.delegate.decidesOwnTrust(of: task)
        options.isLenient = options.mayForgive && lenientFor?.origin == url.origin
        return options
    }

    /// The handshake failed for its certificate, and a delegate or a closure might see that differently.
    func isRefusedByDefault(_ ending: ExchangeEnding) -> Bool {
        // CURLE_PEER_FAILED_VERIFICATION, which stands for chain and name alike
        guard trust.mayForgive, !trust.isLenient, case .failed(let error) = ending,
            error.code == .peerFailedVerification
        else {
            return false
        }
        return true
    }

    func judge(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool {
        // A kept connection was judged when it was made; one that must not be kept is never trusted unseen.
        if certificates.chain.isEmpty, !trust.needsOwnConnection { return true }
        guard let url else { return false }
        let shown = ServerTrust(
            host: url.host, certificates: certificates.chain, isChainValid: !trust.isLenient)
        if let accepted, accepted.origin == url.origin, accepted.chain == certificates.chain { return true }
        guard trust.asksDelegate else { return verdict(shown) }
        let challenge = AuthenticationChallenge(judging: shown, port: url.port, scheme: url.scheme)
        let (session, task) = (session, task)
        var isDecided = false
        let isAccepted = decide(otherwise: .challenge(.performDefaultHandling, nil)) { reply in
            session.delegate.task(task, didReceive: challenge) { reply(.challenge($0, $1)) }
        } then: { [unowned self] decision in
            let accepts = accepts(decision, shown)
            if !isDecided, accepts {
                accepted = (url.origin, certificates.chain)
                phase = .discarding(.ask(request, url))
            }
            return accepts
        } atOnce: {
            isDecided = true
        }
        // Undecided, the exchange is broken off before a byte of the request has gone out.
        return isDecided && isAccepted
    }

    private func accepts(_ decision: Decision, _ shown: ServerTrust) -> Bool {
        guard case .challenge(let disposition, _) = decision else { return verdict(shown) }
        switch disposition {
        case .useCredential: return true
        case .performDefaultHandling: return verdict(shown)
        case .cancelAuthenticationChallenge:
            failure = .cancelled
            return false
        case .rejectProtectionSpace:
            failure = .untrusted(shown.host)
            return false
        }
    }

    private func verdict(_ shown: ServerTrust) -> Bool {
        if trust.accepts(shown) { return true }
        failure = (trust.isLenient ? lenientFor?.error : nil) ?? .untrusted(shown.host)
        return false
    }
}

extension TransferError {
    static func untrusted(_ host: String) -> TransferError {
        TransferError(.tls, "\(host) is not who it should be: its certificate was refused")
    }
}
