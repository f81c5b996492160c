import Curl

/// The configuration of a session. It is copied when the session is created and not read again.
///
/// Its storages are references. Each new configuration has its own; copies of a configuration, and the sessions created
/// from them, share them.
public struct SessionConfiguration: Sendable {
    /// Header lines (`Name: value`) sent with every request that does not set the field itself. After a redirect to
    /// another origin, only fields without authentication data are sent.
    public var additionalHeaders: [String] = []
    /// The `User-Agent` of requests that do not set one.
    public var userAgent = UserAgent.library
    /// The HTTP version of requests that do not set one. The default is HTTP/1.1, because this libcurl can report
    /// success for a broken HTTP/2 stream.
    public var httpVersion = HTTPVersion.http1
    /// The HTTP versions by host that override ``httpVersion``. They apply to the host contacted, including redirects
    /// and mirrors.
    public var httpVersions = HostTable<HTTPVersion>()
    /// The maximum number of bytes of a response that are kept in memory.
    public var maximumCollectedBytes = 256 << 20
    /// The maximum number of concurrent tasks per host (scheme, name and port). Waiting tasks are admitted by priority.
    /// `nil` means no limit.
    public var maximumConnectionsPerHost: Int?
    /// The limits by host that override ``maximumConnectionsPerHost``, at least 1.
    public var connectionLimits = HostTable<Int>()
    /// The rate limit in bytes per second of all downloads and responses together; see ``Session/downloadLimiter``.
    public var downloadRate: Int64?
    /// The rate limit in bytes per second of all uploads together; see ``Session/uploadLimiter``.
    public var uploadRate: Int64?
    /// A limiter that replaces the session's own, so that several sessions share one download rate.
    public var downloadLimiter: RateLimiter?
    /// A limiter that replaces the session's own for uploads, like ``downloadLimiter``.
    public var uploadLimiter: RateLimiter?
    /// The rate limits in bytes per second of all transfers with one host (scheme, name and port), within those of the
    /// session; see ``Session/setHostRates(_:)``.
    public var hostRates = HostTable<TransferRates>()
    /// The time-out in milliseconds for name resolution, connection and TLS together. For 0 or less, libcurl's default
    /// of five minutes applies.
    public var connectTimeout: Int64 = 30_000
    /// The time-out in milliseconds without a byte in either direction; 0 or less for none. It also limits slow
    /// responses: the head of a response must be complete within four times this time after its first line, and a body
    /// that is written to a file or kept in memory must arrive at 16 bytes per second at least.
    public var stallTimeout: Int64 = 60_000
    /// The proxy URL of requests that do not set one; `nil` for none. Proxy environment variables are ignored.
    public var proxy: String?
    /// The networks to which no connection is made, regardless of name, notation, redirect or response. A request to
    /// them fails with ``TransferError/Code/addressNotAllowed``.
    ///
    /// Each address is checked when a connection to it is about to be made, so that DNS rebinding cannot bypass the
    /// check. If a name has several addresses, the allowed ones are used. An IPv6 address that embeds an IPv4 address
    /// (mapped, NAT64 with its well-known prefixes, 6to4) is also checked as that address; `0.0.0.0` and `::` are
    /// checked as the local host. The session's ``proxy`` may be in any network, a request's own proxy may not. The
    /// target of a proxied request is checked if the URL contains an address. If the URL contains a name, the proxy is
    /// responsible for the check. Names behind `socks5://` or `socks4://`, which receive addresses, are resolved and
    /// checked here, and FTP by name is refused behind these.
    public var deniedNetworks: [IPNetwork] = []
    /// The path of a file of trusted certificates that replace the system's, for servers and for `https` proxies.
    public var caFile: String?
    /// The server trust policies. A host without a policy is evaluated by default rules.
    public var trustPolicies = ServerTrustPolicyManager(policies: [:])
    /// The client identities for servers that request a certificate, by host in lower case.
    public var identities: [String: ClientIdentity] = [:]
    /// The storage of credentials for requests without their own. Copies of a configuration share it.
    public var credentialStorage = CredentialStorage()
    /// The storage of cookies that servers set and that requests send; its ``CookieStorage/acceptPolicy`` determines
    /// whether servers may set cookies. With `nil`, cookies are neither stored nor sent, apart from a request's own
    /// `Cookie` field.
    public var cookieStorage: CookieStorage? = CookieStorage()
    /// Whether requests send the cookies of ``cookieStorage``. A request with its own `Cookie` field sends only that.
    public var httpShouldSetCookies = true
    /// The cache of responses to data tasks (RFC 9111); see ``requestCachePolicy``. It is `nil` by default, which means
    /// no cache, because a cache uses as much memory as its capacity allows.
    ///
    /// Only complete responses that were collected in memory are stored, except those that the engine handles itself
    /// (redirects, challenges). Requests with their own identity or certificates bypass the cache.
    public var responseCache: ResponseCache?
    /// The cache policy of requests that do not set one.
    public var requestCachePolicy = RequestCachePolicy.useProtocolCachePolicy
    /// The maximum number of redirects of a request. The next one fails with ``TransferError/Code/tooManyRedirects``.
    public var maximumRedirects = 20
    /// The host key policy of requests that do not set one; `nil` trusts no SSH server.
    public var hostKeys: HostKeyPolicy? = .userKnownHosts
    /// The substitute for HTTP servers in tests; `nil` sends every request to the network.
    public var transportStub: (any TransportStub)?
    /// The number of threads that run transfers.
    public var loops = 2
    /// The number of bytes that a download may write before it requests a checkpoint.
    public var checkpointInterval: Int64 = 32 << 20
    /// The number of bytes that a download may write beyond its last confirmed checkpoint. It pauses there, so that a
    /// crash loses no more. `nil` means no limit. If it is set, the owner of the downloads must confirm checkpoints.
    public var checkpointLimit: Int64?

    /// Creates a configuration with the default values.
    public init() {}

    /// Returns the HTTP version of `request` at `url`.
    func httpVersion(of request: TransferRequest, at url: CurlURL) -> HTTPVersion {
        request.httpVersion ?? httpVersions.value(forHost: url.host, port: url.port) ?? httpVersion
    }

    /// Returns the time-out in milliseconds for name resolution, connection and TLS of `request`.
    func connectTimeout(of request: TransferRequest) -> Int64 {
        guard let timeout = request.timeout else { return connectTimeout }
        return Self.connectTimeout(timeout)
    }

    /// Returns a connect time-out as libcurl takes it. Five minutes are libcurl's default; `Int32.max` is the maximum
    /// that it accepts.
    static func connectTimeout(_ milliseconds: Int64) -> Int64 {
        milliseconds > 0 ? min(milliseconds, Int64(Int32.max)) : 300_000
    }

    /// Returns the time-out in milliseconds of `request` without a byte in either direction; 0 or less for none.
    func stallTimeout(of request: TransferRequest) -> Int64 { request.timeout ?? stallTimeout }

    var limitsConnections: Bool { maximumConnectionsPerHost != nil || !connectionLimits.isEmpty }

    func identity(for host: String) -> ClientIdentity? { identities.isEmpty ? nil : identities[host] }
}
