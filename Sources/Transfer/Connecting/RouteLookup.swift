import Curl

/// The names that must be resolved before libcurl connects. Otherwise libcurl would resolve them itself, without the
/// session's resolver and without an address check.
///
/// Used on the loop's thread only.
package final class RouteLookup {
    /// The host that libcurl connects to: the server, or the proxy in front of it.
    let peer: (host: String, port: Int)
    private let hosts: [(host: String, port: Int)]
    private let evaluator: AddressEvaluator
    /// The addresses of the hosts resolved so far, in order.
    private var addresses: [[String]] = []

    /// Creates the lookup of a route.
    ///
    /// - Parameter server: the host and port of the request's URL.
    init(to server: (host: String, port: Int), proxy: String?, evaluator: AddressEvaluator) throws(TransferError) {
        do throws(CurlError) {
            peer = try Self.peer(before: server, proxy: proxy)
        } catch {
            throw .unreadable(proxy ?? "", name: "the proxy's URL")
        }
        try evaluator.checkBehindProxy(server.host)
        hosts = Self.getsAddresses(proxy) ? [peer, server] : [peer]
        self.evaluator = evaluator
    }

    /// Returns whether the client resolves the server's name and sends the address to the proxy. With other kinds of
    /// proxy, the proxy resolves it.
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

    /// Returns the scheme, host and port of a proxy; `nil` if its URL cannot be read.
    package static func origin(ofProxy url: String) -> String? {
        guard let colon = url.firstRange(of: "://"),
            let peer = try? peer(before: (host: "", port: 0), proxy: url)
        else { return nil }
        return "\(url[..<colon.lowerBound].lowercased())://\(peer.host):\(peer.port)"
    }

    /// Whether a proxy is given an address that must have been checked.
    var tellsJudgedAddress: Bool { hosts.count > 1 && evaluator.isEvaluating }

    /// The next name to be resolved; `nil` if all are.
    var next: String? { addresses.count < hosts.count ? hosts[addresses.count].host : nil }

    /// Records the addresses of ``next``.
    ///
    /// - Throws: an error if the proxy would be given only addresses in denied networks.
    func found(_ found: [String]) throws(TransferError) {
        guard addresses.count < hosts.count else { return }
        let isPeer = addresses.isEmpty
        addresses.append(
            isPeer ? evaluator.candidates(found) : try evaluator.allowed(found, of: hosts[addresses.count].host))
    }

    /// Removes the names from the resolver's cache, so that the next attempt resolves them again.
    func forget(in resolver: Resolver) {
        for (host, _) in hosts { resolver.forget(host) }
    }

    /// Passes the addresses to libcurl.
    func apply(to easy: inout EasyHandle) throws(CurlError) {
        // libcurl's list accepts no IPv6 address in place of a name. A server given by its address was checked before,
        // and FTP requests it with ports that are not known yet.
        let hasName = hosts.dropFirst().contains { !Resolver.isAddress($0.host) }
        let refusesLookups = tellsJudgedAddress && hasName && !peer.host.hasPrefix("[")
        var list = HeaderList()
        for ((host, port), addresses) in zip(hosts, addresses) where !addresses.isEmpty {
            guard refusesLookups || !Resolver.isAddress(host) else { continue }
            try list.append("+\(host):\(port):\(addresses.joined(separator: ","))")
        }
        try easy.setAddresses(list)
        // An expired entry, or a name that libcurl spells differently (IDN), would be resolved without a check.
        if refusesLookups { try easy.refuseLookups() }
        // A tunnel that a request without the check opened may lead to another address of the name. Only the proxy's
        // address is known of a reused connection.
        if tellsJudgedAddress, hasName { try easy.set(.freshConnection, to: true) }
    }
}

extension Resolver.Asker {
    init(_ request: TransferRequest, of task: any LoopTask) {
        self.init(party: request.party, task: task.identifier, urgency: request.isToMirror ? .spare : .wanted)
    }
}
