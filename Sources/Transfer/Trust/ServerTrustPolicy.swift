/// How the server behind a TLS connection proves that it is the right one.
public enum ServerTrustPolicy: Sendable {
    /// Where a server's certificate is looked for among those that were taken back.
    public enum Revocation: Sendable, Equatable {
        /// The server has to show a fresh word of its certificate's issuer (OCSP stapling, RFC 6066, section 8); one
        /// that shows none is refused.
        case stapledStatus
        /// Lists of its issuers in a file, PEM (RFC 5280, section 5); a chain without a list for it is refused.
        case list(path: String)
    }

    /// The chain leads to a certificate that the system, or the request's `caCertificates`, trusts and is in date.
    case performDefaultEvaluation(validateHost: Bool)
    /// As by default, and no issuer took it back.
    case performRevokedEvaluation(validateHost: Bool, revocation: Revocation)
    /// One of these certificates (PEM) is the server's own, or one that its chain leads to.
    ///
    /// With `validateCertificateChain` they are the only ones that are trusted; without it, the server's certificate
    /// must be one of them, whatever its dates and issuer. Without it the policy is refused for FTPS, as
    /// ``customEvaluation(_:)`` is.
    case pinCertificates(certificates: [String], validateCertificateChain: Bool, validateHost: Bool)
    /// The server's own key is one of these; with `validateCertificateChain` the default evaluation comes before that.
    case pinPublicKeys(publicKeys: [PublicKeyPin], validateCertificateChain: Bool, validateHost: Bool)
    /// Anyone is trusted: for tests alone.
    case disableEvaluation
    /// Says whether to trust what the server showed, once for each connection; called on a loop's thread, which must
    /// not be held up. For HTTP it may forgive what would be refused, for streams it can refuse alone. For FTPS the
    /// policy itself is refused, since FTP shows a certificate after the login.
    case customEvaluation(@Sendable (_ trust: ServerTrust, _ host: String) -> Bool)
}

/// Which policy holds for which host.
public struct ServerTrustPolicyManager: Sendable {
    /// By host in lower case, or `*.example.org` for the names beneath it.
    public let policies: [String: ServerTrustPolicy]

    /// Policies by host, in any case, or by `*.example.org` for the names beneath it.
    public init(policies: [String: ServerTrustPolicy]) {
        self.policies = Dictionary(policies.map { ($0.key.lowercased(), $0.value) }) { first, _ in first }
    }

    /// The policy for `host`: its own before that of a wildcard, and the longest wildcard first. `nil`: the default
    /// evaluation.
    ///
    /// A wildcard stands for one label or more.
    public func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        if policies.isEmpty { return nil }
        var host = Substring(host.lowercased())
        // A name may be written with the root's dot.
        if host.last == "." { host.removeLast() }
        if let own = policies[String(host)] { return own }
        while let dot = host.firstIndex(of: ".") {
            host = host[host.index(after: dot)...]
            if let policy = policies["*." + host] { return policy }
        }
        return nil
    }
}
