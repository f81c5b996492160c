/// Checks the addresses of one request's connections against ``SessionConfiguration/deniedNetworks`` and records the
/// first denied address. To a request with ``TransferRequest/ignoresDeniedNetworks`` the networks do not apply.
struct AddressEvaluator {
    private let denied: [IPNetwork]
    /// The URL of the request's proxy; `nil` for a direct connection to the server.
    private let proxy: String?
    private let isProxyExempt: Bool
    /// The first denied address and the network that contains it, as text for ``TransferError``.
    private var refusal: (address: String, network: String)?
    private var hasAllowed = false
    /// Whether a connection that another request had opened leads to a denied address.
    private(set) var refusedConnection = false

    /// - Parameter proxy: the proxy of the request's connections; `nil` for direct ones.
    init(_ configuration: SessionConfiguration, _ request: TransferRequest, proxy: ProxyOptions? = nil) {
        denied = request.ignoresDeniedNetworks ? [] : configuration.deniedNetworks
        self.proxy = proxy?.url
        isProxyExempt = proxy?.url != nil && (proxy?.source == .session || proxy?.url == configuration.proxy)
    }

    var isEvaluating: Bool { !denied.isEmpty }

    /// Whether addresses are checked when sockets are opened. A proxy set in the session's configuration is exempt,
    /// because the session's creator chose it.
    var evaluatesSockets: Bool { !denied.isEmpty && !isProxyExempt }

    /// Checks a server behind a proxy by the address literal in its URL. A host name is resolved by the proxy alone, or
    /// is checked by ``allowed(_:of:)`` if the proxy is given an address.
    ///
    /// - Parameter host: the URL's host.
    func checkBehindProxy(_ host: String) throws(TransferError) {
        guard !denied.isEmpty, proxy != nil, let address = IPAddress(host: host), let network = network(of: address)
        else { return }
        throw .denied("\(address)", "\(network)", of: host)
    }

    /// Returns the addresses outside the denied networks. libcurl 7.88 would spend up to half of the connect timeout on
    /// an address that is refused.
    ///
    /// - Returns: all addresses if every one is denied, so that ``allows(_:)`` records the refusal.
    func candidates(_ addresses: [String]) -> [String] {
        guard evaluatesSockets else { return addresses }
        let allowed = addresses.filter { IPAddress(host: $0).flatMap(network(of:)) == nil }
        return allowed.isEmpty ? addresses : allowed
    }

    /// Returns the server addresses that may be sent to a proxy. No local socket is opened for them.
    ///
    /// - Throws: `addressNotAllowed` if every address is denied.
    func allowed(_ addresses: [String], of host: String) throws(TransferError) -> [String] {
        guard isEvaluating else { return addresses }
        var allowed: [String] = []
        var refusal: TransferError?
        for text in addresses {
            guard let address = IPAddress(host: text) else { continue }
            if let network = network(of: address) {
                refusal = refusal ?? .denied("\(address)", "\(network)", of: host)
            } else {
                allowed.append(text)
            }
        }
        if let refusal, allowed.isEmpty { throw refusal }
        return allowed
    }

    /// Records whether a socket address is denied.
    ///
    /// - Parameter bytes: 4 or 16 bytes in network byte order.
    /// - Returns: whether the connection may be made.
    mutating func allows(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // An address that cannot be parsed is refused.
        guard let address = IPAddress(bytes: bytes) else { return false }
        guard let network = network(of: address) else {
            hasAllowed = true
            return true
        }
        refusal = refusal ?? ("\(address)", "\(network)")
        return false
    }

    /// Records whether a connection may be used, which another request may have opened under another rule.
    ///
    /// - Parameter text: the address of the connection's peer.
    mutating func allowsConnection(to text: String) -> Bool {
        // An address that cannot be parsed is refused.
        if let address = IPAddress(host: text), network(of: address) == nil { return true }
        refusedConnection = true
        return false
    }

    /// Returns the error for a connection that failed because every address was denied. Returns `nil` if any address
    /// was allowed, because an allowed address may respond later.
    ///
    /// - Parameter peer: the host that libcurl was to connect to: the server, or the proxy in front of it.
    func error(_ peer: String) -> TransferError? {
        guard let refusal, !hasAllowed else { return nil }
        return .denied(refusal.address, refusal.network, of: proxy == nil ? peer : "the proxy \(peer)")
    }

    private func network(of address: IPAddress) -> IPNetwork? { denied.first { $0.isReached(by: address) } }
}

extension TransferError {
    fileprivate static func denied(_ address: String, _ network: String, of host: String) -> TransferError {
        let isLiteral = host == address || host == "[\(address)]"
        let name = isLiteral ? address : "\(address) of \(host)"
        return TransferError(.addressNotAllowed, "the address \(name) is in the denied network \(network)")
    }
}
