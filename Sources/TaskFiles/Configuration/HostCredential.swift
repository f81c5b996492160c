/// A credential for a host. It is a secret that is kept in memory only.
package enum HostCredential: Sendable, Equatable {
    /// A user name and a password, for HTTP and file servers.
    case password(user: String, password: String)
    /// A bearer token (RFC 6750).
    case bearer(String)
    /// A client certificate and its private key in PEM, for TLS.
    case certificate(String, key: String, passphrase: String?)
    /// A private key for SFTP, in OpenSSH or PEM format.
    case sshKey(user: String, key: String, passphrase: String?)

    /// The maximum number of bytes of a file with a credential.
    package static let maximumFileSize = 64 << 10

    static let nameExpectation =
        "the name of a file with a credential: 1 to 255 letters, digits and signs, without / and :"

    /// Returns whether `text` names a credential, by the rules of systemd.exec(5): a file name without a directory.
    static func isName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text != "." && text != ".."
            && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":") }
    }

    /// The user who logs in, if the credential has one.
    package var user: String? {
        switch self {
        case .password(let user, _), .sshKey(let user, _, _): user
        case .bearer, .certificate: nil
        }
    }
}

extension HostCredential: CustomStringConvertible, CustomReflectable {
    /// A description without secrets.
    package var description: String { "HostCredential" }

    /// A mirror without children, so that `dump` writes the ``description``.
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
