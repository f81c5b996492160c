import Curl

/// Whom a connection trusts under TLS: the one place where that becomes options of libcurl, for exchanges and for
/// streams.
enum TrustOptions {
    static func apply(
        of request: TransferRequest, _ configuration: SessionConfiguration, to easy: borrowing EasyHandle
    ) throws(CurlError) {
        if let pem = request.caCertificates {
            try easy.set(.caCertificates, to: pem.utf8)
        } else if let file = configuration.caFile {
            try easy.set(.caFile, to: file)
        }
    }
}
