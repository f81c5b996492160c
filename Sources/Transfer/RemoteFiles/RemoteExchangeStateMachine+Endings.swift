import Curl

/// The end of an exchange: another connection, or the end of the step with its error.
extension RemoteExchangeStateMachine {
    mutating func ended(_ end: RemoteExchangeEnd) -> RemoteExchangeAction {
        guard case .running(var running) = phase, case .exchanging = running.stage else { return .none }
        running.stage = .exchanging(.none)
        phase = .running(running)
        var ending = RemoteEnding(facts: facts(end.stated), duration: end.duration)
        switch end.ending {
        case .finished: break
        case .cancelled: ending.error = .cancelled
        case .stalled:
            ending.error = TransferError(
                .stalled, "no data for \(TransferError.duration(configuration.stallTimeout))")
        case .failed(let error):
            if running.failure == nil, requestsAnotherKey(error, running) || requestsTLS(error, running) {
                return connect(&running)
            }
            // CURLE_QUOTE_ERROR; CURLE_REMOTE_ACCESS_DENIED, CURLE_UPLOAD_FAILED
            ending.isCommandRefused = error.code == .quoteError && !running.isTransient
            ending.isNameRefused =
                body != .begun && [.remoteAccessDenied, .uploadFailed].contains(error.code) && !running.isTransient
            // CURLE_SSH
            ending.isOfDirectory = error.code == .ssh && body != .begun && ending.facts.size != nil
            ending.error = self.error(error, end, running, ending.facts)
            // CURLE_COULDNT_CONNECT and CURLE_PROXY: no address responded.
            return finish(ending, forgetsAddresses: error.code == .couldntConnect || error.code == .proxy)
        }
        return finish(ending)
    }

    /// Returns whether to retry with another host key type. The key was not a known one, or no common type was found
    /// (CURLE_PEER_FAILED_VERIFICATION, CURLE_FAILED_INIT); the server may have another key.
    private func requestsAnotherKey(_ error: CurlError, _ running: RunningStep) -> Bool {
        [.peerFailedVerification, .failedInit].contains(error.code) && running.hostKeys?.hasNext ?? false
    }

    /// Returns whether to retry with TLS, because the server refuses logins without it (CURLE_LOGIN_DENIED,
    /// CURLE_FTP_WEIRD_PASS_REPLY).
    private mutating func requestsTLS(_ error: CurlError, _ running: RunningStep) -> Bool {
        guard file.scheme == .ftp, configuration.transportSecurity == .none, !requiresTLS,
            [.loginDenied, .ftpWeirdPassReply].contains(error.code),
            let reply = running.lastReply, reply.demandsTLS
        else { return false }
        requiresTLS = true
        return true
    }

    private func error(
        _ error: CurlError, _ end: RemoteExchangeEnd, _ running: RunningStep, _ facts: RemoteFacts
    ) -> TransferError {
        var (isFetching, isStoring) = (false, false)
        switch running.step.work {
        case .fetch: isFetching = true
        case .store: isStoring = true
        case .look, .command: break
        }
        // CURLE_ABORTED_BY_CALLBACK
        if error.code == .abortedByCallback {
            guard end.hasExpired else { return .cancelled }
            return TransferError(.stalled, "\(file.host) did not confirm in time that the transfer succeeded")
        }
        // CURLE_QUOTE_ERROR. Of the commands sent before a download, only REST is required to succeed.
        if error.code == .quoteError, !running.isTransient, isFetching {
            return TransferError(.remoteChanged, "\(file.host) can only send files from their first byte")
        }
        if [.peerFailedVerification, .failedInit].contains(error.code), let refusal = running.hostKeys?.refusal {
            return refusal
        }
        if let refusal = end.addressError { return refusal }
        if body != .begun, let connectError = end.connectError { return connectError.caused(by: error) }
        // LIBSSH2_ERROR_KEX_FAILURE
        if error.code == .failedInit, error.message.firstRange(of: " -5,") != nil,
            let refusal = running.hostKeys?.unmet
        {
            return refusal
        }
        return TransferError.remote(
            error, file: file, reply: running.lastReply, bodyBegun: body == .begun,
            isOpened: isFetching && file.scheme == .sftp && facts.size != nil, isStoring: isStoring,
            hasLogin: configuration.hasLogin
        ).caused(by: error)
    }
}

extension RemoteExchangeStateMachine.RunningStep {
    /// Whether the last reply reports a failure that may pass (RFC 959, section 4.2.1).
    fileprivate var isTransient: Bool { lastReply.map { (400...499).contains($0.code) } ?? false }
}
