import CCurl

/// An owner of a `CURLU *`. Several threads may use it once the URL is complete, since libcurl then only reads it.
struct CurlURLHandle: ~Copyable, @unchecked Sendable {
    let raw: OpaquePointer

    init() throws(CurlError) {
        guard let raw = curl_url() else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        self.raw = raw
    }

    deinit { curl_url_cleanup(raw) }

    /// Sets a part, or parses a whole URL.
    borrowing func set(_ part: CURLUPart, to text: String) throws(CurlError) {
        let code = text.withCString { curl_url_set(raw, part, $0, 0) }
        guard code == CURLUE_OK else { throw CurlError(CURLE_URL_MALFORMAT) }
    }

    borrowing func remove(_ part: CURLUPart) throws(CurlError) {
        guard curl_url_set(raw, part, nil, 0) == CURLUE_OK else { throw CurlError(CURLE_URL_MALFORMAT) }
    }

    /// Whether the URL has a user or a password.
    var hasUser: Bool {
        for part in [CURLUPART_USER, CURLUPART_PASSWORD] where self.part(part) != nil { return true }
        return false
    }

    /// Returns a part; `nil` if the URL does not have it.
    borrowing func part(_ part: CURLUPart, _ flags: UInt32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(raw, part, &text, flags) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}
