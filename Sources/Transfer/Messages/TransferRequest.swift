import Curl
import HTTPTypes

/// What to ask a server for.
///
/// The URL is text and is judged when the request starts: a wrong one arrives through the request's handlers, as
/// every other failure does.
///
/// `ftp`, `ftps` and `sftp` work with one file, whose URL does not end in a slash. What a download has of it goes on
/// where the server's size and time are what they were, and is fetched anew otherwise. An upload goes beside the file,
/// as `.NAME.dld-….tmp`, and gets its name when it is whole. Where the server does not rename onto a file that exists,
/// as SFTP's of libssh2 1.10, that file is removed first, so that for a moment there is none; where it does not rename
/// at all, the upload goes straight to the name, and who looks there meanwhile sees a part of it. An upload that broke
/// begins anew. Methods, header fields, redirects and validation are HTTP's alone.
public struct TransferRequest: Sendable {
    /// Absolute; may hold secrets, which no message and no description of the engine's shows.
    public var url: String {
        get { fields.value.url }
        _modify { yield &fields.value.url }
    }
    /// `GET` where nothing else is said.
    public var method: HTTPRequest.Method {
        get { fields.value.method }
        _modify { yield &fields.value.method }
    }
    /// Fields to send besides those that the engine sets itself (`Range`, `If-Range`, `Accept-Encoding`, framing).
    public var headerFields: HTTPFields {
        get { fields.value.headerFields }
        _modify { yield &fields.value.headerFields }
    }
    /// Sent to this URL's origin alone, without being asked for: a name and password by the Basic scheme (RFC 7617), a
    /// token as bearer. A server that wants Digest is answered with it when it asks. To a file server it is the login, in
    /// the place of the URL's own.
    public var credential: Credential? {
        get { fields.value.credential }
        _modify { yield &fields.value.credential }
    }
    /// Who this client is, to this URL's origin alone; absent: the session's for the host.
    public var identity: ClientIdentity? {
        get { fields.value.identity }
        _modify { yield &fields.value.identity }
    }
    /// `http://`, `https://`, `socks5://` or `socks5h://`; absent: the session's. A name and password that a SOCKS
    /// proxy wants, or an HTTP proxy for a tunnel (to `https` and file servers, and for streams), stand in the URL:
    /// challenges come through for plain `http` alone.
    public var proxy: String? {
        get { fields.value.proxy }
        _modify { yield &fields.value.proxy }
    }
    /// Certificates to trust in place of the session's, PEM text.
    public var caCertificates: String? {
        get { fields.value.caCertificates }
        _modify { yield &fields.value.caCertificates }
    }
    /// Bytes; a body that is or grows larger fails with ``TransferError/Code/tooLarge``.
    public var maximumBodySize: Int64? {
        get { fields.value.maximumBodySize }
        _modify { yield &fields.value.maximumBodySize }
    }
    /// Whether a redirect may lead from https to http.
    public var allowsDowngrade: Bool {
        get { fields.value.allowsDowngrade }
        _modify { yield &fields.value.allowsDowngrade }
    }
    /// Which redirects are followed.
    public var redirects: RedirectPolicy {
        get { fields.value.redirects }
        _modify { yield &fields.value.redirects }
    }
    /// Whether a redirect that asks for the very request again is refused where it leads to another origin, with
    /// ``TransferError/Code/protocolNotAllowed``: so that a body stays with the server that it was meant for. The way up from
    /// http to https on one host stays open. A redirect after which there is no body is followed as ever.
    public var keepsBodyWithinOrigin: Bool {
        get { fields.value.keepsBodyWithinOrigin }
        _modify { yield &fields.value.keepsBodyWithinOrigin }
    }
    /// Connections that a download may use at once. Others than the first are used where the answer has a length and a
    /// strong validator (RFC 9110, section 8.8.1), over HTTP/1.1, and within the session's
    /// ``SessionConfiguration/maximumConnectionsPerHost``.
    public var segments: Segments {
        get { fields.value.segments }
        _modify { yield &fields.value.segments }
    }
    /// Other URLs of a download's very file, the best one first, by http or https. They bring bytes beside the request's
    /// own URL where a digest of the whole is known (``FileDestination/digest``, ``FileDestination/pieces``, or stated by
    /// the server), since nothing else tells whether those fit together; otherwise one takes over where the file cannot
    /// be had from the others. Credentials, identities and secret fields stay with the request's own origin.
    public var mirrors: [String] {
        get { fields.value.mirrors }
        _modify { yield &fields.value.mirrors }
    }
    /// Where one fails again, what it brought makes way for a mirror that has the whole, however much that is.
    package var leavesFailingSource: Bool {
        get { fields.value.leavesFailingSource }
        _modify { yield &fields.value.leavesFailingSource }
    }
    /// The disk failed last time: that a file can be made there is seen before anyone is asked.
    package var provesPlace: Bool {
        get { fields.value.provesPlace }
        _modify { yield &fields.value.provesPlace }
    }
    /// Names what an upload has brought to a file server while it is not whole, letters, digits and `-`, at most 64 of
    /// them; absent: by chance. A later request of the same name replaces what an earlier one left, where nothing else
    /// could remove it: the same name is for one upload, tried one request after the other.
    public var uploadName: String? {
        get { fields.value.uploadName }
        _modify { yield &fields.value.uploadName }
    }
    /// Of an upload: what counts is the status of its answer. Of the body that follows no more is read than its connection
    /// needs to serve again, and neither its length nor its end matters.
    public var ignoresAnswerBody: Bool {
        get { fields.value.ignoresAnswerBody }
        _modify { yield &fields.value.ignoresAnswerBody }
    }
    /// Bytes a second, in each direction, within what the session allows.
    public var maximumRate: Int64? {
        get { fields.value.maximumRate }
        _modify { yield &fields.value.maximumRate }
    }
    /// Whether a stored answer will do; absent: the session's. For data tasks alone: downloads and streams always ask
    /// the server.
    public var cachePolicy: RequestCachePolicy? {
        get { fields.value.cachePolicy }
        _modify { yield &fields.value.cachePolicy }
    }
    /// Absent: the session's.
    public var httpVersion: HTTPVersion? {
        get { fields.value.httpVersion }
        _modify { yield &fields.value.httpVersion }
    }
    /// In place of the session's ``SessionConfiguration/cookieStorage``, over all redirects: each server is sent what is for
    /// it, and may set more.
    public var cookies: CookieStorage? {
        get { fields.value.cookies }
        _modify { yield &fields.value.cookies }
    }
    /// Of `ftp://`: whether it is to become TLS.
    public var transportSecurity: TransportSecurity {
        get { fields.value.transportSecurity }
        _modify { yield &fields.value.transportSecurity }
    }
    /// Of `sftp://`; absent: the session's.
    public var hostKeys: HostKeyPolicy? {
        get { fields.value.hostKeys }
        _modify { yield &fields.value.hostKeys }
    }

    /// Who is behind the request, such as a user's number: names that nobody answers for hold up those of the same party,
    /// and leave room for those of others. Absent: the party of all that name none.
    public var party: String? {
        get { fields.value.party }
        _modify { yield &fields.value.party }
    }

    /// Whether it goes to a mirror in place of the task's own URL.
    var isToMirror: Bool {
        get { fields.value.isToMirror }
        _modify { yield &fields.value.isToMirror }
    }

    /// A redirect led it elsewhere: the session's fields that may be secret stay behind too.
    var hasLeftOrigin: Bool {
        get { fields.value.hasLeftOrigin }
        _modify { yield &fields.value.hasLeftOrigin }
    }

    /// Which of an ``AuthenticationRefresher``'s tokens it carries.
    var tokenGenerations: [ObjectIdentifier: Int] {
        get { fields.value.tokenGenerations }
        _modify { yield &fields.value.tokenGenerations }
    }

    /// A request under way is held in a dozen places: they share its fields.
    private var fields: CopyOnWrite<Fields>

    private struct Fields: Sendable {
        var url: String
        var method: HTTPRequest.Method
        var headerFields: HTTPFields
        var credential: Credential?
        var identity: ClientIdentity?
        var proxy: String?
        var caCertificates: String?
        var maximumBodySize: Int64?
        var allowsDowngrade = false
        var redirects = RedirectPolicy.follow
        var keepsBodyWithinOrigin = false
        var segments = Segments.automatic
        var mirrors: [String] = []
        var leavesFailingSource = false
        var provesPlace = false
        var uploadName: String?
        var ignoresAnswerBody = false
        var maximumRate: Int64?
        var cachePolicy: RequestCachePolicy?
        var httpVersion: HTTPVersion?
        var cookies: CookieStorage?
        var transportSecurity = TransportSecurity.none
        var hostKeys: HostKeyPolicy?
        var party: String?
        var isToMirror = false
        var hasLeftOrigin = false
        var tokenGenerations: [ObjectIdentifier: Int] = [:]
    }

    /// What is not named here is set afterwards.
    public init(
        url: String, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], credential: Credential? = nil
    ) {
        fields = CopyOnWrite(Fields(url: url, method: method, headerFields: headerFields, credential: credential))
    }
}

extension TransferRequest {
    /// The same question to another URL: what proves who asks, and fields that may be secret, go along within one origin
    /// alone.
    public func redirected(to url: String) -> TransferRequest {
        var request = self
        request.url = url
        request.mirrors = []
        if let origin = try? CurlURL(url).origin, origin == (try? CurlURL(self.url).origin) { return request }
        request.credential = nil
        request.identity = nil
        request.hasLeftOrigin = true
        request.headerFields = HTTPFields(headerFields.filter { RedirectRule.isHarmless($0.name.canonicalName) })
        return request
    }
}

extension TransferRequest: CustomStringConvertible {
    /// `METHOD URL`, without secrets.
    public var description: String { "\(method.rawValue) \(URLRedaction.redact(url))" }
}

/// Which redirects the engine follows (RFC 9110, section 15.4).
public enum RedirectPolicy: String, Sendable, Equatable, Codable {
    /// All, up to ``SessionConfiguration/maximumRedirects``.
    case follow
    /// Those that ask for the very request again; another one is the answer.
    case followUnchanged
    /// None: the redirecting answer is the final one.
    case stop

    func follows(_ status: Int, method: HTTPRequest.Method) -> Bool {
        switch self {
        case .follow: true
        case .followUnchanged: RedirectRule.method(after: status, of: method) == method
        case .stop: false
        }
    }
}

/// Which versions of HTTP a server is spoken to in.
public enum HTTPVersion: String, Sendable, Equatable, CaseIterable, Codable {
    /// HTTP/1.1 alone.
    case http1
    /// HTTP/2 where the server agrees to it within TLS (ALPN), otherwise HTTP/1.1.
    case http2
    /// HTTP/2 without TLS and without asking (RFC 9113, section 3.3).
    case http2PriorKnowledge
    /// HTTP/3 where libcurl has it and the server answers, otherwise HTTP/2 or HTTP/1.1.
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
