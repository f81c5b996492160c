/// How a session behaves: copied when the session is made, and never read again.
public struct SessionConfiguration: Sendable {
    /// Fields that every request carries, unless it has its own of that name; `Name: value`.
    public var additionalHeaders: [String] = []
    public var userAgent = "dld-transfer/0.1"
    /// Of requests that name none. HTTP/1.1: this libcurl can report success for a broken HTTP/2 stream.
    public var httpVersion = HTTPVersion.http1
    /// Bytes of an answer that are kept in memory at most.
    public var maximumCollectedBytes = 256 << 20
    /// Milliseconds for name, connection and TLS together.
    public var connectTimeout: Int64 = 30_000
    /// Milliseconds without a byte in either direction.
    public var stallTimeout: Int64 = 60_000
    /// For requests that name none; absent: straight to the server. The environment's variables are not read.
    public var proxy: String?
    /// A file of certificates to trust in place of the system's.
    public var caFile: String?
    public var maximumRedirects = 20
    /// Which SSH servers are trusted, for requests that do not say; `nil`: none.
    public var hostKeys: HostKeyPolicy? = .userKnownHosts
    /// Threads that transfers are spread over.
    public var loops = 2
    /// Bytes that a download may write before it asks for a checkpoint.
    public var checkpointInterval: Int64 = 32 << 20
    /// Bytes that a download may be ahead of its last confirmed checkpoint: there it waits, so that no crash costs
    /// more than that. `nil`: any number; whoever sets it confirms checkpoints.
    public var checkpointLimit: Int64?

    public init() {}

    public static let `default` = SessionConfiguration()
}
