import HTTPTypes

/// What to ask a server for.
///
/// The URL is text and is judged when the request starts: a wrong one arrives through the request's handlers, as
/// every other failure does.
public struct TransferRequest: Sendable {
    public var url: String
    public var method: HTTPRequest.Method
    /// Fields to send besides those that the engine sets itself (`Range`, `If-Range`, `Accept-Encoding`, framing).
    public var headerFields: HTTPFields
    /// Sent by the Basic scheme (RFC 7617), to this URL's origin alone.
    public var credential: Credential?
    /// `http://`, `https://`, `socks5://` or `socks5h://`; absent: the session's.
    public var proxy: String?
    /// Certificates to trust in place of the session's, PEM text.
    public var caCertificates: String?
    /// Bytes; a body that is or grows larger fails with ``TransferError/Code/tooLarge``.
    public var maximumBodySize: Int64?
    /// Whether a redirect may lead from https to http.
    public var allowsDowngrade = false

    public init(
        url: String, method: HTTPRequest.Method = .get, headerFields: HTTPFields = [:], credential: Credential? = nil
    ) {
        self.url = url
        self.method = method
        self.headerFields = headerFields
        self.credential = credential
    }
}

/// A name and what proves it.
public struct Credential: Sendable, Equatable, CustomStringConvertible {
    public var user: String
    public var password: String

    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Never the password.
    public var description: String { "Credential(\(user))" }
}
