import Curl

/// What TLS is made with: whom to trust, and who this client is.
struct SecurityOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest
    let host: String
    let trust: TrustOptions

    func apply(to exchange: Exchange) throws(CurlError) {
        if let pem = request.caCertificates {
            try exchange.easy.set(.caCertificates, to: pem.utf8)
        } else if let file = configuration.caFile {
            try exchange.easy.set(.caFile, to: file)
        }
        try trust.apply(to: exchange)
        if trust.isPinnedToCertificates || request.caCertificates != nil || configuration.caFile != nil {
            // The system's directory would be trusted beside them.
            try exchange.easy.clear(.caPath)
        }
        guard let identity = request.identity ?? configuration.identity(for: host) else { return }
        switch identity.form {
        case .pem(let certificate, let key):
            try exchange.easy.set(.certificate, to: certificate)
            try exchange.easy.set(.key, to: key)
        case .pkcs12(let bytes):
            try exchange.easy.set(.certificateType, to: "P12")
            try exchange.easy.set(.certificate, to: bytes)
        }
        if let passphrase = identity.passphrase { try exchange.easy.set(.keyPassphrase, to: passphrase) }
        // What one identity may see must not be shown to another.
        try exchange.easy.set(.freshConnection, to: true)
        try exchange.easy.set(.forbidReuse, to: true)
        try exchange.easy.set(.sessionCache, to: false)
    }
}
