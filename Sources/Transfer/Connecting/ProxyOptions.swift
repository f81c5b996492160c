import Curl

/// The proxy of an exchange or a stream, and the certificates trusted for it.
struct ProxyOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest

    /// Whether the proxy is an HTTP proxy, which reads requests that use no tunnel.
    var readsRequests: Bool {
        guard let proxy = request.proxy ?? configuration.proxy, !proxy.isEmpty else { return false }
        guard let colon = proxy.firstRange(of: "://") else { return true }
        return ["http", "https"].contains(proxy[..<colon.lowerBound].lowercased())
    }

    /// Whether the proxy's URL contains a user name or password.
    var hasLogin: Bool { (request.proxy ?? configuration.proxy)?.utf8.contains(UInt8(ascii: "@")) ?? false }

    func apply(to easy: borrowing EasyHandle) throws(CurlError) {
        let proxy = request.proxy ?? configuration.proxy ?? ""
        // Empty values also prevent libcurl from reading the environment.
        try easy.set(.proxy, to: proxy)
        try easy.set(.noProxy, to: "")
        guard proxy.lowercased().hasPrefix("https:") else { return }
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
