import Curl

/// A set of servers that are contacted without ``SessionConfiguration/proxy``.
public enum ProxyException: Sendable, Equatable {
    /// Every server.
    case every
    /// A host name, and all names beneath it.
    ///
    /// - Parameters: the name, and the port; without a port, the exception applies to every port.
    case name(String, port: Int? = nil)
    /// The addresses of a network. It applies to URLs that contain an address: names are not resolved for it.
    case network(IPNetwork, port: Int? = nil)

    /// Returns whether the exception applies to a server.
    ///
    /// - Parameter host: the host of a URL in lower case, an IPv6 address in brackets.
    func includes(_ host: String, port: Int) -> Bool {
        switch self {
        case .every: return true
        case .name(let name, let own):
            guard own == nil || own == port else { return false }
            let host = host.utf8.last == UInt8(ascii: ".") ? String(host.dropLast()) : host
            return Cookie.host(host, isWithin: name.lowercased())
        case .network(let network, let own):
            guard own == nil || own == port, let address = IPAddress(host: host) else { return false }
            return network.contains(address)
        }
    }
}

/// The choice of the proxy for each server that a request leads to.
struct ProxyRules: Sendable {
    /// The origin of a proxy, which tells where it can be changed.
    enum Source: Sendable, Equatable {
        /// ``TransferRequest/proxy``.
        case request
        /// ``SessionConfiguration/proxy`` or ``SessionConfiguration/hostProxies``.
        case session
    }

    /// The proxy of all servers that have no other.
    var proxy: String?
    var exceptions: [ProxyException] = []
    var hosts = HostTable<String>()

    /// Returns the proxy for a server; `nil` for a direct connection.
    ///
    /// - Parameters:
    ///   - own: ``TransferRequest/proxy``.
    ///   - host: the host of the URL, an IPv6 address in brackets.
    func choose(own: String?, for host: String, port: Int) -> (url: String, source: Source)? {
        if let own { return own.isEmpty ? nil : (own, .request) }
        if let chosen = hosts.value(forHost: host, port: port) { return chosen.isEmpty ? nil : (chosen, .session) }
        guard let proxy, !proxy.isEmpty, !exceptions.contains(where: { $0.includes(host, port: port) }) else {
            return nil
        }
        return (proxy, .session)
    }
}

extension SessionConfiguration {
    var proxyRules: ProxyRules { ProxyRules(proxy: proxy, exceptions: proxyExceptions, hosts: hostProxies) }
}

/// The proxy of an exchange or a stream, and the certificates trusted for it.
struct ProxyOptions {
    private let configuration: SessionConfiguration
    private let request: TransferRequest
    /// The URL of the proxy; `nil` without one.
    let url: String?
    /// The origin of the proxy; `nil` without one.
    let source: ProxyRules.Source?

    /// - Parameter host: the host of the request's URL, an IPv6 address in brackets.
    init(configuration: SessionConfiguration, request: TransferRequest, host: String, port: Int) {
        self.configuration = configuration
        self.request = request
        let chosen = configuration.proxyRules.choose(own: request.proxy, for: host, port: port)
        (url, source) = (chosen?.url, chosen?.source)
    }

    init(configuration: SessionConfiguration, request: TransferRequest, to server: CurlURL) {
        self.init(configuration: configuration, request: request, host: server.host, port: server.port)
    }

    /// Whether the proxy is an HTTP proxy, which reads requests that use no tunnel.
    var readsRequests: Bool {
        guard let url else { return false }
        guard let colon = url.firstRange(of: "://") else { return true }
        return ["http", "https"].contains(url[..<colon.lowerBound].lowercased())
    }

    /// Whether the proxy's URL contains a user name or password.
    var hasLogin: Bool { url?.utf8.contains(UInt8(ascii: "@")) ?? false }

    /// The user name and password in the proxy's URL; `nil` if it contains none.
    var login: Credential? {
        guard hasLogin, let url else { return nil }
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        guard let login = try? CurlURL("http://" + rest).userInformation(), let user = login.user else { return nil }
        return Credential(user: user, password: login.password ?? "")
    }

    /// The proxy's scheme, name and port; `nil` without a proxy.
    var origin: String? { url.flatMap { RouteLookup.origin(ofProxy: $0) } }

    /// The proxy's URL without user name and password.
    private var bareURL: String? {
        hasLogin ? url.map { URLRedaction.redact($0, hidesQuery: false) } : url
    }

    /// Sets the options.
    ///
    /// - Parameters:
    ///   - isRead: whether the proxy reads the request, whose `Proxy-Authorization` field the engine sets. libcurl
    ///     answers the challenges to a request for a tunnel.
    ///   - sendsPasswordUnasked: whether the password is sent by the Basic scheme before the proxy asks for it.
    func apply(
        to easy: borrowing EasyHandle, isRead: Bool = false, sendsPasswordUnasked: Bool = false
    ) throws(CurlError) {
        let url = (isRead ? bareURL : url) ?? ""
        // Empty values also prevent libcurl from reading the environment.
        try easy.set(.proxy, to: url)
        try easy.set(.noProxy, to: "")
        // With several schemes libcurl waits for the proxy's challenge, so that a proxy that asks for a digest is not
        // sent the password itself.
        if hasLogin, readsRequests, !sendsPasswordUnasked {
            try easy.set(.proxyAuthentication, to: Self.basicAndDigest)
        }
        guard url.lowercased().hasPrefix("https:") else { return }
        try easy.set(.proxyTLSVersion, to: SecurityOptions.oldestTLS)
        if let pem = request.caCertificates {
            try easy.set(.proxyCACertificates, to: pem.utf8)
        } else if let file = configuration.caFile {
            try easy.set(.proxyCAFile, to: file)
        } else {
            return
        }
        // Otherwise the system's certificate directory would be trusted in addition.
        try easy.clear(.proxyCAPath)
    }

    /// CURLAUTH_BASIC and CURLAUTH_DIGEST.
    private static let basicAndDigest = 3
}

/// A proxy that refused a request or a tunnel.
package struct ProxyRefusal: Error, Sendable, Equatable {
    /// The proxy's name and port.
    package let proxy: String
    /// Whether the proxy is the request's own, and not the session's.
    package let isOfRequest: Bool
    /// Whether the proxy itself refused. Otherwise its response may be that of the server behind it.
    package let isCertain: Bool
    /// Whether a user name and password were sent to the proxy.
    private let sentLogin: Bool

    /// Returns the refusal by a proxy; `nil` without one.
    init?(_ options: ProxyOptions, sentLogin: Bool = false, isCertain: Bool = true) {
        guard let url = options.url else { return nil }
        let rest = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let authority = rest.prefix { $0 != "/" }
        let start = authority.lastIndex(of: "@").map(authority.index(after:)) ?? authority.startIndex
        proxy = String(authority[start...])
        isOfRequest = options.source == .request
        self.sentLogin = sentLogin
        self.isCertain = isCertain
    }

    /// Returns the description of a status for people.
    func words(for status: Int) -> String {
        switch status {
        case 407 where sentLogin: "the proxy \(proxy) rejected the user name and password (407)"
        case 407: "the proxy \(proxy) requires a user name and password (407), which its URL can contain"
        case _ where isCertain: "the proxy \(proxy) refuses the request (\(status))"
        default: "the server, or the proxy \(proxy) on the way to it, refuses access (\(status))"
        }
    }
}

extension ResponseHead {
    /// Programs whose responses of their own name them. A proxy passes the `Server` field of a server on unchanged.
    private static let proxies = ["squid", "tinyproxy", "privoxy", "3proxy", "mitmproxy"]

    /// Whether the response shows that a proxy made it and not the server behind it.
    var isOfProxy: Bool {
        // RFC 9209, section 2.1.1: `error` is for responses that the proxy generates.
        if values(of: "proxy-status").contains(where: { $0.lowercased().contains("error=") }) { return true }
        if value(of: "x-squid-error") != nil { return true }
        let server = value(of: "server")?.lowercased() ?? ""
        return Self.proxies.contains { server.hasPrefix($0) }
    }
}
