package import CCurl

/// The process-wide state and capabilities of libcurl.
package enum CurlLibrary {
    /// The result of the global initialisation. It runs once, on first use, before any thread of this program uses a
    /// handle.
    private static let initialised: CURLcode = {
        // The loops' threads are detached and may outlast `main`.
        ccurl_keep_openssl_at_exit()
        return curl_global_init(Int(CURL_GLOBAL_DEFAULT))
    }()

    /// - Throws: ``CurlError`` if libcurl cannot work on this machine.
    package static func initialise() throws(CurlError) {
        guard initialised == CURLE_OK else { throw CurlError(initialised) }
    }

    /// Whether libcurl was built with HTTP/3.
    package static var hasHTTP3: Bool { ccurl_has_http3() != 0 }

    /// The version number of the loaded library, such as `7.88.1`.
    package static var versionNumber: String { String(cString: ccurl_version_number()) }

    /// The content codings that libcurl can decode, by the names it uses itself (RFC 9110, section 8.4.1).
    package static var contentCodings: [String] {
        var codings: [String] = []
        if ccurl_decodes_gzip() != 0 { codings += ["deflate", "gzip"] }
        if ccurl_decodes_brotli() != 0 { codings.append("br") }
        if ccurl_decodes_zstd() != 0 { codings.append("zstd") }
        return codings
    }

    /// Whether libcurl uses libssh2. With it, a callback of this program decides on every server's key before
    /// authentication (`CURLOPT_SSH_HOSTKEYFUNCTION`, since 7.84.0).
    package static var evaluatesHostKeys: Bool {
        ccurl_ssh_library().map { String(cString: $0).hasPrefix("libssh2/") } ?? false
    }

    /// The name and version of the loaded library, such as `libcurl/7.88.1`.
    package static var version: String { "libcurl/" + versionNumber }
}

/// A result code of libcurl other than `CURLE_OK`, with a message.
package struct CurlError: Error, Sendable, Equatable, CustomStringConvertible {
    package let code: Code
    package let message: String
    /// Whether the connection was ended because its peer kept the loop busy with data without content.
    package private(set) var isFlood = false

    package init(_ code: CURLcode, message: String? = nil) {
        self.code = Code(code)
        self.message = message ?? String(cString: curl_easy_strerror(code))
    }

    /// Creates an error that libcurl has not reported, for tests.
    package init(_ code: Code, message: String) {
        self.code = code
        self.message = message
    }

    /// Creates the same error with a more precise message, except for a flood: libcurl has no message for that.
    package init(_ error: CurlError, message: String) {
        code = error.code
        isFlood = error.isFlood
        self.message = isFlood ? error.message : message
    }

    /// Creates the error of a connection that was ended for a flood.
    init(ofFlood error: CurlError) {
        code = error.code
        message = "the peer floods the connection with data without content"
        isFlood = true
    }

    /// Creates the error of a failed multi handle. The numbers of its codes have other meanings among those of
    /// transfers, so one code stands for all of them.
    package init(_ code: CURLMcode) {
        self.code = Code(CURLE_UNRECOVERABLE_POLL)
        message = String(cString: curl_multi_strerror(code))
    }

    /// Throws any code other than `CURLE_OK`.
    static func check(_ code: CURLcode) throws(CurlError) {
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// Throws any code other than `CURLM_OK`.
    static func check(_ code: CURLMcode) throws(CurlError) {
        guard code == CURLM_OK else { throw CurlError(code) }
    }

    package var description: String { message }
}
