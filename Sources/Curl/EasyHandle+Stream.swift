import CCurl

/// The operations of a connected handle with ``EasyOption/Number/connectOnly``.
extension EasyHandle {
    /// Ties the connection to the handle.
    ///
    /// libcurl does so at the first read or write. Until then the connection counts as idle, and the next exchange on
    /// the loop discards it if the peer has closed its side or an idle time has passed.
    ///
    /// - Returns: whether the connection still exists.
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

    /// Returns the connection's file descriptor, which libcurl still owns.
    borrowing func socket() -> Int32? {
        var socket: curl_socket_t = -1
        return ccurl_get_socket(raw, &socket) == CURLE_OK && socket >= 0 ? socket : nil
    }

    /// Whether the connection uses TLS, to the peer or to a proxy.
    borrowing func carriesTLS() -> Bool { ccurl_carries_tls(raw) != 0 }

    /// Returns the address and port that the socket is connected to, in the format of `CURLOPT_CONNECT_TO`. With a
    /// proxy they are the proxy's.
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
