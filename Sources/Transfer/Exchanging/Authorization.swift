import Curl
import HTTPTypes

/// The authentication state of one transaction towards servers and proxies.
struct Authorization {
    /// An authentication challenge and the schemes that can satisfy it.
    struct Demand {
        var space: ProtectionSpace
        var offers: [AuthenticationOffer]
        var digest: DigestAuthorization?
        /// Whether the last credentials were correct but their nonce had expired (RFC 7616, section 3.3).
        var isStale: Bool { digest?.isStale ?? false }
    }

    /// Credentials that are sent with all further requests.
    private struct Answer {
        /// The server or proxy, as scheme, name and port.
        var origin: String
        var credential: Credential
        var scheme: ProtectionSpace.Method
        var digest: DigestAuthorization?
        /// The number of requests that used the digest's nonce.
        var count: UInt32 = 0
        /// The client nonce (cnonce). It stays the same as long as the digest's nonce, because the session key is
        /// derived from both (RFC 7616, section 3.4.2).
        let clientNonce = String(UInt64.random(in: 0 ... .max), radix: 16)
    }

    private var server: Answer?
    private var proxy: Answer?
    /// The number of refused credentials per protection space.
    private var failures: [ProtectionSpace: Int] = [:]
    /// The number of expired nonces that were renewed without a new challenge to the caller.
    private var renewals = 0

    /// The limit of nonce renewals. A server that rejects every nonce as stale is treated as a refusal.
    private static let maximumRenewals = 8

    // MARK: Request fields

    /// Returns the `Authorization` and `Proxy-Authorization` field lines for a request.
    ///
    /// - Parameter proxy: the URL of the proxy on the way to the server; `nil` without one.
    mutating func fields(for request: TransferRequest, at url: CurlURL, proxy: String?) -> [String] {
        var lines: [String] = []
        if server?.origin == url.origin {
            if let value = Self.value(of: &server, request.method, target: url.target) {
                lines.append("Authorization: \(value)")
            }
        }
        if url.scheme == "http", let known = self.proxy?.origin, known == Self.origin(ofProxy: proxy) {
            // The target as libcurl sends it to a proxy.
            let target = "http://\(url.host)" + (url.port == 80 ? "" : ":\(url.port)") + url.target
            guard let value = Self.value(of: &self.proxy, request.method, target: target) else { return lines }
            lines.append("Proxy-Authorization: \(value)")
        }
        return lines
    }

    /// Whether credentials for this origin replace the request's own credential or field.
    func answers(_ url: CurlURL) -> Bool { server?.origin == url.origin }

    /// Whether credentials are sent to the proxy.
    var answersProxy: Bool { proxy != nil }

    /// Whether the credentials for the server are a bearer token.
    var isToken: Bool { server?.scheme == .bearer }

    private static func origin(ofProxy url: String?) -> String? {
        url.flatMap { try? CurlURL($0) }?.origin
    }

    private static func value(of answer: inout Answer?, _ method: HTTPRequest.Method, target: String) -> String? {
        guard let known = answer else { return nil }
        switch known.scheme {
        case .basic: return BasicAuthorization.fieldValue(for: known.credential)
        case .bearer:
            guard case .bearer(let token) = known.credential.kind else { return nil }
            return "Bearer \(token)"
        case .digest:
            answer?.count += 1
            return known.digest?.fieldValue(
                for: known.credential, method: method, target: target, nonceCount: known.count + 1,
                clientNonce: known.clientNonce)
        case .serverTrust: return nil
        }
    }

    // MARK: Challenges

    /// Returns the challenge of a 401 or 407 response.
    ///
    /// - Parameters:
    ///   - proxy: the URL of the proxy on the way to the server; `nil` without one.
    ///   - assumesBasic: whether a 401 response without a challenge asks for the Basic scheme. A 407 response always does:
    ///     RFC 9110 (section 15.5.8) requires a challenge, and some proxies leave it out.
    /// - Returns: `nil` if the response has no challenge of a supported scheme.
    func demand(of head: ResponseHead, at url: CurlURL, proxy: String?, assumesBasic: Bool = false) -> Demand? {
        let isProxy = head.status == 407
        guard var offers = Self.offers(of: head) else { return nil }
        if offers.isEmpty, isProxy || assumesBasic { offers = [AuthenticationOffer(scheme: "basic")] }
        guard let (method, digest) = Self.choose(among: offers) else { return nil }
        let realm = digest?.realm ?? offers.lazy.compactMap { $0.parameters["realm"] }.first
        var space = ProtectionSpace(host: url.host, port: url.port, scheme: url.scheme, realm: realm, method: method)
        if isProxy {
            guard let proxy, let url = try? CurlURL(proxy) else { return nil }
            (space.host, space.port, space.scheme, space.isProxy) = (url.host, url.port, url.scheme, true)
        }
        return Demand(space: space, offers: offers, digest: digest)
    }

    /// Returns the challenges of a 401 or 407 response; `nil` for another status.
    static func offers(of head: ResponseHead) -> [AuthenticationOffer]? {
        switch head.status {
        case 401: head.authenticationOffers
        case 407: head.proxyAuthenticationOffers
        default: nil
        }
    }

    /// Returns the scheme by which challenges are answered, with the digest's parameters; `nil` if none is supported.
    static func choose(
        among offers: [AuthenticationOffer]
    ) -> (method: ProtectionSpace.Method, digest: DigestAuthorization?)? {
        if let digest = DigestAuthorization.best(of: offers) { return (.digest, digest) }
        if offers.contains(where: { $0.scheme == "basic" }) { return (.basic, nil) }
        return offers.contains { $0.scheme == "bearer" } ? (.bearer, nil) : nil
    }

    func failureCount(_ demand: Demand) -> Int { failures[demand.space] ?? 0 }

    /// Returns the credentials that were sent to the server or proxy of a challenge.
    private func answer(to demand: Demand, at url: CurlURL) -> Answer? {
        let (answer, origin) = demand.space.isProxy ? (proxy, demand.space.origin) : (server, url.origin)
        return answer?.origin == origin ? answer : nil
    }

    /// Counts a refusal if the request had been sent with credentials.
    ///
    /// - Parameter own: the request's own credential, which was sent before any challenge.
    mutating func recordRefusal(_ demand: Demand, at url: CurlURL, own: Credential?) {
        // A password was sent as Basic; another scheme is still to be tried. A token is not proposed again, and counts
        // no failure: another credential may be used.
        let isRefused = own?.kind == .password && demand.space.method == .basic && !demand.space.isProxy
        if answer(to: demand, at: url) != nil || isRefused { failures[demand.space, default: 0] += 1 }
    }

    /// Adopts a credential for all further requests.
    ///
    /// - Returns: whether the credential fits the challenge.
    mutating func use(_ credential: Credential, for demand: Demand, at url: CurlURL) -> Bool {
        let isProxy = demand.space.isProxy
        var answer = Answer(origin: isProxy ? demand.space.origin : url.origin, credential: credential, scheme: .basic)
        switch credential.kind {
        case .bearer: answer.scheme = .bearer
        case .password:
            if let digest = demand.digest {
                answer.scheme = .digest
                answer.digest = digest
            } else if !demand.offers.contains(where: { $0.scheme == "basic" }) {
                return false
            }
        // Private keys apply to file servers only.
        case .privateKey, .privateKeyText: return false
        }
        if isProxy { proxy = answer } else { server = answer }
        return true
    }

    /// Replaces an expired nonce and keeps the credential. Returns whether the request can be sent again.
    mutating func renew(_ demand: Demand, at url: CurlURL) -> Bool {
        guard demand.isStale, let known = answer(to: demand, at: url), known.scheme == .digest,
            renewals < Self.maximumRenewals
        else { return false }
        renewals += 1
        return use(known.credential, for: demand, at: url)
    }
}

extension ProtectionSpace {
    /// The server or proxy, as scheme, name and port.
    fileprivate var origin: String { "\(scheme)://\(host):\(port)" }
}

extension Transaction {
    /// Returns the kind of credential that the server rejected with a response, or the proxy that refused the request;
    /// `nil` if no credential was sent, or if the response does not concern access.
    func sentCredential(for head: ResponseHead) -> SentCredential? {
        switch head.status {
        case 401:
            guard let url else { return nil }
            let authorization = machine.authorization
            if authorization.answers(url) { return authorization.isToken ? .token : .password }
            if let own = request.sentCredential(in: .authorization, session.configuration) { return own }
            return request.unaskedLogin(at: url) == nil ? nil : .password
        case 403, 407:
            guard let url else { return nil }
            let proxy = ProxyOptions(configuration: session.configuration, request: request, to: url)
            guard url.scheme == "http", proxy.readsRequests else { return nil }
            let sentLogin =
                machine.authorization.answersProxy
                || request.sentCredential(in: .proxyAuthorization, session.configuration) != nil
            return ProxyRefusal(proxy, sentLogin: sentLogin, isCertain: head.status == 407 || head.isOfProxy)
                .map { .proxy($0) }
        default: return nil
        }
    }
}
