/// Where credentials are valid (RFC 9110, section 11.5).
public struct ProtectionSpace: Sendable, Hashable {
    /// How it wants them.
    public enum Method: Sendable, Hashable {
        /// A name and password (RFC 7617).
        case basic
        /// A name and a digest that the password goes into (RFC 7616).
        case digest
        /// A token (RFC 6750).
        case bearer
        /// The server's certificate is to be judged.
        case serverTrust
    }

    /// As the URL or the proxy names it.
    public var host: String
    /// Of the server or proxy; never left out.
    public var port: Int
    /// `https`; of a proxy: its own.
    public var scheme: String
    /// Whether it is a proxy that asks (`Proxy-Authenticate`, RFC 9110, section 11.7.1).
    public var isProxy: Bool
    /// As the challenge names it; `nil` where it names none. A credential stored without one is for all of its server.
    public var realm: String?
    /// Does not count where a ``CredentialStorage`` looks for a credential.
    public var method: Method

    /// A space to keep a credential for, or to look one up.
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

/// A server wants to know who asks, or is itself to be judged.
public struct AuthenticationChallenge: Sendable {
    /// Where the credential is wanted, or which server is to be judged.
    public var protectionSpace: ProtectionSpace
    /// What would be used if nobody said anything else.
    public var proposedCredential: Credential?
    /// It comes from where the request was meant to go: what was given to the request is not for others.
    var isFromOrigin = true
    /// How often a credential has been refused here in this attempt.
    public var previousFailureCount: Int
    /// The answer that asks, where one does.
    public var failureResponse: ResponseHead?
    /// What the server showed, where it is to be judged.
    public var serverTrust: ServerTrust?
}

/// What to do about a challenge.
public enum ChallengeDisposition: Sendable, Equatable {
    /// Go on with the credential that comes along; for a server's trust: trust it.
    case useCredential
    /// As if nobody had been asked.
    case performDefaultHandling
    /// End the request as cancelled.
    case cancelAuthenticationChallenge
    /// Give no credential: the answer that asked is the final one; a server's trust is refused.
    case rejectProtectionSpace
}
