/// What proves who asks.
public struct Credential: Sendable, Equatable, CustomStringConvertible {
    enum Kind: Sendable, Equatable {
        case password
        case bearer(String)
        case privateKey(path: String, passphrase: String)
    }

    var kind = Kind.password
    /// Empty for a token.
    public var user: String
    /// Empty for a token; never part of ``description``.
    public var password: String

    /// A name and its password, for the Basic (RFC 7617) and Digest (RFC 7616) schemes and for file servers.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// A token (RFC 6750), for HTTP alone.
    public static func bearer(_ token: String) -> Credential {
        var credential = Credential(user: "", password: "")
        credential.kind = .bearer(token)
        return credential
    }

    /// A key of SSH's (RFC 4252, section 7), for SFTP.
    ///
    /// - Parameters:
    ///   - user: who logs in.
    ///   - path: a file with the private key, of OpenSSH's form or PEM, read for each connection; the public one is
    ///     made from it. libssh2 1.10 has no use for RSA keys with most servers of today: take Ed25519.
    ///   - passphrase: of the file; empty for one that is not encrypted.
    public static func privateKey(user: String, path: String, passphrase: String = "") -> Credential {
        var credential = Credential(user: user, password: "")
        credential.kind = .privateKey(path: path, passphrase: passphrase)
        return credential
    }

    /// Never what is secret.
    public var description: String {
        switch kind {
        case .password: "Credential(\(user))"
        case .bearer: "Credential(bearer)"
        case .privateKey(let path, _): "Credential(\(user), key \(path))"
        }
    }
}
