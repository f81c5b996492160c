import Curl

/// What makes a server the right one for one connection: as options of libcurl's, and as a judgement of our own where it
/// has none.
struct TrustOptions {
    let policy: ServerTrustPolicy
    /// A delegate wants to judge too.
    var asksDelegate = false
    /// That is the task's own, and asked whoever else was.
    var asksTask = false
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
    private var needsOwnConnection: Bool { isLenient || asksTask || comparesCertificates }

    /// The system's certificates count no more.
    var isPinnedToCertificates: Bool {
        if case .pinCertificates(_, validateCertificateChain: true, _) = policy { true } else { false }
    }

    /// All but ``judges``, which is for whoever makes the connection.
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
            // The only ones to trust; libcurl takes any certificate among them for the end of a chain.
            if validatesChain { try easy.set(.caCertificates, to: certificates.joined(separator: "\n").utf8) }
        case .pinPublicKeys(let keys, let validatesChain, let validateHost):
            try Self.check(easy, chain: validatesChain, host: validateHost)
            // Without a key nobody is trusted, where libcurl would trust everybody.
            let pins = keys.isEmpty ? [Self.nobody] : keys.map(\.description)
            try easy.set(.pinnedPublicKey, to: pins.joined(separator: ";"))
        case .disableEvaluation: try Self.check(easy, chain: false, host: false)
        // Where it fails, the closure is asked all the same, on another connection.
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
