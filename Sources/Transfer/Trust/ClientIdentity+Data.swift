public import FoundationEssentials

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
