import CCurl

/// The state that distinguishes a libcurl call that waits for a server from one that returns.
struct ExchangeWatch {
    /// The loop's time of the turn in which the progress callback last ran. It does not advance while a call waits.
    var turn: MonotonicTime?
    var begun = MonotonicTime.now()
    /// The time at which the progress callback last ran.
    var asked = MonotonicTime.now()
    /// The time that a call may wait, in milliseconds; 0 for no limit.
    var limit: Int64 = 0
    /// Whether the exchange was ended because a call waited for longer than that.
    var hasExpired = false
}

extension Exchange {
    /// Lets the handler decide on the SSH server's key before authentication
    /// (``ExchangeHandler/evaluate(hostKey:on:)``). Without this, libcurl accepts any key.
    package func evaluatesHostKey() throws(CurlError) {
        // `ssh_getsock` of libcurl 7.88 requests both directions, whether or not the transfer is paused.
        watchesWhilePaused = true
        limitsReceipts = true
        let code = ccurl_set_host_key_callback(easy.raw, Self.hostKey, Unmanaged.passUnretained(self).toOpaque())
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// Calls the handler within libcurl calls that wait (``ExchangeHandler/goesOn(_:)``), and ends calls that wait for
    /// longer than `limit` milliseconds; 0 for no limit.
    ///
    /// At the end of a transfer, libcurl's FTP and SSH code waits for the server's last response within a call. That
    /// blocks the loop, so none of its timers fires meanwhile.
    package func watches(_ limit: Int64) throws(CurlError) {
        watch.limit = limit
        let code = ccurl_set_progress_callback(easy.raw, Self.progress, Unmanaged.passUnretained(self).toOpaque())
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// Ends the call that waits for an FTP server's response to QUIT after ``quitWait``. Nothing that follows
    /// matters, and some servers do not respond to QUIT.
    package func limitsQuitWait() throws(CurlError) {
        let code = ccurl_set_debug_callback(easy.raw, Self.conversation, Unmanaged.passUnretained(self).toOpaque())
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// The time that a server may take to respond to QUIT, in milliseconds.
    private static let quitWait: Int64 = 500

    private func didSend(_ line: UnsafeRawBufferPointer) {
        guard line.starts(with: "QUIT\r\n".utf8) else { return }
        watch.limit = watch.limit > 0 ? min(watch.limit, Self.quitWait) : Self.quitWait
        watch.begun = MonotonicTime.now()
    }

    /// Whether ``watches(_:)`` has ended the exchange.
    package var hasExpired: Bool { watch.hasExpired }

    /// Makes libcurl process the exchange at the loop's next turn, even if none of its sockets is ready. Call it from
    /// outside libcurl's callbacks.
    ///
    /// libcurl 7.88 misses the opening of an FTP data connection if nothing else wakes it up. It does not start to
    /// connect if the server's address was received at once (`MSTATE_DO`). During the TLS handshake it does not watch
    /// the control connection, on which the server sends first (`ftp_domore_getsock`).
    package func nudge() {
        guard pausedDirections == 0 else { return }
        // Each change of the flags schedules processing; a call that changes nothing does not.
        setPause(CURLPAUSE_SEND)
        setPause(CURLPAUSE_CONT)
    }

    /// Whether a libcurl call has been waiting for the server for longer than permitted.
    private func isHeldUp() -> Bool {
        let now = MonotonicTime.now()
        defer { watch.asked = now }
        // A waiting call runs the progress callback once a second. After a longer gap, a call of another exchange was
        // waiting.
        guard watch.turn == loop.now, now.milliseconds(since: watch.asked) < 3_000 else {
            watch.turn = loop.now
            watch.begun = now
            return false
        }
        guard watch.limit > 0, now.milliseconds(since: watch.begun) > watch.limit else { return false }
        watch.hasExpired = true
        return true
    }

    // The pointers are valid for the reason given in Exchange.swift.

    private static let hostKey: curl_sshhostkeycallback = { context, _, bytes, count in
        guard let context, let bytes else { return Int32(CURLKHMATCH_MISMATCH.rawValue) }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            let key = UnsafeRawBufferPointer(start: bytes, count: count)
            let isTrusted = !exchange.hasEnded && exchange.handler.evaluate(hostKey: key, on: exchange)
            let match = isTrusted ? CURLKHMATCH_OK : CURLKHMATCH_MISMATCH
            return Int32(match.rawValue)
        }
    }

    private static let conversation: curl_debug_callback = { _, kind, bytes, count, context in
        guard kind == CURLINFO_HEADER_OUT, let context, let bytes else { return 0 }
        Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            exchange.didSend(UnsafeRawBufferPointer(start: bytes, count: count))
        }
        return 0
    }

    private static let progress: curl_xferinfo_callback = { context, _, _, _, _ in
        guard let context else { return 1 }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            !exchange.hasEnded && exchange.handler.goesOn(exchange) && !exchange.isHeldUp() ? 0 : 1
        }
    }
}

extension EasyHandle {
    /// Returns the number of bytes that libcurl expects in the current body: from the requested offset to the file's
    /// end.
    package borrowing func expectedBodySize() -> Int64? {
        var value: curl_off_t = -1
        let code = ccurl_get_offset(raw, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &value)
        return code == CURLE_OK && value >= 0 ? Int64(value) : nil
    }

    /// Returns the remote file's modification time in seconds since 1970, if it was requested and the server sent it.
    package borrowing func fileTime() -> Int64? {
        var value: curl_off_t = -1
        let code = ccurl_get_offset(raw, CURLINFO_FILETIME_T, &value)
        // -1 stands for an unknown time; others before 1970 are negative.
        return code == CURLE_OK && value != -1 ? Int64(value) : nil
    }
}
