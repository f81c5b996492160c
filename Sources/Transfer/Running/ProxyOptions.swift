import Curl

/// By whom an exchange or a stream goes, and whom to trust there.
struct ProxyOptions {
    let configuration: SessionConfiguration
    let request: TransferRequest

    /// Whether the proxy speaks HTTP, and so reads requests that need no tunnel.
    var readsRequests: Bool {
        guard let proxy = request.proxy ?? configuration.proxy, !proxy.isEmpty else { return false }
        guard let colon = proxy.firstRange(of: "://") else { return true }
        return ["http", "https"].contains(proxy[..<colon.lowerBound].lowercased())
    }

    func apply(to easy: borrowing EasyHandle) throws(CurlError) {
        let proxy = request.proxy ?? configuration.proxy ?? ""
        // Empty ones also keep libcurl from reading the environment.
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
        // The system's directory would be trusted beside them.
        try easy.clear(.proxyCAPath)
    }
}
