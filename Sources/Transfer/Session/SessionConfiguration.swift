import Curl

/// How a session behaves: copied when the session is made, and never read again.
///
/// The storages in it are references: every configuration that is made has its own, and a copy of it shares them, as
/// do the sessions that are made from either.
public struct SessionConfiguration: Sendable {
    /// Fields that every request carries, unless it has its own of that name; `Name: value`. Where a redirect leads to
    /// another origin, those go along that say nothing of who asks.
    public var additionalHeaders: [String] = []
    /// For requests without a `User-Agent` of their own.
    public var userAgent = UserAgent.library
    /// Of requests that name none. HTTP/1.1: this libcurl can report success for a broken HTTP/2 stream.
    public var httpVersion = HTTPVersion.http1
    /// In place of ``httpVersion``, by host: of whoever is asked, redirects and mirrors among them.
    public var httpVersions = HostTable<HTTPVersion>()
    /// Bytes of an answer that are kept in memory at most.
    public var maximumCollectedBytes = 256 << 20
    /// Tasks that are at one host (scheme, name and port) at once; those that wait go by their priority. `nil`: any
    /// number.
    public var maximumConnectionsPerHost: Int?
    /// In place of ``maximumConnectionsPerHost``, by host: at least 1.
    public var connectionLimits = HostTable<Int>()
    /// Bytes a second of all downloads and answers together; see ``Session/downloadLimiter``.
    public var downloadRate: Int64?
    /// Bytes a second of all uploads together; see ``Session/uploadLimiter``.
    public var uploadRate: Int64?
    /// In place of a limiter of the session's own, so that several sessions keep to one rate together.
    public var downloadLimiter: RateLimiter?
    /// As ``downloadLimiter``.
    public var uploadLimiter: RateLimiter?
    /// Bytes a second of all that goes to and comes from one host (scheme, name and port), within those of the session;
    /// see ``Session/setHostRates(_:)``.
    public var hostRates = HostTable<TransferRates>()
    /// Milliseconds for name, connection and TLS together; 0 or less: the five minutes that libcurl grants anyone.
    public var connectTimeout: Int64 = 30_000
    /// Milliseconds without a byte in either direction; 0 or less: as long as it takes. Nor may a server drip: the head of an
    /// answer has four times as long from its first line on, and a body that goes to a file or is kept in memory brings 16
    /// bytes a second.
    public var stallTimeout: Int64 = 60_000
    /// For requests that name none; absent: straight to the server. The environment's variables are not read.
    public var proxy: String?
    /// Networks that nothing is connected to, by whatever name, notation, redirect or server's word it would be; what is
    /// asked of them fails with ``TransferError/Code/addressNotAllowed``.
    ///
    /// Each address is judged when a connection to it is to be made, so that a name which has led elsewhere before helps
    /// nobody; of a name with several addresses the others serve. An IPv6 address that holds one of IPv4 (mapped, NAT64
    /// by its well-known prefixes, 6to4) is judged by that one as well, and `0.0.0.0` and `::` as the local host's.
    /// ``proxy`` may lie anywhere, a request's own may not. What a proxy is to connect to is judged where the URL holds an
    /// address, and is the proxy's to judge where it holds a name; but a name behind `socks5://` or `socks4://`, which get
    /// addresses, is looked up and judged here, and FTP by a name is refused behind these.
    public var deniedNetworks: [IPNetwork] = []
    /// A file of certificates to trust in place of the system's, in servers and in proxies of the scheme `https`.
    public var caFile: String?
    /// Which servers are trusted; a host without a policy is evaluated by default.
    public var trustPolicies = ServerTrustPolicyManager(policies: [:])
    /// Who this client is to servers that want a certificate, by host in lower case.
    public var identities: [String: ClientIdentity] = [:]
    /// Asked for a credential where a request has none of its own. A copy of a configuration shares it.
    public var credentialStorage = CredentialStorage()
    /// Cookies that servers set, and those to send; whether what servers set is kept is the storage's
    /// ``CookieStorage/acceptPolicy``. `nil`: none are kept and none sent but those of a request's own `Cookie` field.
    public var cookieStorage: CookieStorage? = CookieStorage()
    /// Whether requests carry what ``cookieStorage`` has for them. One with a `Cookie` field of its own carries that
    /// alone.
    public var httpShouldSetCookies = true
    /// Answers to data tasks that may be used again (RFC 9111); see ``requestCachePolicy``. `nil`, as it is by default:
    /// none are kept. It takes as much memory as its capacity allows, which nobody should have to pay unasked.
    ///
    /// Stored are whole answers that were kept in memory, those that act on the engine (redirects, challenges) excepted.
    /// A request with an identity or certificates of its own passes the cache by.
    public var responseCache: ResponseCache?
    /// Of requests that name none.
    public var requestCachePolicy = RequestCachePolicy.useProtocolCachePolicy
    /// Redirects that one request follows; the next one fails it with ``TransferError/Code/tooManyRedirects``.
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

    /// The defaults, as each property names them.
    public init() {}

    /// The version of HTTP that `request` is to go by at `url`.
    func httpVersion(of request: TransferRequest, at url: CurlURL) -> HTTPVersion {
        request.httpVersion ?? httpVersions.value(forHost: url.host, port: url.port) ?? httpVersion
    }

    var limitsConnections: Bool { maximumConnectionsPerHost != nil || !connectionLimits.isEmpty }

    func identity(for host: String) -> ClientIdentity? { identities.isEmpty ? nil : identities[host] }
}
