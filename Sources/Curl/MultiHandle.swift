import CCurl

/// Owns a `CURLM *`; lives and dies on its loop's thread.
struct MultiHandle: ~Copyable {
    let raw: UnsafeMutableRawPointer

    init() throws(CurlError) {
        try CurlLibrary.initialise()
        guard let raw = curl_multi_init() else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        self.raw = raw
    }

    deinit { curl_multi_cleanup(raw) }

    borrowing func setMaximumIdleConnections(_ count: Int) {
        _ = ccurl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, count)
    }

    borrowing func add(_ easy: UnsafeMutableRawPointer) throws(CurlError) {
        let code = curl_multi_add_handle(raw, easy)
        guard code == CURLM_OK else { throw CurlError(code) }
    }

    borrowing func remove(_ easy: UnsafeMutableRawPointer) {
        curl_multi_remove_handle(raw, easy)
    }

    /// A socket became ready; errors count as both directions, so that libcurl looks.
    borrowing func act(on socket: Int32, readable: Bool, writable: Bool, failed: Bool) {
        var mask: Int32 = 0
        if readable { mask |= CURL_CSELECT_IN }
        if writable { mask |= CURL_CSELECT_OUT }
        if failed { mask |= CURL_CSELECT_ERR }
        var running: Int32 = 0
        curl_multi_socket_action(raw, socket, mask, &running)
    }

    /// libcurl's own deadline has passed.
    borrowing func actOnTimeout() {
        var running: Int32 = 0
        // CURL_SOCKET_TIMEOUT
        curl_multi_socket_action(raw, -1, 0, &running)
    }

    /// A transfer that ended, with its result; `nil` where none is left.
    borrowing func nextDone() -> (easy: UnsafeMutableRawPointer, result: CURLcode)? {
        var result = CURLE_OK
        guard let easy = ccurl_multi_next_done(raw, &result) else { return nil }
        return (easy, result)
    }
}
