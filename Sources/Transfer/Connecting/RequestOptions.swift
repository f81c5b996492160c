import Curl
import HTTPTypes

/// A translation of a request into the options of an easy handle.
struct RequestOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest
    let url: CurlURL
    /// Field lines added by the engine.
    let engineFields: [String]
    /// Whether HTTP/1.1 is used because HTTP/2 failed with this server.
    var usesHTTP1 = false
    /// Whether the request must not share an HTTP/2 connection with others.
    var hasOwnConnection = false
    /// Whether the request must not use a connection that another one opened.
    var avoidsReuse = false
    /// Whether a challenge has been answered; its `Authorization` field takes precedence over the request's own.
    var isAuthorized = false
    /// Whether the proxy is sent its password before it asks.
    var sendsProxyPasswordUnasked = false
    /// Whether the request has a body.
    var sendsBody = false
    /// Whether libcurl decodes the body of the response.
    var decodes = false
    let trust: TrustOptions
    /// The size of the receive buffer in bytes. libcurl allocates one per handle, so it is large for few transfers and
    /// small for many.
    var receiveBuffer: Int
    /// Sets further options of the client. Called last.
    let configure: (Exchange) throws(CurlError) -> Void

    /// The protocols that the engine supports.
    static let protocols = ["http", "https"]
    /// ``protocols`` as libcurl takes them.
    private static let protocolList = protocols.joined(separator: ",")

    /// The field line that asks for a response in any coding that libcurl decodes; `nil` if it decodes none.
    private static let acceptEncoding: String? = {
        let codings = CurlLibrary.contentCodings
        return codings.isEmpty ? nil : "Accept-Encoding: " + codings.joined(separator: ", ")
    }()

    private var proxy: ProxyOptions { ProxyOptions(configuration: configuration, request: request, to: url) }
    /// Whether a proxy reads the request.
    private var proxyReads: Bool { url.scheme == "http" && proxy.readsRequests }

    /// Sets the options of an exchange.
    ///
    /// - Parameters:
    ///   - lines: the result of ``fieldLines()``.
    ///   - route: the addresses of the server and of its proxy.
    func apply(to exchange: Exchange, lines: [String], route: RouteLookup) throws(CurlError) {
        exchange.activity.stallTimeout = configuration.stallTimeout(of: request)
        exchange.activity.headTimeout = LeastPace(configuration, request).headTimeout
        switch version {
        case .http1, .http2: exchange.refusesUnaskedInput()
        // The server's settings may come before the request.
        case .http2PriorKnowledge, .http3: break
        }
        try apply(to: &exchange.easy, lines, route)
        if url.scheme == "https", trust.judges { try exchange.evaluatesCertificates() }
        try configure(exchange)
    }

    private var version: HTTPVersion { usesHTTP1 ? .http1 : configuration.httpVersion(of: request, at: url) }

    private func apply(to easy: inout EasyHandle, _ lines: [String], _ route: RouteLookup) throws(CurlError) {
        try easy.set(.noSignal, to: true)
        try easy.setURL(url)
        try easy.set(.protocols, to: Self.protocolList)
        try easy.set(.followLocation, to: false)
        try easy.set(.httpVersion, to: version.curlNumber)
        // Prefer one shared connection to many that are opened at the same time.
        if version != .http1 {
            try easy.set(.pipeWait, to: !hasOwnConnection)
            if hasOwnConnection {
                try easy.set(.freshConnection, to: true)
                try easy.set(.forbidReuse, to: true)
            }
        }
        if avoidsReuse { try easy.set(.freshConnection, to: true) }
        try easy.set(.http09, to: false)
        try easy.set(.suppressConnectHeaders, to: true)
        try easy.set(.netrc, to: false)
        try easy.set(.tcpKeepAlive, to: true)
        try easy.set(.connectTimeout, to: Int(configuration.connectTimeout(of: request)))
        try easy.set(.bufferSize, to: receiveBuffer)
        // libcurl would send the user and password in the URL by the Basic scheme.
        if request.withholdsPassword { try easy.set(.authentication, to: 0) }
        try proxy.apply(to: easy, isRead: proxyReads, sendsPasswordUnasked: sendsProxyPasswordUnasked)
        if url.scheme == "https" {
            try SecurityOptions(
                configuration: configuration, request: request, host: url.host, port: url.port, trust: trust
            ).apply(to: easy)
            // libcurl 7.88 puts a request for HTTP/2 on an HTTP/1.1 connection in use if the server is known to support
            // HTTP/2. Two responses are then mixed in one byte stream. Connections with different TLS options are never
            // shared, and this option changes nothing else (CURL_SSLVERSION_MAX_TLSv1_3).
            if version == .http1 { try easy.set(.tlsVersion, to: SecurityOptions.oldestTLS | 7 << 16) }
        }
        try route.apply(to: &easy)
        try setHeaders(lines, on: &easy)
    }

    /// Returns the header field lines of the request.
    func fieldLines() -> [String] {
        SentFields.lines(
            of: request, configuration, engineFields: engineFields, isAuthorized: isAuthorized, sendsBody: sendsBody)
    }

    private func setHeaders(_ lines: [String], on easy: inout EasyHandle) throws(CurlError) {
        // Fields for the proxy must never reach a server (RFC 9110, section 11.7.2). Through a tunnel, through SOCKS or
        // without a proxy they would.
        var list = HeaderList()
        for line in lines where proxyReads || !SentFields.isForProxy(line) { try list.append(line) }
        // libcurl would format its own line twice, character by character.
        if decodes, let line = Self.acceptEncoding, !SentFields.names(.acceptEncoding, request, configuration) {
            try list.append(line)
        }
        try easy.setHeaders(list)
    }
}
