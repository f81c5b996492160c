/// How a session behaves: copied when the session is made, and never read again.
public struct SessionConfiguration: Sendable {
    /// Fields that every request carries, unless it has its own of that name; `Name: value`.
    public var additionalHeaders: [String] = []
    public var userAgent = UserAgent.library
    /// Of requests that name none. HTTP/1.1: this libcurl can report success for a broken HTTP/2 stream.
    public var httpVersion = HTTPVersion.http1
    /// Bytes of an answer that are kept in memory at most.
    public var maximumCollectedBytes = 256 << 20
    /// Tasks that are at one host (scheme, name and port) at once; those that wait go by their priority. `nil`: any
    /// number.
    public var maximumConnectionsPerHost: Int?
    /// Bytes a second of all downloads and answers together; see ``Session/downloadLimiter``.
    public var downloadRate: Int64?
    /// Bytes a second of all uploads together; see ``Session/uploadLimiter``.
    public var uploadRate: Int64?
    /// Milliseconds for name, connection and TLS together.
    public var connectTimeout: Int64 = 30_000
    /// Milliseconds without a byte in either direction.
    public var stallTimeout: Int64 = 60_000
    /// For requests that name none; absent: straight to the server. The environment's variables are not read.
    public var proxy: String?
    /// A file of certificates to trust in place of the system's.
    public var caFile: String?
    /// Which servers are trusted; a host without a policy is evaluated by default.
    public var trustPolicies = ServerTrustPolicyManager(policies: [:])
    /// Who this client is to servers that want a certificate, by host in lower case.
    public var identities: [String: ClientIdentity] = [:]
    /// Asked for a credential where a request has none of its own. A copy of a configuration shares it.
    public var credentialStorage = CredentialStorage()
    public var maximumRedirects = 20
    /// Threads that transfers are spread over.
    public var loops = 2
    /// Bytes that a download may write before it asks for a checkpoint.
    public var checkpointInterval: Int64 = 32 << 20
    /// Bytes that a download may be ahead of its last confirmed checkpoint: there it waits, so that no crash costs
    /// more than that. `nil`: any number; whoever sets it confirms checkpoints.
    public var checkpointLimit: Int64?

    public init() {}

    func identity(for host: String) -> ClientIdentity? { identities.isEmpty ? nil : identities[host] }
}
