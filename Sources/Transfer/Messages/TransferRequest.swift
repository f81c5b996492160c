import Curl
public import HTTPTypes

/// A request for a transfer.
///
/// The URL is text and is validated when the request starts. An invalid URL is reported through the request's handlers,
/// like every other failure.
///
/// `ftp`, `ftps` and `sftp` transfer a single file, whose URL does not end in a slash. A download resumes if the
/// server's size and time of the file are unchanged; otherwise it starts again. An upload is written to
/// `.NAME.dld-….tmp` beside the file and renamed when it is complete. Some servers do not rename onto an existing file,
/// such as SFTP with libssh2 1.10. There, the existing file is removed first, so for a moment there is none. If the
/// server cannot rename at all, the upload is written directly to the final name, where a partial file is visible
/// meanwhile. An interrupted upload starts again. Methods, header fields, redirects and validation apply to HTTP only.
public struct TransferRequest: Sendable {
    /// The absolute URL. It may contain secrets, which the engine's messages and descriptions omit.
    public var url: String {
        get { fields.value.url }
        _modify { yield &fields.value.url }
    }
    /// The scheme, name and port of the server; `nil` for an invalid URL.
    package var origin: String? { try? CurlURL(url).origin }
    /// The request method; `GET` by default.
    public var method: HTTPRequest.Method {
        get { fields.value.method }
        _modify { yield &fields.value.method }
    }
    /// The fields to send in addition to those that the engine sets (`Range`, `If-Range`, `Accept-Encoding`, framing).
    /// A POST whose fields name no `Content-Type` is sent with `application/octet-stream`.
    public var headerFields: HTTPFields {
        get { fields.value.headerFields }
        _modify { yield &fields.value.headerFields }
    }
    /// The fields of ``headers`` that HTTP does not permit.
    var invalidHeaders: [InvalidHeader] {
        get { fields.value.invalidHeaders }
        _modify { yield &fields.value.invalidHeaders }
    }
    /// The credential, sent only to this URL's origin and without a challenge: a user name and password by the Basic
    /// scheme (RFC 7617), a token as a bearer token. The engine responds to a Digest challenge if the server sends one.
    /// For a file server it is the login and overrides the URL's own.
    public var credential: Credential? {
        get { fields.value.credential }
        _modify { yield &fields.value.credential }
    }
    /// Whether a user name and password are sent by `http` only after the server asked for them, so that a server which
    /// asks for a digest (RFC 7616) never receives the password itself. A server that hides what it has from clients
    /// without a login, and asks for none, then does not recognise the client.
    public var awaitsChallenge: Bool {
        get { fields.value.awaitsChallenge }
        _modify { yield &fields.value.awaitsChallenge }
    }
    /// The logins for other servers than the request's own, in order of precedence, which are sent after a redirect,
    /// and for mirrors and lists.
    package var logins: [HostTable<ServerLogin>] {
        get { fields.value.logins }
        _modify { yield &fields.value.logins }
    }
    /// The client identity for this URL's origin only; `nil` for the session's identity for the host.
    public var identity: ClientIdentity? {
        get { fields.value.identity }
        _modify { yield &fields.value.identity }
    }
    /// The proxy URL (`http://`, `https://`, `socks5://` or `socks5h://`); `nil` for the session's proxy. The URL
    /// contains the user name and password, which answer the proxy's challenge by the Basic or Digest scheme; an empty
    /// text stands for no proxy. Challenges to requests for a tunnel (to `https` and file servers, and for streams) are
    /// not delivered.
    public var proxy: String? {
        get { fields.value.proxy }
        _modify { yield &fields.value.proxy }
    }
    /// The trusted certificates in place of the session's, as PEM text.
    public var caCertificates: String? {
        get { fields.value.caCertificates }
        _modify { yield &fields.value.caCertificates }
    }
    /// Whether the certificates of servers are not verified. Where the session has trust policies or
    /// ``SessionConfiguration/hostTrust`` for a host, these count nevertheless. Resume data do not keep this property.
    public var trustsAnyServer: Bool {
        get { fields.value.trustsAnyServer }
        _modify { yield &fields.value.trustsAnyServer }
    }
    /// The maximum body size in bytes. A larger body fails with ``TransferError/Code/tooLarge``.
    public var maximumBodySize: Int64? {
        get { fields.value.maximumBodySize }
        _modify { yield &fields.value.maximumBodySize }
    }
    /// The statuses whose response makes an empty file, such as 204 and 205 (RFC 9110, sections 15.3.5 and 15.3.6).
    /// Otherwise a download fails for them, since the server sent no file.
    public var emptyResponseCodes: Set<Int> {
        get { fields.value.emptyResponseCodes }
        _modify { yield &fields.value.emptyResponseCodes }
    }
    /// Whether a redirect may lead from https to http.
    public var allowsDowngrade: Bool {
        get { fields.value.allowsDowngrade }
        _modify { yield &fields.value.allowsDowngrade }
    }
    /// The policy for following redirects.
    public var redirects: RedirectPolicy {
        get { fields.value.redirects }
        _modify { yield &fields.value.redirects }
    }
    /// Whether to refuse a redirect that repeats the request with its body at another origin. The request then fails
    /// with ``TransferError/Code/protocolNotAllowed``, so that the body is sent only to the intended server. An upgrade
    /// from http to https on the same host is allowed. A redirect after which no body is sent is followed as usual.
    public var keepsBodyWithinOrigin: Bool {
        get { fields.value.keepsBodyWithinOrigin }
        _modify { yield &fields.value.keepsBodyWithinOrigin }
    }
    /// The number of connections that a download may use at once. Additional connections require a response with a
    /// length and a strong validator (RFC 9110, section 8.8.1) over HTTP/1.1. They are limited by the session's
    /// ``SessionConfiguration/maximumConnectionsPerHost``.
    public var segments: Segments {
        get { fields.value.segments }
        _modify { yield &fields.value.segments }
    }
    /// Alternative URLs of the same file for a download, by http or https, the best one first. They supply bytes in
    /// parallel with the request's own URL if a digest of the whole file is known (``FileDestination/digest``,
    /// ``FileDestination/pieces``, or sent by the server), because only a digest shows that the bytes fit together.
    /// Otherwise a mirror takes over when the other sources cannot supply the file. Credentials, identities and secret
    /// fields are sent only to the request's own origin.
    public var mirrors: [String] {
        get { fields.value.mirrors }
        _modify { yield &fields.value.mirrors }
    }
    /// Whether the bytes of a source that fails again are discarded, however many, so that a mirror supplies the whole
    /// file.
    package var leavesFailingSource: Bool {
        get { fields.value.leavesFailingSource }
        _modify { yield &fields.value.leavesFailingSource }
    }
    /// The shortest time in milliseconds between two requests whose responses together show that the server has another
    /// file than the one whose download was begun. By default it is the ``RetryPolicy/baseDelay`` of a ``RetryPolicy``.
    ///
    /// One response shows it if it has a strong validator and the media type of the bytes that are present. Otherwise it
    /// may be a login page: the attempt fails with ``TransferError/Code/remoteChanged``, and its resume data keep the
    /// bytes.
    public var confirmationDelay: Int64 {
        get { fields.value.confirmationDelay }
        _modify { yield &fields.value.confirmationDelay }
    }
    /// Whether to check that a file can be created before any request is sent. It is set after the disk failed.
    package var checksDestinationFirst: Bool {
        get { fields.value.checksDestinationFirst }
        _modify { yield &fields.value.checksDestinationFirst }
    }
    /// The name of an upload's temporary file on a file server: letters, digits and `-`, at most 64 characters; `nil`
    /// for a random name. A later request of the same name replaces an earlier request's remainder, which nothing else
    /// could remove. Use a name for one upload only, and send its requests one after the other.
    public var uploadName: String? {
        get { fields.value.uploadName }
        _modify { yield &fields.value.uploadName }
    }
    /// Whether an upload to a file server creates the directories on the way to its file if the server refuses the file; at
    /// most 64 of them. Without this option a missing directory is an error.
    public var createsRemoteDirectories: Bool {
        get { fields.value.createsRemoteDirectories }
        _modify { yield &fields.value.createsRemoteDirectories }
    }
    /// Whether only the status of an upload's response matters. No more of the response body is read than is needed to
    /// reuse the connection, and neither its length nor its end is checked.
    public var ignoresAnswerBody: Bool {
        get { fields.value.ignoresAnswerBody }
        _modify { yield &fields.value.ignoresAnswerBody }
    }
    /// The rate limit in bytes per second for each direction, within the session's limit.
    public var maximumRate: Int64? {
        get { fields.value.maximumRate }
        _modify { yield &fields.value.maximumRate }
    }
    /// The cache policy; `nil` for the session's. It applies to data tasks only. Downloads and streams always contact
    /// the server.
    public var cachePolicy: RequestCachePolicy? {
        get { fields.value.cachePolicy }
        _modify { yield &fields.value.cachePolicy }
    }
    /// The HTTP version; `nil` for the session's.
    public var httpVersion: HTTPVersion? {
        get { fields.value.httpVersion }
        _modify { yield &fields.value.httpVersion }
    }
    /// The cookie storage in place of the session's ``SessionConfiguration/cookieStorage``. It applies across
    /// redirects: each server receives its own cookies and may set more. The request's own `Cookie` field, if it has
    /// one, is sent in one line with them; a stored cookie replaces one of the same name.
    public var cookies: CookieStorage? {
        get { fields.value.cookies }
        _modify { yield &fields.value.cookies }
    }
    /// The transport security of an `ftp://` URL: whether the connection is upgraded to TLS.
    public var transportSecurity: TransportSecurity {
        get { fields.value.transportSecurity }
        _modify { yield &fields.value.transportSecurity }
    }
    /// The host key policy of an `sftp://` URL; `nil` for the session's.
    public var hostKeys: HostKeyPolicy? {
        get { fields.value.hostKeys }
        _modify { yield &fields.value.hostKeys }
    }

    /// The time-out in milliseconds of each attempt without progress; `nil` for the session's times. It takes the place
    /// of both ``SessionConfiguration/connectTimeout`` and ``SessionConfiguration/stallTimeout``.
    public var timeout: Int64? {
        get { fields.value.timeout }
        _modify { yield &fields.value.timeout }
    }
    /// The time-out in milliseconds for name resolution, connection and TLS together, in place of ``timeout`` and of the
    /// session's times. For 0 or less, libcurl's default of five minutes applies.
    public var connectTimeout: Int64? {
        get { fields.value.connectTimeout }
        _modify { yield &fields.value.connectTimeout }
    }
    /// The time-out in milliseconds without a byte in either direction, in place of ``timeout`` and of the session's
    /// times; 0 or less for none.
    public var stallTimeout: Int64? {
        get { fields.value.stallTimeout }
        _modify { yield &fields.value.stallTimeout }
    }
    /// The time limit in milliseconds of the whole: all attempts, redirects, and the times between attempts; `nil` for
    /// none. The time runs from the start of the request, also while it is suspended. At the end of it, the request
    /// fails with ``TransferError/Code/timedOut`` and is not retried; a download has resume data.
    ///
    /// The limit applies to the requests of a ``SessionManager``, as they are before adapters, and not to a task that
    /// is created on a ``Session``.
    public var totalTimeout: Int64? {
        get { fields.value.totalTimeout }
        _modify { yield &fields.value.totalTimeout }
    }

    /// The party on whose behalf the request is made, such as a user's number. Host names that do not resolve delay
    /// only requests of the same party. `nil` is the common party of all requests without one.
    public var party: String? {
        get { fields.value.party }
        _modify { yield &fields.value.party }
    }

    /// Whether ``SessionConfiguration/deniedNetworks`` do not apply to the request, its redirects and its mirrors. A
    /// connection that such a request opened into a denied network serves no other request of the session. Resume data
    /// do not keep this property.
    public var ignoresDeniedNetworks: Bool {
        get { fields.value.ignoresDeniedNetworks }
        _modify { yield &fields.value.ignoresDeniedNetworks }
    }

    /// Whether the request is sent to a mirror instead of the task's own URL.
    var isToMirror: Bool {
        get { fields.value.isToMirror }
        _modify { yield &fields.value.isToMirror }
    }

    /// Whether a redirect led to another origin. The session's fields that may be secret are then omitted as well.
    var hasLeftOrigin: Bool {
        get { fields.value.hasLeftOrigin }
        _modify { yield &fields.value.hasLeftOrigin }
    }

    /// The generation of each ``AuthenticationRefresher``'s token in the request.
    var tokenGenerations: [ObjectIdentifier: Int] {
        get { fields.value.tokenGenerations }
        _modify { yield &fields.value.tokenGenerations }
    }

    /// The fields, shared by all copies: a running request is stored in a dozen places.
    private var fields: CopyOnWrite<Fields>

    private struct Fields: Sendable {
        var url: String
        var method: HTTPRequest.Method
        var headerFields: HTTPFields
        var invalidHeaders: [InvalidHeader] = []
        var credential: Credential?
        var awaitsChallenge = false
        var logins: [HostTable<ServerLogin>] = []
        var identity: ClientIdentity?
        var proxy: String?
        var caCertificates: String?
        var trustsAnyServer = false
        var maximumBodySize: Int64?
        var emptyResponseCodes: Set<Int> = []
        var allowsDowngrade = false
        var redirects = RedirectPolicy.follow
        var keepsBodyWithinOrigin = false
        var segments = Segments.automatic
        var mirrors: [String] = []
        var leavesFailingSource = false
        var confirmationDelay = RetryPolicy().baseDelay
        var checksDestinationFirst = false
        var uploadName: String?
        var createsRemoteDirectories = false
        var ignoresAnswerBody = false
        var maximumRate: Int64?
        var cachePolicy: RequestCachePolicy?
        var httpVersion: HTTPVersion?
        var cookies: CookieStorage?
        var transportSecurity = TransportSecurity.none
        var hostKeys: HostKeyPolicy?
        var timeout: Int64?
        var connectTimeout: Int64?
        var stallTimeout: Int64?
        var totalTimeout: Int64?
        var party: String?
        var ignoresDeniedNetworks = false
        var isToMirror = false
        var hasLeftOrigin = false
        var tokenGenerations: [ObjectIdentifier: Int] = [:]
    }

    /// Creates a request. The other properties have default values and can be set afterwards.
    public init(
        url: String, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], credential: Credential? = nil
    ) {
        fields = CopyOnWrite(Fields(url: url, method: method, headerFields: headerFields, credential: credential))
    }
}

extension TransferRequest {
    /// Returns the request for another URL. Credentials, identities and fields that may be secret are kept only within
    /// the same origin.
    public func redirected(to url: String) -> TransferRequest {
        var request = self
        request.url = url
        request.mirrors = []
        let target = try? CurlURL(url)
        if let target, target.origin == (try? CurlURL(self.url).origin) { return request }
        request.leaveOrigin(for: target)
        return request
    }
}

extension TransferRequest {
    /// Returns the URL that a relative reference stands for (RFC 3986, section 5); `nil` for an invalid one.
    package static func resolve(_ reference: String, against base: String) -> String? {
        guard let base = try? CurlURL(base) else { return nil }
        return (try? CurlURL(reference, relativeTo: base))?.text
    }
}

extension TransferRequest: CustomStringConvertible {
    /// `METHOD URL`, without secrets.
    public var description: String { "\(method.rawValue) \(URLRedaction.redact(url))" }
}

/// The policy for following redirects (RFC 9110, section 15.4).
public enum RedirectPolicy: String, Sendable, Equatable, Codable {
    /// All redirects are followed, up to ``SessionConfiguration/maximumRedirects``.
    case follow
    /// Only redirects that keep the method are followed. Another redirect is the final response.
    case followUnchanged
    /// The redirect itself is the final response; none is followed.
    case stop

    func follows(_ status: Int, method: HTTPRequest.Method) -> Bool {
        switch self {
        case .follow: true
        case .followUnchanged: RedirectRule.method(after: status, of: method) == method
        case .stop: false
        }
    }
}

/// The HTTP versions that the client may use with a server.
public enum HTTPVersion: String, Sendable, Equatable, CaseIterable, Codable {
    /// HTTP/1.1 only.
    case http1
    /// HTTP/2 if the server negotiates it in TLS (ALPN), otherwise HTTP/1.1.
    case http2
    /// HTTP/2 without TLS and without negotiation (RFC 9113, section 3.3).
    case http2PriorKnowledge
    /// HTTP/3 if libcurl supports it and the server responds, otherwise HTTP/2 or HTTP/1.1.
    case http3

    var curlNumber: Int {
        switch self {
        case .http1: 2
        case .http2: 4
        case .http2PriorKnowledge: 5
        case .http3: CurlLibrary.hasHTTP3 ? 30 : 4
        }
    }
}

extension TransferRequest {
    /// The ``timeout`` as a duration; `nil` for the session's times. A new value is rounded up to whole milliseconds; a
    /// negative one counts as 0, and one beyond `Int64.max` milliseconds as that.
    public var timeoutDuration: Duration? {
        get { timeout.map { .milliseconds($0) } }
        set { timeout = newValue?.clampedMilliseconds }
    }

    /// The ``totalTimeout`` as a duration; `nil` for none. A new value is converted as for ``timeoutDuration``.
    public var totalTimeoutDuration: Duration? {
        get { totalTimeout.map { .milliseconds($0) } }
        set { totalTimeout = newValue?.clampedMilliseconds }
    }
}

extension TransferRequest: CustomReflectable {
    /// The properties for `dump` and debuggers. Secrets are left out, as in the ``description``: user, password and the
    /// values of the query in URLs, credentials, and the values of header fields that may contain one.
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("url", URLRedaction.redact(url)), ("method", method.rawValue),
            ("headerFields", HTTPHeaders(headerFields)), ("credential", credential as Any),
            ("awaitsChallenge", awaitsChallenge), ("hasLogins", !logins.isEmpty),
            ("identity", identity as Any),
            ("proxy", proxy.map { URLRedaction.redact($0, hidesQuery: false) } as Any),
            ("hasCACertificates", caCertificates != nil), ("trustsAnyServer", trustsAnyServer),
            ("maximumBodySize", maximumBodySize as Any),
            ("emptyResponseCodes", emptyResponseCodes), ("allowsDowngrade", allowsDowngrade),
            ("redirects", redirects), ("keepsBodyWithinOrigin", keepsBodyWithinOrigin), ("segments", segments),
            ("mirrors", mirrors.map { URLRedaction.redact($0) }), ("uploadName", uploadName as Any),
            ("createsRemoteDirectories", createsRemoteDirectories),
            ("ignoresAnswerBody", ignoresAnswerBody), ("maximumRate", maximumRate as Any),
            ("cachePolicy", cachePolicy as Any), ("httpVersion", httpVersion as Any), ("hasCookies", cookies != nil),
            ("transportSecurity", transportSecurity), ("hostKeys", hostKeys as Any), ("timeout", timeout as Any),
            ("connectTimeout", connectTimeout as Any), ("stallTimeout", stallTimeout as Any),
            ("totalTimeout", totalTimeout as Any), ("party", party as Any),
            ("ignoresDeniedNetworks", ignoresDeniedNetworks),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}

/// The use of TLS with an `ftp://` server (RFC 4217): on its control connection before the login, and on every data
/// connection. For `ftps://` it is always ``required``.
public enum TransportSecurity: String, Sendable, Equatable, Codable {
    /// User names, passwords and files are sent unencrypted.
    case none
    /// TLS is used if the server offers it. An attacker on the network can suppress the offer.
    case `try`
    /// TLS is required; otherwise the transfer fails.
    case required
}

/// A header field, as text, that HTTP does not permit.
struct InvalidHeader: Sendable {
    var name: String
    var value: String
    /// The reason why there is no value.
    var refusal: String?
}
