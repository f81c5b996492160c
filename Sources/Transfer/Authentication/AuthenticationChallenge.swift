/// Where credentials are valid (RFC 9110, section 11.5).
public struct ProtectionSpace: Sendable, Hashable {
    /// How it wants them.
    public enum Method: Sendable, Hashable {
        case basic, digest, bearer
        /// The server's certificate is to be judged.
        case serverTrust
    }

    public var host: String
    public var port: Int
    /// `https`; of a proxy: its own.
    public var scheme: String
    public var isProxy: Bool
    public var realm: String?
    public var method: Method

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
    public var protectionSpace: ProtectionSpace
    /// What would be used if nobody said anything else.
    public var proposedCredential: Credential?
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
