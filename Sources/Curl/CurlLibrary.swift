import CCurl

/// The library as a whole.
package enum CurlLibrary {
    /// Initialised once, on first use, before any thread of ours touches a handle.
    private static let initialised: CURLcode = {
        // The loops' threads are detached, and may outlast `main`.
        ccurl_keep_openssl_at_exit()
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT))
    }()

    /// - Throws: ``CurlError`` where libcurl cannot work on this machine.
    package static func initialise() throws(CurlError) {
        guard initialised == CURLE_OK else { throw CurlError(initialised) }
    }

    /// Whether it was built with HTTP/3.
    package static var hasHTTP3: Bool { ccurl_has_http3() != 0 }

    /// What it can decode of an answer's body, as it names that itself (RFC 9110, section 8.4.1).
    package static var contentCodings: [String] {
        var codings: [String] = []
        if ccurl_decodes_gzip() != 0 { codings += ["deflate", "gzip"] }
        if ccurl_decodes_brotli() != 0 { codings.append("br") }
        if ccurl_decodes_zstd() != 0 { codings.append("zstd") }
        return codings
    }

    /// Whether SSH is libssh2's, with which the key of every server is judged by us before anyone logs in
    /// (`CURLOPT_SSH_HOSTKEYFUNCTION`, since 7.84.0).
    package static var judgesHostKeys: Bool {
        ccurl_ssh_library().map { String(cString: $0).hasPrefix("libssh2/") } ?? false
    }

    /// `libcurl/7.88.1`, found at run time.
    package static var version: String {
        "libcurl/" + String(cString: ccurl_version_number())
    }
}

/// A result code of libcurl that is not `CURLE_OK`, with its own words.
package struct CurlError: Error, Sendable, Equatable, CustomStringConvertible {
    package let code: UInt32
    package let message: String
    /// The connection was ended since its peer kept the loop busy with what brought nothing.
    package private(set) var isFlood = false

    package init(_ code: CURLcode, message: String? = nil) {
        self.code = code.rawValue
        self.message = message ?? String(cString: curl_easy_strerror(code))
    }

    /// The same, in better words; of a flood libcurl knows none.
    package init(_ error: CurlError, message: String) {
        code = error.code
        isFlood = error.isFlood
        self.message = isFlood ? error.message : message
    }

    /// What became of a connection that was ended for a flood.
    init(ofFlood error: CurlError) {
        code = error.code
        message = "the peer floods the connection with what brings nothing"
        isFlood = true
    }

    /// What a multi handle could not do. Its codes have numbers that mean other things among those of transfers: this
    /// one stands for all of them.
    package init(_ code: CURLMcode) {
        self.code = CURLE_UNRECOVERABLE_POLL.rawValue
        message = String(cString: curl_multi_strerror(code))
    }

    /// Throws what is not `CURLE_OK`.
    static func check(_ code: CURLcode) throws(CurlError) {
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// Throws what is not `CURLM_OK`.
    static func check(_ code: CURLMcode) throws(CurlError) {
        guard code == CURLM_OK else { throw CurlError(code) }
    }

    package var description: String { message }
}
