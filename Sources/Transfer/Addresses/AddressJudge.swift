/// Judges the addresses of one request's connections by ``SessionConfiguration/deniedNetworks``, and remembers what it
/// refused.
struct AddressJudge {
    private let denied: [IPNetwork]
    /// By whom the request goes; `nil`: straight to the server.
    private let proxy: String?
    private let isProxyExempt: Bool
    /// Who was refused first, as ``TransferError`` says it.
    private var refusal: (address: String, network: String)?
    private var hasAllowed = false

    init(_ configuration: SessionConfiguration, _ request: TransferRequest) {
        denied = configuration.deniedNetworks
        let proxy = request.proxy ?? configuration.proxy
        self.proxy = proxy?.isEmpty == true ? nil : proxy
        isProxyExempt = self.proxy != nil && proxy == configuration.proxy
    }

    var isJudging: Bool { !denied.isEmpty }

    /// Whether addresses are to be judged when sockets are opened: those of the session's own proxy are not, which whoever
    /// made the session has chosen.
    var judgesSockets: Bool { !denied.isEmpty && !isProxyExempt }

    /// Judges a server behind a proxy by the address that its URL holds. What a name leads to, the proxy alone knows, or
    /// ``allowed(_:of:)`` judges it, where the proxy is told an address.
    ///
    /// - Parameter host: of the URL.
    func checkBehindProxy(_ host: String) throws(TransferError) {
        guard !denied.isEmpty, proxy != nil, let address = IPAddress(host: host), let network = network(of: address)
        else { return }
        throw .denied("\(address)", "\(network)", of: host)
    }

    /// Leaves denied addresses out: libcurl 7.88 would let up to half of the connect timeout pass at one that is refused.
    ///
    /// - Returns: all of them where none is allowed, so that ``allows(_:)`` finds out which.
    func candidates(_ addresses: [String]) -> [String] {
        guard judgesSockets else { return addresses }
        let allowed = addresses.filter { IPAddress(host: $0).flatMap(network(of:)) == nil }
        return allowed.isEmpty ? addresses : allowed
    }

    /// The addresses of a server that a proxy may be told: no socket is opened for them here.
    ///
    /// - Throws: where each of them is denied.
    func allowed(_ addresses: [String], of host: String) throws(TransferError) -> [String] {
        guard isJudging else { return addresses }
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

    /// - Parameter bytes: 4 or 16, in the network's order.
    /// - Returns: whether a connection may be made.
    mutating func allows(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // One that cannot be judged is none that anybody allowed.
        guard let address = IPAddress(bytes: bytes) else { return false }
        guard let network = network(of: address) else {
            hasAllowed = true
            return true
        }
        refusal = refusal ?? ("\(address)", "\(network)")
        return false
    }

    /// Why no connection came about, where every address was refused: another one that was allowed may answer later.
    ///
    /// - Parameter peer: whom libcurl was to connect to: the server, or the proxy before it.
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
        return TransferError(.addressNotAllowed, "the address \(name) lies in the denied network \(network)")
    }
}
