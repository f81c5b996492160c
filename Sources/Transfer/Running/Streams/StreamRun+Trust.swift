import Curl

/// The evaluation of a stream peer's TLS certificates.
///
/// libcurl checks them against the policy for the host. Unlike an exchange, a stream has no second connection with a
/// more lenient check, and libcurl 7.88.1 loads no certificate authorities if verification is off. A custom evaluation
/// and a delegate can therefore reject a peer that the default evaluation trusts, but cannot accept one that it
/// rejects. For a peer whose certificate leads to no known authority, use `caCertificates` and pins. Before the
/// verdict, no received bytes are delivered and none are written.
extension StreamRun {
    /// The peer's host in URL notation.
    var trustHost: String {
        let host = peer?.host ?? ""
        return host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
    }

    func trustOptions() -> TrustOptions {
        TrustOptions(for: trustHost, port: peer?.port ?? 0, of: task, task.originalRequest)
    }

    func setSecurity(of trust: TrustOptions, on easy: borrowing EasyHandle) throws(CurlError) {
        try SecurityOptions(
            configuration: session.configuration, request: task.originalRequest, host: trustHost,
            port: peer?.port ?? 0, trust: trust
        ).apply(to: easy)
        // No other handle gets a stream's connection, and with this option set libcurl would close it as soon as it is
        // established.
        try easy.set(.forbidReuse, to: false)
        guard trust.judges else { return }
        try easy.set(.certificateInformation, to: true)
        // A resumed session provides no certificates.
        try easy.set(.sessionCache, to: false)
    }

    /// Evaluates the peer's certificates.
    ///
    /// - Parameters:
    ///   - chain: see ``ServerTrust/chain``.
    ///   - verdict: called once on the loop's thread with the reason for a rejection, or `nil` if the peer is
    ///     trusted.
    func evaluate(
        _ certificates: ServerCertificates, _ chain: [[UInt8]], under trust: TrustOptions, port: Int,
        verdict: @escaping (TransferError?) -> Void
    ) {
        guard trust.judges else { return verdict(nil) }
        let host = trustHost
        guard !certificates.chain.isEmpty else { return verdict(.untrusted(host)) }
        let shown = ServerTrust(
            host: host, certificates: certificates.chain, isChainValid: true, chain: chain,
            isPinnedByHost: trust.isPinnedByHost)
        func policyDecision() -> TransferError? { trust.accepts(shown) ? nil : .untrusted(shown) }
        guard trust.asksDelegate else { return verdict(policyDecision()) }
        let challenge = AuthenticationChallenge(judging: shown, port: port, scheme: "tcp")
        question = { decision in
            guard case .challenge(let disposition, _) = decision else { return verdict(policyDecision()) }
            switch disposition {
            case .useCredential: verdict(nil)
            case .performDefaultHandling: verdict(policyDecision())
            case .cancelAuthenticationChallenge: verdict(.cancelled)
            case .rejectProtectionSpace: verdict(.untrusted(shown))
            }
        }
        let run = RunReference(self, of: task, on: core)
        let reply = Reply(otherwise: .challenge(.performDefaultHandling, nil)) { decision in
            run.perform { $0.answer(decision) }
        }
        session.delegate.task(task, didReceive: challenge) { reply.give(.challenge($0, $1)) }
        if let decision = reply.immediateDecision() { answer(decision) }
    }

    private func answer(_ decision: Decision) {
        let question = question
        self.question = nil
        question?(decision)
    }
}
