/// A certificate and its key, with which a client says who it is (RFC 8446, section 4.4.2).
///
/// A connection that was made with one serves no other request.
public struct ClientIdentity: Sendable, Equatable, CustomStringConvertible {
    enum Form: Sendable, Equatable {
        case pem(certificate: [UInt8], key: [UInt8])
        case pkcs12([UInt8])
    }

    let form: Form
    let passphrase: String?

    /// - Parameters:
    ///   - certificate: PEM; the issuers between it and the root may follow it.
    ///   - key: PEM, possibly encrypted.
    ///   - passphrase: opens the key, where that is encrypted.
    public init(certificate: String, key: String, passphrase: String? = nil) {
        form = .pem(certificate: Array(certificate.utf8), key: Array(key.utf8))
        self.passphrase = passphrase
    }

    /// - Parameters:
    ///   - pkcs12: certificate and key in one (RFC 7292).
    ///   - passphrase: opens it.
    public init(pkcs12: [UInt8], passphrase: String? = nil) {
        form = .pkcs12(pkcs12)
        self.passphrase = passphrase
    }

    public var description: String { "ClientIdentity" }
}
