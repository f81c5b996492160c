import Curl
import Glibc
import HTTPTypes

/// The cookies of one exchange. They are copied from the cookie storage to libcurl, and changes made by the response
/// are copied back.
///
/// Used on the loop's thread only.
final class ExchangeCookies {
    private let storage: CookieStorage
    /// The host to which libcurl assigns the cookies.
    let host: String
    /// Whether stored cookies are sent. Otherwise the request sets its own `Cookie` field or the session sends none.
    private let sendsStored: Bool
    private var isFed = false
    /// The cookies that libcurl accepted from the storage, as Netscape lines.
    private var fed: [String] = []
    private var setsCookies = false

    /// Creates the cookies of an exchange.
    ///
    /// - Returns: `nil` if neither the request nor the session has a cookie storage.
    init?(of request: TransferRequest, at url: CurlURL, _ configuration: SessionConfiguration) {
        guard let storage = request.cookies ?? configuration.cookieStorage else { return nil }
        self.storage = storage
        host = Self.host(of: request, at: url)
        // libcurl would send a second `Cookie` field; RFC 6265 (section 5.4) permits one.
        sendsStored = configuration.httpShouldSetCookies && !SentFields.names(.cookie, request, configuration)
    }

    /// Returns the value of the `Cookie` field that libcurl generates, if any.
    static func field(
        for request: TransferRequest, at url: CurlURL, _ configuration: SessionConfiguration, now: Int64
    ) -> String? {
        guard let cookies = ExchangeCookies(of: request, at: url, configuration), cookies.sendsStored else {
            return nil
        }
        let host = cookies.host
        // libcurl also treats plain connections to the local host as secure.
        let isSecure = url.scheme == "https" || host == "localhost" || host == "127.0.0.1" || host == "::1"
        let sent = cookies.storage.cookies(for: host, path: url.path, isSecure: isSecure, now: now)
        return sent.isEmpty ? nil : sent.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    // MARK: The exchange

    func begin(on exchange: Exchange) throws(CurlError) {
        // An empty file name enables libcurl's cookie engine.
        try exchange.easy.set(.cookieFile, to: "")
        if sendsStored { try feed(exchange) }
    }

    private func feed(_ exchange: Exchange) throws(CurlError) {
        isFed = true
        let candidates = storage.candidates(for: host, now: Int64(time(nil)))
        guard !candidates.isEmpty else { return }
        for cookie in candidates { try exchange.easy.set(.cookieLine, to: cookie.netscapeLine) }
        // Record only what libcurl accepted. A cookie that it rejected, or took for a duplicate, must not look as if
        // the server had deleted it.
        fed = exchange.easy.cookieLines()
    }

    /// Processes a line of a response head.
    func receive(_ line: UnsafeRawBufferPointer, on exchange: Exchange) {
        // The request has been sent, and the status line precedes any `Set-Cookie`. Stored cookies that were not to be
        // sent are loaded now, so that the response can delete them and cannot shadow protected ones.
        if !isFed { try? feed(exchange) }
        if !setsCookies { setsCookies = Self.isSetCookie(line) }
    }

    func end(_ exchange: Exchange) {
        guard setsCookies else { return }
        let now = Int64(time(nil))
        // libcurl keeps a cookie that the server deleted for a moment, as an expired cookie.
        let got = exchange.easy.cookieLines().compactMap(Cookie.init(netscape:)).filter { !$0.isExpired(now: now) }
        storage.replace(fed: fed.compactMap(Cookie.init(netscape:)), got: got)
    }

    private static func isSetCookie(_ line: UnsafeRawBufferPointer) -> Bool {
        let name = "set-cookie:".utf8
        return line.count > name.count && zip(line, name).allSatisfy { Cookie.lowercase($0) == $1 }
    }

    // MARK: The request

    private static let hostField = HTTPField.Name("Host")

    /// Returns the host without port and brackets. A `Host` field in the request takes precedence over the URL, as it
    /// does for the server.
    private static func host(of request: TransferRequest, at url: CurlURL) -> String {
        var host = (hostField.flatMap { request.headerFields[$0] } ?? url.host).utf8[...]
        if host.first == UInt8(ascii: "[") {
            host = host.dropFirst().prefix { $0 != UInt8(ascii: "]") }
        } else {
            host = host.prefix { $0 != UInt8(ascii: ":") }
        }
        return String(Substring(host)).lowercased()
    }
}
