/// A credential that authenticates a client.
public struct Credential: Sendable, Equatable, CustomStringConvertible {
    enum Kind: Sendable, Equatable {
        case password
        case bearer(String)
        case privateKey(path: String, passphrase: String)
        case privateKeyText(String, passphrase: String)
    }

    var kind = Kind.password
    /// The user name; empty for a token.
    public var user: String
    /// The password; empty for a token. ``description`` never contains it.
    public var password: String

    /// Whether the credential is a bearer token.
    var isToken: Bool { if case .bearer = kind { true } else { false } }

    /// Creates a user name and password, for the Basic (RFC 7617) and Digest (RFC 7616) schemes and for file servers.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Returns a bearer token (RFC 6750), for HTTP only.
    public static func bearer(_ token: String) -> Credential {
        var credential = Credential(user: "", password: "")
        credential.kind = .bearer(token)
        return credential
    }

    /// Returns an SSH private key (RFC 4252, section 7), for SFTP.
    ///
    /// - Parameters:
    ///   - user: The login name.
    ///   - path: The path of the private key file, in OpenSSH or PEM format. The file is read for each connection, and
    ///     the public key is derived from it. With libssh2 1.10, RSA keys are unusable with most current servers: use
    ///     Ed25519.
    ///   - passphrase: The passphrase of the file; empty if the file is not encrypted.
    public static func privateKey(user: String, path: String, passphrase: String = "") -> Credential {
        var credential = Credential(user: user, password: "")
        credential.kind = .privateKey(path: path, passphrase: passphrase)
        return credential
    }

    /// Returns an SSH private key that is kept in memory, for SFTP; see ``privateKey(user:path:passphrase:)``.
    ///
    /// - Parameters:
    ///   - user: The login name.
    ///   - text: The private key in OpenSSH or PEM format.
    ///   - passphrase: The passphrase of the key; empty if it is not encrypted.
    public static func privateKey(user: String, text: String, passphrase: String = "") -> Credential {
        var credential = Credential(user: user, password: "")
        credential.kind = .privateKeyText(text, passphrase: passphrase)
        return credential
    }

    /// A description without secrets.
    public var description: String {
        switch kind {
        case .password: "Credential(\(user))"
        case .bearer: "Credential(bearer)"
        case .privateKey(let path, _): "Credential(\(user), key \(path))"
        case .privateKeyText: "Credential(\(user), key)"
        }
    }
}

extension Credential: CustomReflectable {
    /// A mirror without children, so that `dump` writes the ``description``, which contains no secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
