import Curl

/// The TLS options of exchanges and streams: the trusted certificates and the client's identity.
struct SecurityOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest
    /// The host; an IPv6 address is in brackets.
    let host: String
    let port: Int
    let trust: TrustOptions

    /// The minimum TLS version, 1.2, whatever the system's OpenSSL permits: older versions must not be used (RFC 8996).
    static let oldestTLS = 6  // CURL_SSLVERSION_TLSv1_2

    func apply(to easy: borrowing EasyHandle) throws(CurlError) {
        try easy.set(.tlsVersion, to: Self.oldestTLS)
        let certificates =
            request.caCertificates ?? configuration.hostTrust.value(forHost: host, port: port)?.caCertificates
        if let pem = certificates {
            try easy.set(.caCertificates, to: pem.utf8)
        } else if let file = configuration.caFile {
            try easy.set(.caFile, to: file)
        }
        try trust.apply(to: easy)
        if trust.isPinnedToCertificates || certificates != nil || configuration.caFile != nil {
            // Otherwise the system's certificate directory would be trusted in addition.
            try easy.clear(.caPath)
        }
        guard let identity = request.identity ?? configuration.identity(for: host) else { return }
        switch identity.form {
        case .pem(let certificate, let key):
            try easy.set(.certificate, to: certificate)
            try easy.set(.key, to: key)
        case .pkcs12(let bytes):
            try easy.set(.certificateType, to: "P12")
            try easy.set(.certificate, to: bytes)
        }
        if let passphrase = identity.passphrase { try easy.set(.keyPassphrase, to: passphrase) }
        // A connection or TLS session of one identity must not serve another.
        try easy.set(.freshConnection, to: true)
        try easy.set(.forbidReuse, to: true)
        try easy.set(.sessionCache, to: false)
    }
}
