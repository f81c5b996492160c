import Curl

/// The proxy of an exchange or a stream, and the certificates trusted for it.
struct ProxyOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest

    /// The URL of the proxy; empty without one.
    var url: String { request.proxy ?? configuration.proxy ?? "" }

    /// Whether the proxy is an HTTP proxy, which reads requests that use no tunnel.
    var readsRequests: Bool {
        let url = url
        guard !url.isEmpty else { return false }
        guard let colon = url.firstRange(of: "://") else { return true }
        return ["http", "https"].contains(url[..<colon.lowerBound].lowercased())
    }

    /// Whether the proxy's URL contains a user name or password.
    var hasLogin: Bool { url.utf8.contains(UInt8(ascii: "@")) }

    func apply(to easy: borrowing EasyHandle) throws(CurlError) {
        let url = url
        // Empty values also prevent libcurl from reading the environment.
        try easy.set(.proxy, to: url)
        try easy.set(.noProxy, to: "")
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
}
