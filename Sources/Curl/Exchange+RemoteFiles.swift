import CCurl

/// What tells a call of libcurl's that waits for a server from one that returns.
struct ExchangeWatch {
    /// The loop's time of the turn in which the exchange was last asked; while a call waits, it stands still.
    var turn: MonotonicTime?
    var begun = MonotonicTime.now()
    /// When it was last asked.
    var asked = MonotonicTime.now()
    /// Milliseconds that a call may wait.
    var limit: Int64 = 0
    /// It was ended since a call waited for longer than that.
    var hasExpired = false
}

extension Exchange {
    /// Has the handler judge the SSH server's key before anyone logs in (``ExchangeHandler/judge(hostKey:on:)``);
    /// without this, libcurl takes any key.
    package func judgesHostKey() throws(CurlError) {
        // `ssh_getsock` of libcurl 7.88 asks for both directions, whether the transfer is paused or not.
        watchesWhilePaused = true
        limitsReceipts = true
        let code = ccurl_set_host_key_callback(easy.raw, Self.hostKey, Unmanaged.passUnretained(self).toOpaque())
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// Has the handler asked within calls that wait (``ExchangeHandler/goesOn(_:)``), and ends those that wait for
    /// longer than `limit` milliseconds; 0: for ever.
    ///
    /// At the end of a transfer libcurl's FTP and SSH wait for the server's last words within a call, and the loop
    /// with them: no timer of ours runs meanwhile.
    package func watches(_ limit: Int64) throws(CurlError) {
        watch.limit = limit
        let code = ccurl_set_progress_callback(easy.raw, Self.progress, Unmanaged.passUnretained(self).toOpaque())
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// Has the call that waits for an FTP server's answer to QUIT end after ``longestGoodbye``: nothing that follows is of
    /// interest, and some servers leave QUIT unanswered.
    package func keepsGoodbyeShort() throws(CurlError) {
        let code = ccurl_set_debug_callback(easy.raw, Self.conversation, Unmanaged.passUnretained(self).toOpaque())
        guard code == CURLE_OK else { throw CurlError(code) }
    }

    /// Milliseconds that a server may take to answer QUIT.
    private static let longestGoodbye: Int64 = 500

    private func didSend(_ line: UnsafeRawBufferPointer) {
        guard line.starts(with: "QUIT\r\n".utf8) else { return }
        watch.limit = watch.limit > 0 ? min(watch.limit, Self.longestGoodbye) : Self.longestGoodbye
        watch.begun = MonotonicTime.now()
    }

    /// It was ended by ``watches(_:)``.
    package var hasExpired: Bool { watch.hasExpired }

    /// Has libcurl look after the exchange at the loop's next turn, though no socket of it is ready; from outside its
    /// callbacks.
    ///
    /// libcurl 7.88 sleeps through the making of an FTP data connection where nothing else wakes it up: it does not
    /// begin to connect if the server's address came at once (`MSTATE_DO`), and while TLS is being made it does not
    /// watch the control connection, on which the server speaks first (`ftp_domore_getsock`).
    package func nudge() {
        guard pausedDirections == 0 else { return }
        // Each change schedules a look; a call without one does nothing.
        setPause(CURLPAUSE_SEND)
        setPause(CURLPAUSE_CONT)
    }

    /// Whether a call of libcurl's has been waiting for the server for longer than it may.
    private func isHeldUp() -> Bool {
        let now = MonotonicTime.now()
        defer { watch.asked = now }
        // A call that waits asks once a second: where longer passed, it was another exchange's that waited.
        guard watch.turn == loop.now, now.milliseconds(since: watch.asked) < 3_000 else {
            watch.turn = loop.now
            watch.begun = now
            return false
        }
        guard watch.limit > 0, now.milliseconds(since: watch.begun) > watch.limit else { return false }
        watch.hasExpired = true
        return true
    }

    // The pointers are good for the reason that Exchange.swift gives.

    private static let hostKey: curl_sshhostkeycallback = { context, _, bytes, count in
        guard let context, let bytes else { return Int32(CURLKHMATCH_MISMATCH.rawValue) }
        return Unmanaged<Exchange>.fromOpaque(context)._withUnsafeGuaranteedRef { exchange in
            let key = UnsafeRawBufferPointer(start: bytes, count: count)
            let isTrusted = !exchange.hasEnded && exchange.handler.judge(hostKey: key, on: exchange)
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
    /// Bytes that libcurl expects of the body under way: from the offset that was asked for to the file's end.
    package borrowing func expectedBodySize() -> Int64? {
        var value: curl_off_t = -1
        let code = ccurl_get_offset(raw, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &value)
        return code == CURLE_OK && value >= 0 ? Int64(value) : nil
    }

    /// The remote file's time in seconds since 1970, where it was asked for and the server told.
    package borrowing func fileTime() -> Int64? {
        var value: curl_off_t = -1
        let code = ccurl_get_offset(raw, CURLINFO_FILETIME_T, &value)
        return code == CURLE_OK && value >= 0 ? Int64(value) : nil
    }
}
