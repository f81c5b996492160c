public import FoundationEssentials

/// A client certificate and its private key for TLS client authentication (RFC 8446, section 4.4.2).
///
/// A connection made with an identity serves no other request.
public struct ClientIdentity: Sendable, Equatable, CustomStringConvertible {
    enum Form: Sendable, Equatable {
        case pem(certificate: [UInt8], key: [UInt8])
        case pkcs12([UInt8])
    }

    let form: Form
    let passphrase: String?

    /// Creates an identity from PEM texts.
    ///
    /// - Parameters:
    ///   - certificate: the certificate in PEM, optionally followed by intermediate certificates.
    ///   - key: the private key in PEM, optionally encrypted.
    ///   - passphrase: the passphrase of an encrypted key.
    public init(certificate: String, key: String, passphrase: String? = nil) {
        form = .pem(certificate: Array(certificate.utf8), key: Array(key.utf8))
        self.passphrase = passphrase
    }

    /// Creates an identity from a PKCS #12 file.
    ///
    /// - Parameters:
    ///   - pkcs12: the contents of the file, with certificate and key (RFC 7292).
    ///   - passphrase: the passphrase of the file.
    public init(pkcs12: [UInt8], passphrase: String? = nil) {
        form = .pkcs12(pkcs12)
        self.passphrase = passphrase
    }

    public var description: String { "ClientIdentity" }
}

extension ClientIdentity: CustomReflectable {
    /// A mirror without children, so that `dump` writes the ``description``, which contains no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension ClientIdentity {
    /// Creates an identity from a PKCS #12 file.
    ///
    /// - Parameters:
    ///   - pkcs12: the contents of the file, with certificate and key (RFC 7292).
    ///   - passphrase: the passphrase of the file.
    @_disfavoredOverload
    public init(pkcs12: Data, passphrase: String? = nil) {
        self.init(pkcs12: Array(pkcs12), passphrase: passphrase)
    }
}
