import Curl

/// Authentication of the client and evaluation of the server's certificates.
extension Transaction {
    // MARK: Client authentication

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
            session.callbacks.task(task, didReceive: challenge) { reply(.challenge($0, $1)) }
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

    /// Returns the credential to propose: the request's own, or else a stored one.
    private func proposal(for demand: Authorization.Demand) -> Credential? {
        if !demand.space.isProxy, let own = request.credential { return own }
        return session.configuration.credentialStorage.credential(for: demand.space)
    }

    // MARK: Server trust

    func trustOptions(for url: CurlURL) -> TrustOptions {
        var options = TrustOptions(for: url.host, of: task)
        options.asksTask = session.callbacks.decidesOwnTrust(of: task)
        options.isLenient = options.mayForgive && lenientFor?.origin == url.origin
        return options
    }

    /// Returns whether the handshake failed because of the certificate, and a delegate or a custom evaluation might
    /// accept it.
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
        // libcurl provides no certificates for a reused connection, which was evaluated when it was made. If the trust
        // options forbid reuse, a missing chain is rejected.
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
            session.callbacks.task(task, didReceive: challenge) { reply(.challenge($0, $1)) }
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
        // Without an immediate decision, the exchange is aborted before a byte of the request is sent.
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
