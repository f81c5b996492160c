import Curl

/// The names that have to have addresses before libcurl may connect: it would look them up itself otherwise, where the
/// session's resolver is not asked and nobody judges what it finds.
struct RouteLookup {
    /// Whom libcurl connects to: the server, or the proxy before it.
    let peer: (host: String, port: Int)
    private let hosts: [(host: String, port: Int)]
    private let judge: AddressJudge
    /// Of the first hosts.
    private var addresses: [[String]] = []

    /// - Parameter server: the one that is meant.
    init(to server: (host: String, port: Int), proxy: String?, judge: AddressJudge) throws(TransferError) {
        do throws(CurlError) {
            peer = try Self.peer(before: server, proxy: proxy)
        } catch {
            throw TransferError(.invalidRequest, "the URL or the proxy cannot be read")
        }
        try judge.checkBehindProxy(server.host)
        hosts = Self.getsAddresses(proxy) ? [peer, server] : [peer]
        self.judge = judge
    }

    /// Whether the client finds the server's address and tells it the proxy; of the other kinds the proxy finds it.
    private static func getsAddresses(_ proxy: String?) -> Bool {
        guard let proxy, let colon = proxy.firstRange(of: "://") else { return false }
        return ["socks5", "socks4", "socks"].contains(proxy[..<colon.lowerBound].lowercased())
    }

    private static func peer(
        before server: (host: String, port: Int), proxy: String?
    ) throws(CurlError) -> (host: String, port: Int) {
        guard let proxy, let colon = proxy.firstRange(of: "://") else { return server }
        let url = try CurlURL("http" + proxy[colon.lowerBound...])
        let hasPort = url.text.firstRange(of: ":\(url.port)") != nil
        return (url.host, hasPort ? url.port : 1080)
    }

    /// Whether a proxy is told an address that has to be a judged one.
    var tellsJudgedAddress: Bool { hosts.count > 1 && judge.isJudging }

    /// The next name without addresses.
    var next: String? { addresses.count < hosts.count ? hosts[addresses.count].host : nil }

    /// Takes what ``next`` leads to.
    ///
    /// - Throws: where the proxy would be told an address in a denied network.
    mutating func found(_ found: [String]) throws(TransferError) {
        guard addresses.count < hosts.count else { return }
        let isPeer = addresses.isEmpty
        addresses.append(
            isPeer ? judge.candidates(found) : try judge.allowed(found, of: hosts[addresses.count].host))
    }

    /// Has the next attempt look all of the names up anew.
    func forget(in resolver: Resolver) {
        for (host, _) in hosts { resolver.forget(host) }
    }

    /// Tells libcurl what was found.
    func apply(to easy: inout EasyHandle) throws(CurlError) {
        // libcurl's list takes no IPv6 address in the place of a name. A server's own address was judged already, and FTP
        // asks for it with ports that are not known yet.
        let hasName = hosts.dropFirst().contains { !Resolver.isAddress($0.host) }
        let refusesLookups = tellsJudgedAddress && hasName && !peer.host.hasPrefix("[")
        var list = HeaderList()
        for ((host, port), addresses) in zip(hosts, addresses) where !addresses.isEmpty {
            guard refusesLookups || !Resolver.isAddress(host) else { continue }
            try list.append("+\(host):\(port):\(addresses.joined(separator: ","))")
        }
        try easy.setAddresses(list)
        // An entry that expires, or a name that libcurl writes otherwise (IDN), would be looked up and not judged.
        if refusesLookups { try easy.refuseLookups() }
    }
}

extension Resolver.Asker {
    init(_ request: TransferRequest, of task: any LoopTask) {
        self.init(party: request.party, task: task.identifier, urgency: request.isToMirror ? .spare : .wanted)
    }
}
