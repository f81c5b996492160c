/// What proves who asks.
public struct Credential: Sendable, Equatable, CustomStringConvertible {
    enum Kind: Sendable, Equatable {
        case password
        case bearer(String)
    }

    var kind = Kind.password
    /// Empty for a token.
    public var user: String
    /// Empty for a token; never part of ``description``.
    public var password: String

    /// A name and its password, for the Basic (RFC 7617) and Digest (RFC 7616) schemes.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// A token (RFC 6750).
    public static func bearer(_ token: String) -> Credential {
        var credential = Credential(user: "", password: "")
        credential.kind = .bearer(token)
        return credential
    }

    /// Never what is secret.
    public var description: String {
        switch kind {
        case .password: "Credential(\(user))"
        case .bearer: "Credential(bearer)"
        }
    }
}
