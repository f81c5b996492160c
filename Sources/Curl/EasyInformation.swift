import CCurl

/// The information that an easy handle has on its transfer.
extension EasyHandle {
    /// Returns the `errno` of a failed connection, 0 if none failed.
    package borrowing func systemError() -> Int32 {
        var value = 0
        return ccurl_get_long(raw, CURLINFO_OS_ERRNO, &value) == CURLE_OK ? Int32(clamping: value) : 0
    }

    /// Returns the status of a proxy's response to a tunnel request, 0 if there was none.
    package borrowing func proxyStatus() -> Int { number(CURLINFO_HTTP_CONNECTCODE) }

    /// Whether a proxy's response to a tunnel request offered the Basic scheme.
    package borrowing func isOfferedBasicByProxy() -> Bool { number(CURLINFO_PROXYAUTH_AVAIL) & 1 != 0 }

    /// Whether a SOCKS proxy rejected the user or password, or requires one.
    package borrowing func isRefusedByProxy() -> Bool {
        [CURLPX_NO_AUTH, CURLPX_USER_REJECTED].contains { number(CURLINFO_PROXY_ERROR) == Int($0.rawValue) }
    }

    package borrowing func serverCertificates() -> ServerCertificates {
        var result = 0
        // A verdict that is unavailable does not count as success (X509_V_ERR_UNSPECIFIED).
        if ccurl_get_long(raw, CURLINFO_SSL_VERIFYRESULT, &result) != CURLE_OK { result = 1 }
        var chain: [String] = []
        if let information = ccurl_get_certificates(raw), let lists = information.pointee.certinfo {
            for index in 0..<Int(information.pointee.num_of_certs) {
                var entry = lists[index]
                while let current = entry {
                    let text = String(cString: current.pointee.data)
                    if text.hasPrefix("Cert:") { chain.append(String(text.dropFirst(5))) }
                    entry = current.pointee.next
                }
            }
        }
        return ServerCertificates(chain: chain, verifyResult: result)
    }

    /// Returns the certificate chain of the connection in DER, the server's own certificate first.
    ///
    /// - Parameters:
    ///   - isVerified: whether to return the chain that OpenSSL verified, which ends with a trusted certificate.
    ///     Otherwise it consists of the certificates that the server sent, as far as each was signed by the next.
    ///   - issuers: certificates in DER that are added to an unverified chain if they signed its last one.
    /// - Returns: an empty array if the TLS library is not OpenSSL, or if the connection resumed a TLS session.
    package borrowing func certificateChain(isVerified: Bool, issuers: [[UInt8]] = []) -> [[UInt8]] {
        final class Chain { var certificates: [[UInt8]] = [] }
        let chain = Chain()
        let take: ccurl_certificate_handler = { context, bytes, length in
            guard let context, let bytes else { return }
            Unmanaged<Chain>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.certificates.append(Array(UnsafeBufferPointer(start: bytes, count: length)))
            }
        }
        let context = Unmanaged.passUnretained(chain).toOpaque()
        if isVerified { return ccurl_copy_verified_chain(raw, take, context) == 0 ? [] : chain.certificates }
        var extra: [ccurl_bytes] = []
        let all = issuers.flatMap(\.self)
        let isComplete = all.withUnsafeBufferPointer { all in
            var offset = 0
            for issuer in issuers where !issuer.isEmpty {
                extra.append(ccurl_bytes(bytes: all.baseAddress?.advanced(by: offset), length: issuer.count))
                offset += issuer.count
            }
            return ccurl_copy_linked_chain(raw, extra, extra.count, take, context) != 0
        }
        return isComplete ? chain.certificates : []
    }

    /// Returns the times of the exchange's steps, and the connection it used.
    package borrowing func timing() -> ExchangeTiming {
        ExchangeTiming(
            connect: offset(CURLINFO_CONNECT_TIME_T), secure: offset(CURLINFO_APPCONNECT_TIME_T),
            requestSent: offset(CURLINFO_PRETRANSFER_TIME_T), firstByte: offset(CURLINFO_STARTTRANSFER_TIME_T),
            total: offset(CURLINFO_TOTAL_TIME_T), connections: number(CURLINFO_NUM_CONNECTS),
            httpVersion: NegotiatedHTTP(number(CURLINFO_HTTP_VERSION)), remoteAddress: text(CURLINFO_PRIMARY_IP),
            remotePort: number(CURLINFO_PRIMARY_PORT))
    }

    /// Returns the address and port of the connection's peer, as in `192.0.2.1:443` and `[2001:db8::1]:80`; `nil` before
    /// there is a connection.
    package borrowing func peerAddress() -> String? {
        text(CURLINFO_PRIMARY_IP).map { PeerAddress.text($0, port: number(CURLINFO_PRIMARY_PORT)) }
    }

    /// Whether every byte of an HTTP body with a known length has been received.
    borrowing func hasWholeBody() -> Bool {
        guard text(CURLINFO_SCHEME)?.lowercased().hasPrefix("http") ?? false else { return false }
        var length: curl_off_t = -1
        guard ccurl_get_offset(raw, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK, length > 0 else {
            return false
        }
        return receivedBytes() >= Int64(length)
    }

    /// Whether an HTTP/2 server has begun its final response. If an upload stalls after that, the server has ended the
    /// stream, and libcurl 7.88 tries to send on it for ever.
    borrowing func isAnsweredInHTTP2() -> Bool {
        usesHTTP2() && number(CURLINFO_RESPONSE_CODE) >= 200
    }

    /// Whether the response came by HTTP/2.
    borrowing func usesHTTP2() -> Bool { number(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0) }

    /// Returns the number of body bytes that libcurl has read, before their decoding.
    borrowing func receivedBytes() -> Int64 { offset(CURLINFO_SIZE_DOWNLOAD_T) }

    /// Returns a description of a stalled transfer for the log.
    borrowing func state() -> String {
        """
        status \(number(CURLINFO_RESPONSE_CODE)), received \(receivedBytes()), sent \
        \(offset(CURLINFO_SIZE_UPLOAD_T)), HTTP version \(number(CURLINFO_HTTP_VERSION)), connections made \
        \(number(CURLINFO_NUM_CONNECTS))
        """
    }

    private borrowing func number(_ information: CURLINFO) -> Int {
        var value = 0
        return ccurl_get_long(raw, information, &value) == CURLE_OK ? value : 0
    }

    private borrowing func offset(_ information: CURLINFO) -> Int64 {
        var value: curl_off_t = 0
        return ccurl_get_offset(raw, information, &value) == CURLE_OK ? Int64(value) : 0
    }

    private borrowing func text(_ information: CURLINFO) -> String? {
        var value: UnsafePointer<CChar>?
        guard ccurl_get_string(raw, information, &value) == CURLE_OK, let value, value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}

/// The times of one exchange's steps, in microseconds since it was handed to libcurl; 0 for a step that did not happen.
package struct ExchangeTiming: Sendable {
    package var connect: Int64
    package var secure: Int64
    package var requestSent: Int64
    package var firstByte: Int64
    package var total: Int64
    /// The number of connections made for the exchange; 0 if it reused one.
    package var connections: Int
    /// libcurl's number of the HTTP version: 2 is HTTP/1.1, 3 is HTTP/2, 30 is HTTP/3.
    package var httpVersion: NegotiatedHTTP?
    package var remoteAddress: String?
    package var remotePort: Int
}
