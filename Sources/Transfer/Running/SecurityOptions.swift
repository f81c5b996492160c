import Curl

/// What TLS is spoken with, for exchanges and for streams: whom to trust, and who we are.
struct SecurityOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest
    /// IPv6 in brackets.
    let host: String
    let trust: TrustOptions

    /// TLS 1.2, whatever the machine's OpenSSL would take: older versions are not to be used (RFC 8996).
    static let oldestTLS = 6  // CURL_SSLVERSION_TLSv1_2

    func apply(to easy: borrowing EasyHandle) throws(CurlError) {
        try easy.set(.tlsVersion, to: Self.oldestTLS)
        if let pem = request.caCertificates {
            try easy.set(.caCertificates, to: pem.utf8)
        } else if let file = configuration.caFile {
            try easy.set(.caFile, to: file)
        }
        try trust.apply(to: easy)
        if trust.isPinnedToCertificates || request.caCertificates != nil || configuration.caFile != nil {
            // The system's directory would be trusted beside them.
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
        // What one identity may see must not be shown to another.
        try easy.set(.freshConnection, to: true)
        try easy.set(.forbidReuse, to: true)
        try easy.set(.sessionCache, to: false)
    }
}
