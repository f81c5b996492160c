import Curl

/// Who judges what a stream's peer shows in its handshake.
///
/// libcurl holds it against the policy of the host. There is no second connection on which to be more lenient, as
/// exchanges have, and libcurl 7.88.1 loads no authorities where it is not to refuse: a policy of one's own and a
/// delegate may refuse whom the evaluation trusts, and cannot trust whom it refuses. For a peer whose certificate
/// leads to no authority there are `caCertificates` and pins. Nothing that the peer says is given out, and nothing is
/// written, before the verdict.
extension StreamRun {
    /// As the host of a URL is written.
    var trustHost: String { peerHost.utf8.contains(UInt8(ascii: ":")) ? "[\(peerHost)]" : peerHost }

    func trustOptions() -> TrustOptions {
        var options = TrustOptions(
            policy: session.configuration.trustPolicies.serverTrustPolicy(forHost: trustHost)
                ?? .performDefaultEvaluation(validateHost: true))
        options.asksDelegate = session.delegate.decidesTrust || session.delegate.decidesOwnTrust(of: task)
        return options
    }

    func setSecurity(of trust: TrustOptions, on easy: borrowing EasyHandle) throws(CurlError) {
        try SecurityOptions(
            configuration: session.configuration, request: task.originalRequest, host: trustHost, trust: trust
        ).apply(to: easy)
        // No other handle gets a stream's connection, and libcurl would close it as soon as it stands.
        try easy.set(.forbidReuse, to: false)
        guard trust.judges else { return }
        try easy.set(.certificateInformation, to: true)
        // A resumed session shows no certificates.
        try easy.set(.sessionCache, to: false)
    }

    /// - Parameter verdict: called once, on the loop's thread: why the peer is not trusted, `nil` where it is.
    func judge(
        _ certificates: ServerCertificates, under trust: TrustOptions, port: Int,
        verdict: @escaping (TransferError?) -> Void
    ) {
        guard trust.judges else { return verdict(nil) }
        let host = trustHost
        guard !certificates.chain.isEmpty else { return verdict(.untrusted(host)) }
        let shown = ServerTrust(host: host, certificates: certificates.chain, isChainValid: true)
        func policys() -> TransferError? { trust.accepts(shown) ? nil : .untrusted(host) }
        guard trust.asksDelegate else { return verdict(policys()) }
        let space = ProtectionSpace(host: host, port: port, scheme: "tcp", method: .serverTrust)
        let challenge = AuthenticationChallenge(
            protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
            serverTrust: shown)
        question = { decision in
            guard case .challenge(let disposition, _) = decision else { return verdict(policys()) }
            switch disposition {
            case .useCredential: verdict(nil)
            case .performDefaultHandling: verdict(policys())
            case .cancelAuthenticationChallenge: verdict(.cancelled)
            case .rejectProtectionSpace: verdict(.untrusted(host))
            }
        }
        let (session, task) = (session, task)
        let reply = Reply(otherwise: .challenge(.performDefaultHandling, nil)) { decision in
            session.perform(task) { ($0 as? StreamRun)?.answer(decision) }
        }
        session.delegate.task(task, didReceive: challenge) { reply.give(.challenge($0, $1)) }
        if let decision = reply.takeAtOnce() { answer(decision) }
    }

    private func answer(_ decision: Decision) {
        let question = question
        self.question = nil
        question?(decision)
    }
}
