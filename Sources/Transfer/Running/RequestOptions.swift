import Curl

/// Turns a request into the options of an easy handle.
struct RequestOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest
    let url: CurlURL
    let route: RouteLookup
    /// Field lines of the engine's own.
    let engineFields: [String]
    /// HTTP/2 broke here.
    var usesHTTP1 = false
    /// It is not to share a connection of HTTP/2 with others.
    var hasOwnConnection = false
    /// A challenge has been answered: its field outranks the request's own.
    var isAuthorized = false
    let trust: TrustOptions
    /// Few transfers get a large receive buffer, many a small one: libcurl allocates it for each handle.
    let receiveBuffer: Int

    /// What the engine speaks.
    static let protocols = "http,https"

    func apply(to exchange: Exchange) throws(CurlError) {
        try exchange.easy.set(.noSignal, to: true)
        try exchange.easy.set(.url, to: url.text)
        try exchange.easy.set(.protocols, to: Self.protocols)
        try exchange.easy.set(.followLocation, to: false)
        let version = usesHTTP1 ? .http1 : configuration.httpVersion(of: request, at: url)
        try exchange.easy.set(.httpVersion, to: version.curlNumber)
        // Rather one connection for many than many that open at once.
        if version != .http1 {
            try exchange.easy.set(.pipeWait, to: !hasOwnConnection)
            if hasOwnConnection {
                try exchange.easy.set(.freshConnection, to: true)
                try exchange.easy.set(.forbidReuse, to: true)
            }
        }
        try exchange.easy.set(.http09, to: false)
        try exchange.easy.set(.suppressConnectHeaders, to: true)
        try exchange.easy.set(.netrc, to: false)
        try exchange.easy.set(.tcpKeepAlive, to: true)
        try exchange.easy.set(.connectTimeout, to: Int(configuration.connectTimeout))
        try exchange.easy.set(.bufferSize, to: receiveBuffer)
        exchange.stallTimeout = configuration.stallTimeout
        exchange.headTimeout = LeastPace(configuration).headTimeout

        try ProxyOptions(configuration: configuration, request: request).apply(to: exchange.easy)
        if url.scheme == "https" {
            try SecurityOptions(configuration: configuration, request: request, host: url.host, trust: trust)
                .apply(to: exchange.easy)
            // libcurl 7.88 puts a request that wants HTTP/2 on a connection of HTTP/1.1 that is in use, where the server
            // is known to speak HTTP/2: two responses then mix in one stream of bytes. Connections whose TLS options
            // differ are never shared, and this one changes nothing else (CURL_SSLVERSION_MAX_TLSv1_3).
            if version == .http1 { try exchange.easy.set(.tlsVersion, to: SecurityOptions.oldestTLS | 7 << 16) }
            if trust.judges { try exchange.judgesCertificates() }
        }
        try route.apply(to: &exchange.easy)
        try setHeaders(on: exchange)
    }

    private func setHeaders(on exchange: Exchange) throws(CurlError) {
        let lines = SentFields.lines(
            of: request, configuration, engineFields: engineFields, isAuthorized: isAuthorized)
        // A server never gets what is for the proxy (RFC 9110, section 11.7.2): a tunnel, SOCKS, or none, would carry it on.
        let proxy = ProxyOptions(configuration: configuration, request: request)
        let isRead = url.scheme == "http" && proxy.readsRequests
        try exchange.easy.setHeaders(HeaderList(isRead ? lines : lines.filter { !SentFields.isForProxy($0) }))
    }
}
