import CCurl

/// An owner of a `CURLM *`, created and freed on its loop's thread.
struct MultiHandle: ~Copyable {
    let raw: UnsafeMutableRawPointer

    init() throws(CurlError) {
        try CurlLibrary.initialise()
        guard let raw = curl_multi_init() else { throw CurlError(CURLE_OUT_OF_MEMORY) }
        self.raw = raw
    }

    deinit {
        // Fails for an invalid handle, or within a callback, where this cannot be called.
        _ = curl_multi_cleanup(raw)
    }

    borrowing func setMaximumIdleConnections(_ count: Int) {
        _ = ccurl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, count)  // at worst the limit stays as it was
    }

    borrowing func add(_ easy: UnsafeMutableRawPointer) throws(CurlError) {
        try CurlError.check(curl_multi_add_handle(raw, easy))
    }

    /// - Returns: whether the handle was removed. Within a libcurl callback, of whichever handle, it is not removed,
    ///   and must not be freed.
    borrowing func remove(_ easy: UnsafeMutableRawPointer) -> Bool {
        // Any other code is returned after the handle was released, or for a handle that is not in the multi handle.
        curl_multi_remove_handle(raw, easy) != CURLM_RECURSIVE_API_CALL
    }

    /// Reports that a socket is ready. libcurl checks the socket on errors too.
    ///
    /// - Returns: `CURLM_OK`, or a failure that affects all transfers.
    borrowing func act(on socket: Int32, readable: Bool, writable: Bool, failed: Bool) -> CURLMcode {
        var mask: Int32 = 0
        if readable { mask |= CURL_CSELECT_IN }
        if writable { mask |= CURL_CSELECT_OUT }
        if failed { mask |= CURL_CSELECT_ERR }
        var running: Int32 = 0
        return curl_multi_socket_action(raw, socket, mask, &running)
    }

    /// Reports that libcurl's own deadline has passed.
    ///
    /// - Returns: `CURLM_OK`, or a failure that affects all transfers.
    borrowing func actOnTimeout() -> CURLMcode {
        var running: Int32 = 0
        // CURL_SOCKET_TIMEOUT
        return curl_multi_socket_action(raw, -1, 0, &running)
    }

    /// Returns a completed transfer with its result; `nil` if none is left.
    borrowing func nextDone() -> (easy: UnsafeMutableRawPointer, result: CURLcode)? {
        var result = CURLE_OK
        guard let easy = ccurl_multi_next_done(raw, &result) else { return nil }
        return (easy, result)
    }
}
