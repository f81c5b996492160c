import Curl

/// The names that have to have addresses before libcurl may connect a stream: it would look them up itself otherwise,
/// where the session's resolver is not asked.
struct StreamLookup {
    private(set) var hosts: [(host: String, port: Int)] = []
    private var addresses: [[String]] = []
    /// Of the name that is being looked up.
    var timer: Int?

    mutating func begin(for peer: StreamPeer, proxy: String?) throws(TransferError) {
        let server = (host: peer.host, port: peer.port)
        do throws(CurlError) {
            hosts = [try ExchangeLauncher.peer(behind: proxy, server)]
        } catch {
            throw TransferError(.invalidRequest, "the proxy cannot be read")
        }
        // Of these two the client finds the address and tells the proxy, of the other kinds the proxy finds it.
        if let proxy, proxy.hasPrefix("socks5://") || proxy.hasPrefix("socks4://") { hosts.append(server) }
    }

    var names: [String] { hosts.map(\.host) }

    /// The next name without addresses.
    var next: String? { addresses.count < hosts.count ? hosts[addresses.count].host : nil }

    mutating func found(_ addresses: [String]) { self.addresses.append(addresses) }

    /// For `CURLOPT_RESOLVE`.
    func list() throws(CurlError) -> HeaderList {
        var list = HeaderList()
        for ((host, port), addresses) in zip(hosts, addresses) where !Resolver.isAddress(host) && !addresses.isEmpty {
            try list.append("+\(host):\(port):\(addresses.joined(separator: ","))")
        }
        return list
    }
}
