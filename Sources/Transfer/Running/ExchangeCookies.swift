import Curl
import Glibc
import HTTPTypes

/// The cookies of one exchange: a copy for libcurl of what the host may see of the storage, and what the answer makes
/// of it.
///
/// Lives on its loop's thread.
final class ExchangeCookies {
    private let storage: CookieStorage
    /// As libcurl reckons for which host cookies are.
    let host: String
    /// What is stored goes along; otherwise the request says for itself what does.
    private let sendsStored: Bool
    private var isFed = false
    /// What libcurl took of what it was fed.
    private var fed: [String] = []
    private var setsCookies = false

    /// - Returns: `nil` where neither request nor session keeps cookies.
    init?(of request: TransferRequest, at url: CurlURL, _ configuration: SessionConfiguration) {
        guard let storage = request.cookies ?? configuration.cookieStorage else { return nil }
        self.storage = storage
        host = Self.host(of: request, at: url)
        // libcurl would send two fields; RFC 6265 (section 5.4) allows one.
        sendsStored = configuration.httpShouldSetCookies && !SentFields.names(.cookie, request, configuration)
    }

    /// The value of the `Cookie` field that libcurl makes, where it makes one.
    static func field(
        for request: TransferRequest, at url: CurlURL, _ configuration: SessionConfiguration, now: Int64
    ) -> String? {
        guard let cookies = ExchangeCookies(of: request, at: url, configuration), cookies.sendsStored else {
            return nil
        }
        let host = cookies.host
        // As libcurl has it: what goes to this machine itself needs no encryption.
        let isSecure = url.scheme == "https" || host == "localhost" || host == "127.0.0.1" || host == "::1"
        let sent = cookies.storage.cookies(for: host, path: url.path, isSecure: isSecure, now: now)
        return sent.isEmpty ? nil : sent.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    }

    // MARK: The exchange

    func begin(on exchange: Exchange) throws(CurlError) {
        // No file: switches libcurl's engine on.
        try exchange.easy.set(.cookieFile, to: "")
        if sendsStored { try feed(exchange) }
    }

    private func feed(_ exchange: Exchange) throws(CurlError) {
        isFed = true
        let candidates = storage.candidates(for: host, now: Int64(time(nil)))
        guard !candidates.isEmpty else { return }
        for cookie in candidates { try exchange.easy.set(.cookieLine, to: cookie.netscapeLine) }
        // What it refuses, or holds for another's double, must not look as though the server had deleted it.
        fed = exchange.easy.cookieLines()
    }

    /// A line of a head has come.
    func hear(_ line: UnsafeRawBufferPointer, on exchange: Exchange) {
        // The request is out, and the status line comes before any `Set-Cookie`: what was not to be sent is there now
        // to be deleted by the answer, or to be kept from being shadowed by it.
        if !isFed { try? feed(exchange) }
        if !setsCookies { setsCookies = Self.isSetCookie(line) }
    }

    func end(_ exchange: Exchange) {
        guard setsCookies else { return }
        let now = Int64(time(nil))
        // What a server deletes, libcurl keeps for a moment as one whose time is over.
        let got = exchange.easy.cookieLines().compactMap(Cookie.init(netscape:)).filter { !$0.isExpired(now: now) }
        storage.replace(fed: fed.compactMap(Cookie.init(netscape:)), got: got)
    }

    private static func isSetCookie(_ line: UnsafeRawBufferPointer) -> Bool {
        let name = "set-cookie:".utf8
        return line.count > name.count && zip(line, name).allSatisfy { Cookie.lowercase($0) == $1 }
    }

    // MARK: The request

    private static let hostField = HTTPField.Name("Host")

    /// Without port and brackets; a `Host` of the request's own counts before the URL's, as it does for the server.
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
