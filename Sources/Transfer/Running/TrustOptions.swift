import Curl

/// What makes a server the right one for one exchange: as options of libcurl's, and as a judgement of our own where it
/// has none.
struct TrustOptions {
    let policy: ServerTrustPolicy
    /// A delegate wants to judge too.
    var asksDelegate = false
    /// The default evaluation failed, and a delegate is to say whether that matters.
    var isLenient = false

    /// Someone wants to see what the server shows, even where the default evaluation refuses it.
    var mayForgive: Bool {
        if case .customEvaluation = policy { true } else { asksDelegate }
    }

    private var comparesCertificates: Bool {
        if case .pinCertificates(_, validateCertificateChain: false, _) = policy { true } else { false }
    }

    /// Whether what the server shows has to be looked at before a request goes out.
    var judges: Bool { mayForgive || comparesCertificates }

    /// libcurl hands out no certificates of a kept connection, and cannot tell for whom one was trusted.
    private var needsOwnConnection: Bool { isLenient || comparesCertificates }

    /// The system's certificates count no more.
    var isPinnedToCertificates: Bool {
        if case .pinCertificates(_, validateCertificateChain: true, _) = policy { true } else { false }
    }

    func apply(to exchange: Exchange) throws(CurlError) {
        switch policy {
        case .performDefaultEvaluation(let validateHost): try check(exchange, chain: true, host: validateHost)
        case .performRevokedEvaluation(let validateHost, let revocation):
            try check(exchange, chain: true, host: validateHost)
            switch revocation {
            case .stapledStatus: try exchange.easy.set(.verifyStatus, to: true)
            case .list(let path): try exchange.easy.set(.crlFile, to: path)
            }
        case .pinCertificates(let certificates, let validatesChain, let validateHost):
            try check(exchange, chain: validatesChain, host: validateHost)
            // The only ones to trust; libcurl takes any certificate among them for the end of a chain.
            if validatesChain { try exchange.easy.set(.caCertificates, to: certificates.joined(separator: "\n").utf8) }
        case .pinPublicKeys(let keys, let validatesChain, let validateHost):
            try check(exchange, chain: validatesChain, host: validateHost)
            // Without a key nobody is trusted, where libcurl would trust everybody.
            let pins = keys.isEmpty ? [Self.nobody] : keys.map(\.description)
            try exchange.easy.set(.pinnedPublicKey, to: pins.joined(separator: ";"))
        case .disableEvaluation: try check(exchange, chain: false, host: false)
        // Where it fails, the closure is asked all the same, on another connection.
        case .customEvaluation: try check(exchange, chain: true, host: false)
        }
        if isLenient { try check(exchange, chain: false, host: false) }
        if needsOwnConnection {
            try exchange.easy.set(.freshConnection, to: true)
            try exchange.easy.set(.forbidReuse, to: true)
            try exchange.easy.set(.sessionCache, to: false)
        }
        if judges { try exchange.judgesCertificates() }
    }

    private static let nobody = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

    private func check(_ exchange: Exchange, chain: Bool, host: Bool) throws(CurlError) {
        try exchange.easy.set(.verifyPeer, to: chain)
        try exchange.easy.set(.verifyHost, to: host ? 2 : 0)
    }

    /// The policy's own verdict, where libcurl was not asked for one.
    func accepts(_ trust: ServerTrust) -> Bool {
        switch policy {
        case .customEvaluation(let evaluate): return evaluate(trust, trust.host)
        case .pinCertificates(let pinned, validateCertificateChain: false, _):
            guard let own = trust.certificates.first.flatMap(PEM.certificate) else { return false }
            return pinned.contains { PEM.certificate(in: $0) == own }
        default: return !isLenient
        }
    }
}
