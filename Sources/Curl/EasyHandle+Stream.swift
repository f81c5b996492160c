import CCurl

/// What a handle with ``EasyOption/Number/connectOnly`` is good for once it is connected.
extension EasyHandle {
    /// Ties the connection to the handle.
    ///
    /// libcurl does so with the first read or write. Until then the connection counts as idle, and the next exchange
    /// on the loop throws it away where the peer has closed its side or a time has passed.
    ///
    /// - Returns: whether there was still a connection.
    borrowing func claimConnection() -> Bool {
        var count = 0
        var byte: UInt8 = 0
        let code = curl_easy_recv(raw, &byte, 0, &count)
        return code == CURLE_OK || code == CURLE_AGAIN
    }

    borrowing func receive(into space: UnsafeMutableRawBufferPointer) -> (code: CURLcode, count: Int) {
        var count = 0
        let code = curl_easy_recv(raw, space.baseAddress, space.count, &count)
        return (code, count)
    }

    borrowing func send(_ bytes: UnsafeRawBufferPointer) -> (code: CURLcode, count: Int) {
        var count = 0
        let code = curl_easy_send(raw, bytes.baseAddress, bytes.count, &count)
        return (code, count)
    }

    /// The connection's descriptor; it stays libcurl's.
    borrowing func socket() -> Int32? {
        var socket: curl_socket_t = -1
        return ccurl_get_socket(raw, &socket) == CURLE_OK && socket >= 0 ? socket : nil
    }

    /// Whether TLS is spoken, to the peer or to a proxy.
    borrowing func carriesTLS() -> Bool { ccurl_carries_tls(raw) != 0 }

    /// The address and port that the socket is connected to, a proxy's where there is one, as `CURLOPT_CONNECT_TO`
    /// takes them.
    borrowing func connectedAddress() -> String? {
        var text: UnsafeMutableRawPointer?
        var port = 0
        guard ccurl_get_pointer(raw, CURLINFO_PRIMARY_IP, &text) == CURLE_OK, let text,
            ccurl_get_long(raw, CURLINFO_PRIMARY_PORT, &port) == CURLE_OK
        else { return nil }
        let address = String(cString: text.assumingMemoryBound(to: CChar.self))
        return address.utf8.contains(UInt8(ascii: ":")) ? "[\(address)]:\(port)" : "\(address):\(port)"
    }
}
