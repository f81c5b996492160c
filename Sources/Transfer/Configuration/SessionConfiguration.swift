import Curl

/// The configuration of a session. It is copied when the session is created and not read again.
///
/// Its storages are references. Each new configuration has its own; copies of a configuration, and the sessions created
/// from them, share them.
public struct SessionConfiguration: Sendable {
    /// Header lines (`Name: value`) sent with every request that does not set the field itself. After a redirect to
    /// another origin, only fields without authentication data are sent. A line without a colon is not sent, and a line
    /// with a line end fails the request with ``TransferError/Code/invalidRequest``.
    public var additionalHeaders: [String] {
        get { fields.value.additionalHeaders }
        _modify { yield &fields.value.additionalHeaders }
    }
    /// The `User-Agent` of requests that do not set one.
    public var userAgent: String {
        get { fields.value.userAgent }
        _modify { yield &fields.value.userAgent }
    }
    /// The HTTP version of requests that do not set one. The default is HTTP/1.1, because this libcurl can report
    /// success for a broken HTTP/2 stream.
    public var httpVersion: HTTPVersion {
        get { fields.value.httpVersion }
        _modify { yield &fields.value.httpVersion }
    }
    /// The HTTP versions by host that override ``httpVersion``. They apply to the host contacted, including redirects
    /// and mirrors.
    public var httpVersions: HostTable<HTTPVersion> {
        get { fields.value.httpVersions }
        _modify { yield &fields.value.httpVersions }
    }
    /// The maximum number of bytes of a response that are kept in memory.
    public var maximumCollectedBytes: Int {
        get { fields.value.maximumCollectedBytes }
        _modify { yield &fields.value.maximumCollectedBytes }
    }
    /// The maximum number of concurrent tasks per host (scheme, name and port). Waiting tasks are admitted by priority.
    /// `nil` means no limit.
    public var maximumConnectionsPerHost: Int? {
        get { fields.value.maximumConnectionsPerHost }
        _modify { yield &fields.value.maximumConnectionsPerHost }
    }
    /// The limits by host that override ``maximumConnectionsPerHost``, at least 1.
    public var connectionLimits: HostTable<Int> {
        get { fields.value.connectionLimits }
        _modify { yield &fields.value.connectionLimits }
    }
    /// The rate limit in bytes per second of all downloads and responses together; see ``Session/downloadLimiter``.
    public var downloadRate: Int64? {
        get { fields.value.downloadRate }
        _modify { yield &fields.value.downloadRate }
    }
    /// The rate limit in bytes per second of all uploads together; see ``Session/uploadLimiter``.
    public var uploadRate: Int64? {
        get { fields.value.uploadRate }
        _modify { yield &fields.value.uploadRate }
    }
    /// A limiter that replaces the session's own, so that several sessions share one download rate.
    public var downloadLimiter: RateLimiter? {
        get { fields.value.downloadLimiter }
        _modify { yield &fields.value.downloadLimiter }
    }
    /// A limiter that replaces the session's own for uploads, like ``downloadLimiter``.
    public var uploadLimiter: RateLimiter? {
        get { fields.value.uploadLimiter }
        _modify { yield &fields.value.uploadLimiter }
    }
    /// The rate limits in bytes per second of all transfers with one host (scheme, name and port), within those of the
    /// session; see ``Session/setHostRates(_:)``.
    public var hostRates: HostTable<TransferRates> {
        get { fields.value.hostRates }
        _modify { yield &fields.value.hostRates }
    }
    /// The limit on the requests per second by host. Several sessions may share it; `nil` for no limit.
    public var requestPacer: RequestPacer? {
        get { fields.value.requestPacer }
        _modify { yield &fields.value.requestPacer }
    }
    /// The time-out in milliseconds for name resolution, connection and TLS together. For 0 or less, libcurl's default
    /// of five minutes applies.
    public var connectTimeout: Int64 {
        get { fields.value.connectTimeout }
        _modify { yield &fields.value.connectTimeout }
    }
    /// The time-out in milliseconds without a byte in either direction; 0 or less for none. It also limits slow
    /// responses: the head of a response must be complete within four times this time after its first line, and a body
    /// that is written to a file or kept in memory must arrive at 16 bytes per second at least.
    public var stallTimeout: Int64 {
        get { fields.value.stallTimeout }
        _modify { yield &fields.value.stallTimeout }
    }
    /// The time-outs by host that override ``connectTimeout``. They apply to the host contacted, including redirects and
    /// mirrors.
    public var connectTimeouts: HostTable<Int64> {
        get { fields.value.connectTimeouts }
        _modify { yield &fields.value.connectTimeouts }
    }
    /// The time-outs by host that override ``stallTimeout``, like ``connectTimeouts``.
    public var stallTimeouts: HostTable<Int64> {
        get { fields.value.stallTimeouts }
        _modify { yield &fields.value.stallTimeouts }
    }
    /// The proxy URL of requests that do not set one; `nil` for none. Proxy environment variables are ignored.
    public var proxy: String? {
        get { fields.value.proxy }
        _modify { yield &fields.value.proxy }
    }
    /// The servers that are contacted without ``proxy``. They do not apply to a request's own proxy.
    public var proxyExceptions: [ProxyException] {
        get { fields.value.proxyExceptions }
        _modify { yield &fields.value.proxyExceptions }
    }
    /// The proxy URLs by host, in place of ``proxy``; an empty text for a direct connection.
    public var hostProxies: HostTable<String> {
        get { fields.value.hostProxies }
        _modify { yield &fields.value.hostProxies }
    }
    /// The networks to which no connection is made, regardless of name, notation, redirect or response. A request to
    /// them fails with ``TransferError/Code/addressNotAllowed``.
    ///
    /// Each address is checked when a connection to it is about to be made, so that DNS rebinding cannot bypass the
    /// check. If a name has several addresses, the allowed ones are used. An IPv6 address that embeds an IPv4 address
    /// (mapped, NAT64 with its well-known prefixes, 6to4) is also checked as that address; `0.0.0.0` and `::` are
    /// checked as the local host. The session's ``proxy`` and ``hostProxies`` may be in any network, a request's own
    /// proxy may not. The
    /// target of a proxied request is checked if the URL contains an address. If the URL contains a name, the proxy is
    /// responsible for the check. Names behind `socks5://` or `socks4://`, which receive addresses, are resolved and
    /// checked here, and FTP by name is refused behind these. ``TransferRequest/ignoresDeniedNetworks`` exempts a
    /// request.
    public var deniedNetworks: [IPNetwork] {
        get { fields.value.deniedNetworks }
        _modify { yield &fields.value.deniedNetworks }
    }
    /// The path of a file of trusted certificates that replace the system's, for servers and for `https` proxies.
    public var caFile: String? {
        get { fields.value.caFile }
        _modify { yield &fields.value.caFile }
    }
    /// The server trust policies. A host without a policy is evaluated by default rules.
    public var trustPolicies: ServerTrustPolicyManager {
        get { fields.value.trustPolicies }
        _modify { yield &fields.value.trustPolicies }
    }
    /// The trusted certificates and pinned keys by host (name and port). A policy of ``trustPolicies`` for a host
    /// replaces the pinned keys.
    public var hostTrust: HostTable<HostTrust> {
        get { fields.value.hostTrust }
        _modify { yield &fields.value.hostTrust }
    }
    /// The client identities for servers that request a certificate, by host in lower case.
    public var identities: [String: ClientIdentity] {
        get { fields.value.identities }
        _modify { yield &fields.value.identities }
    }
    /// The storage of credentials for requests without their own. Copies of a configuration share it.
    public var credentialStorage: CredentialStorage {
        get { fields.value.credentialStorage }
        _modify { yield &fields.value.credentialStorage }
    }
    /// The storage of cookies that servers set and that requests send; its ``CookieStorage/acceptPolicy`` determines
    /// whether servers may set cookies. With `nil`, cookies are neither stored nor sent, apart from a request's own
    /// `Cookie` field.
    public var cookieStorage: CookieStorage? {
        get { fields.value.cookieStorage }
        _modify { yield &fields.value.cookieStorage }
    }
    /// Whether requests send the cookies of ``cookieStorage``. A request with its own `Cookie` field sends only that.
    public var httpShouldSetCookies: Bool {
        get { fields.value.httpShouldSetCookies }
        _modify { yield &fields.value.httpShouldSetCookies }
    }
    /// The cache of responses to data tasks (RFC 9111); see ``requestCachePolicy``. It is `nil` by default, which means
    /// no cache, because a cache uses as much memory as its capacity allows.
    ///
    /// Only complete responses that were collected in memory are stored, except those that the engine handles itself
    /// (redirects, challenges). Requests with their own identity or certificates bypass the cache.
    public var responseCache: ResponseCache? {
        get { fields.value.responseCache }
        _modify { yield &fields.value.responseCache }
    }
    /// The cache policy of requests that do not set one.
    public var requestCachePolicy: RequestCachePolicy {
        get { fields.value.requestCachePolicy }
        _modify { yield &fields.value.requestCachePolicy }
    }
    /// The maximum number of redirects of a request. The next one fails with ``TransferError/Code/tooManyRedirects``.
    public var maximumRedirects: Int {
        get { fields.value.maximumRedirects }
        _modify { yield &fields.value.maximumRedirects }
    }
    /// The host key policy of requests that do not set one; `nil` trusts no SSH server.
    public var hostKeys: HostKeyPolicy? {
        get { fields.value.hostKeys }
        _modify { yield &fields.value.hostKeys }
    }
    /// The substitute for HTTP servers in tests; `nil` sends every request to the network.
    public var transportStub: (any StubResponder)? {
        get { fields.value.transportStub }
        _modify { yield &fields.value.transportStub }
    }
    /// The number of threads that run transfers; 2 by default. A new task goes to the thread with the fewest tasks.
    ///
    /// Each thread keeps connections of its own for reuse. Requests that follow each other use the first thread, and so
    /// one connection to a host. A thread that has been without a request for a minute closes its connections.
    public var loops: Int {
        get { fields.value.loops }
        _modify { yield &fields.value.loops }
    }
    /// The number of bytes that a download may write before it requests a checkpoint; 32 MiB by default.
    public var checkpointInterval: Int64 {
        get { fields.value.checkpointInterval }
        _modify { yield &fields.value.checkpointInterval }
    }
    /// The number of bytes that a download may write beyond its last confirmed checkpoint. It pauses there, so that a
    /// crash loses no more. `nil` means no limit. If it is set, the owner of the downloads must confirm checkpoints.
    public var checkpointLimit: Int64? {
        get { fields.value.checkpointLimit }
        _modify { yield &fields.value.checkpointLimit }
    }

    /// The values of all properties.
    private struct Fields {
        var additionalHeaders: [String] = []
        var userAgent = UserAgent.library
        var httpVersion = HTTPVersion.http1
        var httpVersions = HostTable<HTTPVersion>()
        var maximumCollectedBytes = 256 << 20
        var maximumConnectionsPerHost: Int?
        var connectionLimits = HostTable<Int>()
        var downloadRate: Int64?
        var uploadRate: Int64?
        var downloadLimiter: RateLimiter?
        var uploadLimiter: RateLimiter?
        var hostRates = HostTable<TransferRates>()
        var requestPacer: RequestPacer?
        var connectTimeout: Int64 = 30_000
        var stallTimeout: Int64 = 60_000
        var connectTimeouts = HostTable<Int64>()
        var stallTimeouts = HostTable<Int64>()
        var proxy: String?
        var proxyExceptions: [ProxyException] = []
        var hostProxies = HostTable<String>()
        var deniedNetworks: [IPNetwork] = []
        var caFile: String?
        var trustPolicies = ServerTrustPolicyManager(policies: [:])
        var hostTrust = HostTable<HostTrust>()
        var identities: [String: ClientIdentity] = [:]
        var credentialStorage = CredentialStorage()
        var cookieStorage: CookieStorage? = CookieStorage()
        var httpShouldSetCookies = true
        var responseCache: ResponseCache?
        var requestCachePolicy = RequestCachePolicy.useProtocolCachePolicy
        var maximumRedirects = 20
        var hostKeys: HostKeyPolicy? = .userKnownHosts
        var transportStub: (any StubResponder)?
        var loops = 2
        var checkpointInterval: Int64 = 32 << 20
        var checkpointLimit: Int64?
    }

    /// A session passes its configuration to every part of a transfer, so a copy must be cheap.
    private var fields = CopyOnWrite(Fields())

    /// Creates a configuration with the default values.
    public init() {}

    /// Returns the HTTP version of `request` at `url`.
    func httpVersion(of request: TransferRequest, at url: CurlURL) -> HTTPVersion {
        request.httpVersion ?? httpVersions.value(forHost: url.host, port: url.port) ?? httpVersion
    }

    /// Returns the time-out in milliseconds for name resolution, connection and TLS of `request`.
    func connectTimeout(of request: TransferRequest) -> Int64 {
        let own = request.connectTimeout ?? request.timeout ?? value(of: connectTimeouts, for: request)
        return own.map(Self.connectTimeout) ?? connectTimeout
    }

    /// Returns a connect time-out as libcurl takes it. Five minutes are libcurl's default; `Int32.max` is the maximum
    /// that it accepts.
    static func connectTimeout(_ milliseconds: Int64) -> Int64 {
        milliseconds > 0 ? min(milliseconds, Int64(Int32.max)) : 300_000
    }

    /// Returns the time-out in milliseconds of `request` without a byte in either direction; 0 or less for none.
    func stallTimeout(of request: TransferRequest) -> Int64 {
        request.stallTimeout ?? request.timeout ?? value(of: stallTimeouts, for: request) ?? stallTimeout
    }

    private func value(of table: HostTable<Int64>, for request: TransferRequest) -> Int64? {
        table.isEmpty ? nil : request.origin.flatMap(table.value(forOrigin:))
    }

    var limitsConnections: Bool { maximumConnectionsPerHost != nil || !connectionLimits.isEmpty }

    func identity(for host: String) -> ClientIdentity? { identities.isEmpty ? nil : identities[host] }
}

extension SessionConfiguration {
    /// The ``connectTimeout`` as a duration. A new value is rounded up to whole milliseconds; a negative one counts as
    /// 0, and one beyond `Int64.max` milliseconds as that.
    public var connectTimeoutDuration: Duration {
        get { .milliseconds(connectTimeout) }
        set { connectTimeout = newValue.clampedMilliseconds }
    }

    /// The ``stallTimeout`` as a duration. A new value is converted as for ``connectTimeoutDuration``.
    public var stallTimeoutDuration: Duration {
        get { .milliseconds(stallTimeout) }
        set { stallTimeout = newValue.clampedMilliseconds }
    }
}

extension SessionConfiguration: CustomReflectable {
    /// The properties for `print`, `dump` and debuggers. Secrets are left out: the values of header fields that may
    /// contain one, user and password of the proxy, and the contents of storages, identities and the cache.
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("additionalHeaders", additionalHeaders.map(FieldRedaction.line)), ("userAgent", userAgent),
            ("httpVersion", httpVersion), ("httpVersions", httpVersions),
            ("maximumCollectedBytes", maximumCollectedBytes),
            ("maximumConnectionsPerHost", maximumConnectionsPerHost as Any), ("connectionLimits", connectionLimits),
            ("downloadRate", downloadRate as Any), ("uploadRate", uploadRate as Any),
            ("downloadLimiter", downloadLimiter as Any), ("uploadLimiter", uploadLimiter as Any),
            ("hostRates", hostRates), ("requestPacer", requestPacer as Any), ("connectTimeout", connectTimeout),
            ("stallTimeout", stallTimeout), ("connectTimeouts", connectTimeouts), ("stallTimeouts", stallTimeouts),
            ("proxy", proxy.map { URLRedaction.redact($0, hidesQuery: false) } as Any),
            ("proxyExceptions", proxyExceptions), ("hasHostProxies", !hostProxies.isEmpty),
            ("deniedNetworks", deniedNetworks), ("caFile", caFile as Any), ("trustPolicies", trustPolicies),
            ("hostTrust", hostTrust),
            ("identities", identities.keys.sorted()), ("hasCookieStorage", cookieStorage != nil),
            ("httpShouldSetCookies", httpShouldSetCookies), ("hasResponseCache", responseCache != nil),
            ("requestCachePolicy", requestCachePolicy), ("maximumRedirects", maximumRedirects),
            ("hostKeys", hostKeys as Any), ("hasTransportStub", transportStub != nil), ("loops", loops),
            ("checkpointInterval", checkpointInterval), ("checkpointLimit", checkpointLimit as Any),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
