import CCurl

/// Validation of each address at the moment of the connection. Whoever named the address, and in whatever notation,
/// this is where the connection goes. If an address is refused, libcurl continues with the next address of the name.
extension Exchange {
    /// Lets the handler decide on each address before a socket is opened for it
    /// (``ExchangeHandler/evaluate(address:on:)``). A reused connection opens no socket: see
    /// ``evaluatesConnectedAddresses()``.
    package func evaluatesAddresses() throws(CurlError) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        try CurlError.check(ccurl_set_open_socket_callback(easy.raw, Self.openSocket, context))
    }

    // The pointer is valid for the reason given in Exchange.swift.

    private static let openSocket: curl_opensocket_callback = { context, _, address in
        guard let context, let address else { return CURL_SOCKET_BAD }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            guard !exchange.hasEnded else { return CURL_SOCKET_BAD }
            return openSocketIfAllowed(address) { exchange.handler.evaluate(address: $0, on: exchange) }
        }
    }
}

extension StreamConnection {
    /// Lets the handler decide on each address before a socket is opened for it (``StreamHandler/evaluate(address:)``).
    func evaluateAddresses() throws(CurlError) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        try CurlError.check(ccurl_set_open_socket_callback(easy.raw, Self.openSocket, context))
    }

    // The pointer is valid: the handle leaves its multi handle before the stream is freed.

    private static let openSocket: curl_opensocket_callback = { context, _, address in
        guard let context, let address else { return CURL_SOCKET_BAD }
        return Unmanaged<StreamConnection>.fromOpaque(context)._withUnsafeGuaranteedRef { stream in
            openSocketIfAllowed(address) { stream.allows($0) }
        }
    }
}

/// Opens the socket that libcurl requests, as libcurl itself would.
private func openSocketIfAllowed(
    _ address: UnsafePointer<curl_sockaddr>, _ allows: (UnsafeRawBufferPointer) -> Bool
) -> curl_socket_t {
    let isAllowed = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 16) { space in
        space.initialize(repeating: 0)
        guard let base = space.baseAddress else { return false }
        let count = Int(ccurl_copy_address(address, base))
        return allows(UnsafeRawBufferPointer(start: base, count: count))
    }
    return isAllowed ? ccurl_open_socket(address) : CURL_SOCKET_BAD
}
