/// The invariants of an exchange with a file server.
///
/// 1. *Every step ends once.* Its end is reported by one action, after which no event of it has an effect.
/// 2. *Every pause ends.* The owner of each reason is named at ``RemotePause``. Only a suspension outlives a
///    connection.
/// 3. *Bytes pass only while libcurl is at work for a step that carries a file.*
/// 4. *The server's host key is judged before anything else.* A step with an SFTP server does not connect without a
///    check.
/// 5. *A step takes a limited number of connections:* one for each type of host key, or one more for TLS.
extension RemoteExchangeStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    var violation: String? {
        guard case .running(let running) = phase else {
            if body != .none { return "bytes are expected without a step" }
            return hasOwnPause ? "a pause outlives its connection" : nil
        }
        if (body != .none) != (isExchanging && running.step.work.carriesFile) {
            return "the step and its bytes disagree"
        }
        if requiresTLS, file.scheme != .ftp { return "TLS is added to \(file.scheme.rawValue)" }
        if case .exchanging(let data) = running.stage {
            if file.scheme == .sftp, running.hostKeys == nil { return "a host key would not be judged" }
            if data != .none, !file.scheme.isFTP { return "SFTP has no data connection" }
            return nil
        }
        if running.failure != nil { return "an aborted step goes on" }
        return hasOwnPause ? "a connection is paused before it begins" : nil
    }

    /// Whether a reason for a pause exists that ends with the connection.
    private var hasOwnPause: Bool {
        var own = pauses
        own.remove(.suspended)
        return !own.isEmpty
    }
}
