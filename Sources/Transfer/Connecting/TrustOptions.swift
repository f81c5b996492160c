import Curl

/// The criteria by which one connection's server is trusted: options of libcurl, and checks made by the engine where
/// libcurl has none.
struct TrustOptions {
    let policy: ServerTrustPolicy
    /// Whether a delegate evaluates the server too.
    var asksDelegate = false
    /// Whether the task's own delegate evaluates the server. It is asked for each connection, whatever was
    /// decided for another task.
    var asksTask = false
    /// Whether libcurl alone evaluates the server, because its certificates are known to the engine too late.
    var isLeftToLibrary = false
    /// Whether the policy is that of pinned keys in ``SessionConfiguration/hostTrust``.
    var isPinnedByHost = false
    /// Whether the default evaluation failed and a delegate decides whether to accept the server.
    var isLenient = false

    /// Whether a delegate or custom evaluation may accept a certificate that the default evaluation rejects.
    var mayForgive: Bool {
        if case .customEvaluation = policy { true } else { asksDelegate }
    }

    private var comparesCertificates: Bool {
        if case .pinCertificates(_, validateCertificateChain: false, _) = policy { true } else { false }
    }

    /// Whether the keys of the chain are compared with pins. libcurl compares only the server's own key.
    private var comparesKeys: Bool {
        if case .pinPublicKeys = policy { !isLeftToLibrary } else { false }
    }

    /// Whether the server's certificates must be evaluated by the engine before a request is sent.
    var judges: Bool { mayForgive || comparesCertificates || comparesKeys }

    /// Whether the connection must not be shared. libcurl provides no certificates for a reused connection and does not
    /// record for which request one was trusted.
    var needsOwnConnection: Bool { isLenient || asksTask || comparesCertificates }

    /// Whether the pinned certificates replace the system's trusted certificates.
    var isPinnedToCertificates: Bool {
        if case .pinCertificates(_, validateCertificateChain: true, _) = policy { true } else { false }
    }

    /// Sets all options except for ``judges``, which the creator of the connection applies.
    func apply(to easy: borrowing EasyHandle) throws(CurlError) {
        switch policy {
        case .performDefaultEvaluation(let validateHost): try Self.check(easy, chain: true, host: validateHost)
        case .performRevokedEvaluation(let validateHost, let revocation):
            try Self.check(easy, chain: true, host: validateHost)
            switch revocation {
            case .stapledStatus: try easy.set(.verifyStatus, to: true)
            case .list(let path): try easy.set(.crlFile, to: path)
            }
        case .pinCertificates(let certificates, let validatesChain, let validateHost):
            try Self.check(easy, chain: validatesChain, host: validateHost)
            // Only these are trusted; libcurl accepts any of them as the end of a chain.
            if validatesChain { try easy.set(.caCertificates, to: certificates.joined(separator: "\n").utf8) }
        case .pinPublicKeys(let keys, let validatesChain, let validateHost):
            try Self.check(easy, chain: validatesChain, host: validateHost)
            if isLeftToLibrary {
                // Without pins, trust no server; libcurl would trust every server.
                let pins = keys.isEmpty ? [Self.nobody] : keys.map(\.description)
                try easy.set(.pinnedPublicKey, to: pins.joined(separator: ";"))
            } else {
                // A resumed session has no certificates.
                try easy.set(.sessionCache, to: false)
            }
        case .disableEvaluation: try Self.check(easy, chain: false, host: false)
        // If this evaluation fails, the closure is called nevertheless, on another connection.
        case .customEvaluation: try Self.check(easy, chain: true, host: false)
        }
        if isLenient { try Self.check(easy, chain: false, host: false) }
        if needsOwnConnection {
            try easy.set(.freshConnection, to: true)
            try easy.set(.forbidReuse, to: true)
            try easy.set(.sessionCache, to: false)
        }
    }

    private static let nobody = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private static func check(_ easy: borrowing EasyHandle, chain: Bool, host: Bool) throws(CurlError) {
        try easy.set(.verifyPeer, to: chain)
        try easy.set(.verifyHost, to: host ? 2 : 0)
    }

    /// Returns the certificates, in DER, among which a pinned one is looked for; empty if the policy pins none.
    func chain(of easy: borrowing EasyHandle) -> [[UInt8]] {
        switch policy {
        case .pinCertificates(let pinned, validateCertificateChain: false, _):
            easy.certificateChain(isVerified: false, issuers: pinned.compactMap(PEM.certificate))
        case .pinPublicKeys(_, let validatesChain, _): easy.certificateChain(isVerified: validatesChain)
        default: []
        }
    }

    /// Returns the policy's own verdict on certificates that libcurl was not asked to check.
    func accepts(_ trust: ServerTrust) -> Bool {
        switch policy {
        case .customEvaluation(let evaluate): return evaluate(trust, trust.host)
        case .pinCertificates(let pinned, validateCertificateChain: false, _):
            let pins = pinned.compactMap(PEM.certificate)
            return trust.chain.contains { pins.contains($0) }
        case .pinPublicKeys(let pins, let validatesChain, _):
            guard !(validatesChain && isLenient) else { return false }
            return trust.chain.contains { PublicKeyPin(der: $0).map(pins.contains) ?? false }
        default: return !isLenient
        }
    }
}

extension TrustOptions {
    /// Creates the options for a host, and determines whether a delegate evaluates servers of `task`.
    init(for host: String, port: Int, of task: any LoopTask, _ request: TransferRequest) {
        let session = task.session
        self.init(for: host, port: port, request, session.serverTrustPolicyManager, session.configuration)
        asksDelegate = session.delegate.decidesTrust || session.delegate.decidesOwnTrust(of: task)
    }

    /// Creates the options for a host: its policy, or else the keys that the configuration pins for it. A request that
    /// trusts any server decides where there is neither a policy nor trust in the configuration.
    init(
        for host: String, port: Int, _ request: TransferRequest, _ policies: ServerTrustPolicyManager,
        _ configuration: SessionConfiguration
    ) {
        let trust = configuration.hostTrust.value(forHost: host, port: port)
        if let policy = policies.serverTrustPolicy(forHost: host) {
            self.init(policy: policy)
        } else if let pins = trust?.pins, !pins.isEmpty {
            self.init(policy: .pinPublicKeys(publicKeys: pins, validateCertificateChain: true, validateHost: true))
            isPinnedByHost = true
        } else if request.trustsAnyServer, trust == nil {
            self.init(policy: .disableEvaluation)
        } else {
            self.init(policy: .performDefaultEvaluation(validateHost: true))
        }
    }
}

extension AuthenticationChallenge {
    /// Creates a challenge to evaluate the certificates of the server at `port`.
    init(judging trust: ServerTrust, port: Int, scheme: String) {
        self.init(
            protectionSpace: ProtectionSpace(host: trust.host, port: port, scheme: scheme, method: .serverTrust),
            proposedCredential: nil, previousFailureCount: 0, failureResponse: nil, serverTrust: trust)
    }
}
