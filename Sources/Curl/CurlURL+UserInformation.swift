import CCurl

extension CurlURL {
    /// Returns the user and the password in the URL (RFC 3986, section 3.2.1), percent-decoded.
    ///
    /// - Throws: an error if a percent escape decodes to a control character.
    package func userInformation() throws(CurlError) -> (user: String?, password: String?) {
        guard let handle = curl_url() else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        defer { curl_url_cleanup(handle) }
        guard curl_url_set(handle, CURLUPART_URL, text, 0) == CURLUE_OK else {
            throw CurlError(CURLE_URL_MALFORMAT)
        }
        let decode: UInt32 = 1 << 6  // CURLU_URLDECODE
        func part(_ part: CURLUPart) throws(CurlError) -> String? {
            var text: UnsafeMutablePointer<CChar>?
            let code = curl_url_get(handle, part, &text, decode)
            if code == CURLUE_NO_USER || code == CURLUE_NO_PASSWORD { return nil }
            guard code == CURLUE_OK, let text else { throw CurlError(CURLE_URL_MALFORMAT) }
            defer { curl_free(text) }
            return String(cString: text)
        }
        return (try part(CURLUPART_USER), try part(CURLUPART_PASSWORD))
    }
}
