import CCurl

/// The version of HTTP that an exchange used (`CURLINFO_HTTP_VERSION`).
package enum NegotiatedHTTP: Sendable {
    case http10, http11, http2, http3

    /// - Parameter number: a value of libcurl's `CURL_HTTP_VERSION_` constants.
    init?(_ number: Int) {
        switch number {
        case Int(CURL_HTTP_VERSION_1_0): self = .http10
        case Int(CURL_HTTP_VERSION_1_1): self = .http11
        case Int(CURL_HTTP_VERSION_2_0): self = .http2
        case Int(CURL_HTTP_VERSION_3): self = .http3
        default: return nil
        }
    }
}
