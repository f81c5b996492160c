/// The criteria by which the server of a TLS connection is authenticated.
public enum ServerTrustPolicy: Sendable {
    /// The source of information about revoked certificates.
    public enum Revocation: Sendable, Equatable {
        /// A current OCSP response from the certificate's issuer, stapled by the server (RFC 6066, section 8). A server
        /// without one is rejected.
        case stapledStatus
        /// The path of a PEM file with the issuers' revocation lists (RFC 5280, section 5). A chain without a matching
        /// list is rejected.
        case list(path: String)
    }

    /// The default evaluation: the chain leads to a certificate trusted by the system or in the request's
    /// `caCertificates`, and is within its validity period.
    case performDefaultEvaluation(validateHost: Bool)
    /// The default evaluation with an additional check that the certificate is not revoked.
    case performRevokedEvaluation(validateHost: Bool, revocation: Revocation)
    /// Pinned certificates (PEM): one of them must be in the server's chain, as its own certificate, as an intermediate
    /// or as the root.
    ///
    /// With `validateCertificateChain`, only these certificates are trusted. Without it, a chain of signatures must
    /// lead from the server's own certificate to one of them, whatever their dates; the policy is then rejected for
    /// FTPS, like ``customEvaluation(_:)``.
    case pinCertificates(certificates: [String], validateCertificateChain: Bool, validateHost: Bool)
    /// Pinned public keys: one of them must be the key of a certificate in the server's chain.
    ///
    /// With `validateCertificateChain`, the default evaluation must succeed first, and its chain counts, root included.
    /// Without it, the certificates count that the server sends, as far as a chain of signatures leads to them. For
    /// FTPS only the server's own key counts.
    case pinPublicKeys(publicKeys: [PublicKeyPin], validateCertificateChain: Bool, validateHost: Bool)
    /// A policy that trusts every server; for tests only.
    case disableEvaluation
    /// A closure that decides whether to trust a server, called once per connection on a loop's thread, which it must
    /// not block. For HTTP it may accept a server that would be rejected; for streams it can only reject. FTPS rejects
    /// the policy, because libcurl provides the certificate after the login.
    case customEvaluation(@Sendable (_ trust: ServerTrust, _ host: String) -> Bool)
}

/// The trust policies by host.
public struct ServerTrustPolicyManager: Sendable {
    /// The policies by host name in lower case, or by `*.example.org` for subdomains.
    public let policies: [String: ServerTrustPolicy]

    /// Creates a manager from policies by host name in any case, or by `*.example.org` for subdomains.
    public init(policies: [String: ServerTrustPolicy]) {
        self.policies = Dictionary(policies.map { ($0.key.lowercased(), $0.value) }) { first, _ in first }
    }

    /// Returns the policy for `host`: that of the exact name, or else that of the longest matching wildcard. Returns
    /// `nil` if the default evaluation applies.
    ///
    /// A wildcard matches one or more labels.
    public func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        if policies.isEmpty { return nil }
        var host = Substring(host.lowercased())
        // The host may have a trailing dot for the root.
        if host.last == "." { host.removeLast() }
        if let own = policies[String(host)] { return own }
        while let dot = host.firstIndex(of: ".") {
            host = host[host.index(after: dot)...]
            if let policy = policies["*." + host] { return policy }
        }
        return nil
    }
}
