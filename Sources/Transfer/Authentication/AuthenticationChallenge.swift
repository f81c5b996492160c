/// The protection space in which a credential is valid (RFC 9110, section 11.5).
public struct ProtectionSpace: Sendable, Hashable {
    /// The authentication method that a server or proxy requests.
    public enum Method: Sendable, Hashable {
        /// The Basic scheme: a user name and a password (RFC 7617).
        case basic
        /// The Digest scheme: a user name and a digest computed from the password (RFC 7616).
        case digest
        /// The Bearer scheme: a token (RFC 6750).
        case bearer
        /// A trust decision about the server's certificate.
        case serverTrust
    }

    /// The host name, as given in the URL or in the proxy's URL.
    public var host: String
    /// The port of the server or proxy. It is always set, even for the default port.
    public var port: Int
    /// The scheme of the URL, such as `https`. For a proxy, the proxy's own scheme.
    public var scheme: String
    /// Whether the challenge comes from a proxy (`Proxy-Authenticate`, RFC 9110, section 11.7.1).
    public var isProxy: Bool
    /// The realm of the challenge; `nil` if it has none. A credential stored without a realm is valid for the whole
    /// server.
    public var realm: String?
    /// The authentication method. A ``CredentialStorage`` ignores it when it looks up a credential.
    public var method: Method

    /// Creates a protection space under which to store or look up a credential.
    public init(
        host: String, port: Int, scheme: String, isProxy: Bool = false, realm: String? = nil, method: Method
    ) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.isProxy = isProxy
        self.realm = realm
        self.method = method
    }
}

/// A request for a credential, or for a trust decision about the server itself.
public struct AuthenticationChallenge: Sendable {
    /// The space for which a credential is requested, or the server whose certificate is to be judged.
    public var protectionSpace: ProtectionSpace
    /// The credential that is used by default.
    public var proposedCredential: Credential?
    /// Whether the challenge comes from the origin of the request. A credential set on the request is sent to no other
    /// server.
    var isFromOrigin = true
    /// The number of credentials refused for this protection space in this attempt.
    public var previousFailureCount: Int
    /// The response that carried the challenge, if there was one.
    public var failureResponse: ResponseHead?
    /// The server's certificate, for a server trust challenge.
    public var serverTrust: ServerTrust?
}

/// The decision about an authentication challenge.
public enum ChallengeDisposition: Sendable, Equatable {
    /// The request continues with the supplied credential. For a server trust challenge, the server is trusted.
    case useCredential
    /// The challenge is handled as if there were no delegate: the proposed credential is used once, if there is one.
    case performDefaultHandling
    /// The request ends as cancelled.
    case cancelAuthenticationChallenge
    /// The request is sent without a credential, so the response with the challenge becomes the final response. For a
    /// server trust challenge, the server is refused.
    case rejectProtectionSpace
}
