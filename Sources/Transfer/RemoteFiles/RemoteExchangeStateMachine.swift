/// The state of an exchange with a file server, and every decision about it: when a step connects, which host key and
/// which security it requests, whether bytes pass, and what the end of a connection means.
///
/// A value without I/O, clock and closures. ``RemoteExchange`` reports each event, and performs the
/// ``RemoteExchangeAction`` that comes back. An event that is too late for its connection has no effect. The extensions
/// group the events:
///
/// | Event | Extension |
/// |---|---|
/// | reply of an FTP server, data connection overdue | `+Replies` |
/// | bytes received, bytes wanted, pause, resumption, rate limit | `+Bytes` |
/// | exchange ended | `+Endings` |
struct RemoteExchangeStateMachine {
    /// The properties of the task that stay the same.
    struct Configuration {
        var file: RemoteFile
        /// The use of TLS that the request asks for.
        var transportSecurity = TransportSecurity.none
        /// The session's time-out without a byte, in milliseconds.
        var stallTimeout: Int64 = 60_000
        /// Whether the request or its URL has a user name.
        var hasLogin = false
    }

    enum Phase {
        /// The state before the first step.
        case idle
        case running(RunningStep)
        /// The state between two steps, and after the last.
        case ended
    }

    /// A step from its beginning to its end. It may take several connections, one after the other.
    struct RunningStep {
        enum Stage: Equatable {
            /// The files of the host key policy are read.
            case readingHostKeys
            /// The names on the way to the server are resolved.
            case resolving
            /// libcurl performs the transfer.
            case exchanging(DataConnection)
        }

        /// The latest connection.
        var attempt: RemoteAttempt
        var stage: Stage
        /// The check of an SFTP server's host key. It continues over the connections of the step.
        var hostKeys: HostKeyCheck?
        /// The last reply of an FTP server, other than that to QUIT.
        var lastReply: FTPReply?
        /// The file size in bytes that an FTP server reported.
        var reportedSize: Int64?
        /// Whether the step was paused at any time, other than for a rate limit.
        var hasPaused: Bool
        /// The reason for which this machine aborts the step. It takes precedence over libcurl's error.
        var failure: TransferError?

        var step: RemoteStep { attempt.step }
    }

    /// The data connection of an FTP step.
    enum DataConnection: Equatable {
        /// None is being opened.
        case none
        /// The server has named its port and not yet begun the transfer. The time is monotonic, in milliseconds.
        case opening(since: Int64)
    }

    /// The bytes of the file in the current connection.
    enum Body: Equatable {
        /// None are expected: libcurl is not at work, or the step carries no file.
        case none
        case awaited
        case begun
    }

    let configuration: Configuration
    var phase = Phase.idle
    /// The state of the connection's bytes. Read for every chunk, and so not part of the step.
    var body = Body.none
    /// The reasons for which no bytes pass at present.
    var pauses = RemotePauses()
    /// The number of connections so far.
    var attempts = 0
    /// Whether an FTP server has refused logins without TLS.
    var requiresTLS = false

    init(_ configuration: Configuration) { self.configuration = configuration }

    var file: RemoteFile { configuration.file }

    /// Whether libcurl is at work for a step.
    var isExchanging: Bool {
        guard case .running(let running) = phase, case .exchanging = running.stage else { return false }
        return true
    }

    // MARK: Beginning

    /// Begins a step.
    mutating func begin(_ step: RemoteStep) -> RemoteExchangeAction {
        if case .running = phase { return .none }
        pauses.endWithConnection()
        var running = RunningStep(
            attempt: RemoteAttempt(number: attempts, step: step), stage: .readingHostKeys,
            hasPaused: pauses.contains(.suspended))
        guard file.scheme == .sftp else { return connect(&running) }
        phase = .running(running)
        return .readHostKeys
    }

    mutating func hostKeysRead(_ check: HostKeyCheck) -> RemoteExchangeAction {
        guard case .running(var running) = phase, running.stage == .readingHostKeys else { return .none }
        running.hostKeys = check
        return connect(&running)
    }

    /// Begins the next connection of a step.
    mutating func connect(_ running: inout RunningStep) -> RemoteExchangeAction {
        attempts += 1
        body = .none
        pauses.endWithConnection()
        running.attempt = RemoteAttempt(number: attempts, step: running.step, requiresTLS: requiresTLS)
        if case .type(let type)? = running.hostKeys?.next() { running.attempt.hostKeyType = type }
        running.stage = .resolving
        phase = .running(running)
        return .resolve(running.attempt)
    }

    /// The names on the way to the server are resolved.
    mutating func routeResolved(_ attempt: Int) -> RemoteExchangeAction {
        guard case .running(var running) = phase, running.stage == .resolving, running.attempt.number == attempt
        else { return .none }
        running.stage = .exchanging(.none)
        phase = .running(running)
        body = running.step.work.carriesFile ? .awaited : .none
        return .start(running.attempt)
    }

    /// Returns whether the server's host key is trusted.
    mutating func hostKeyReceived(_ key: [UInt8]) -> Bool {
        guard case .running(var running) = phase else { return false }
        let isTrusted = running.hostKeys?.evaluate(key) ?? false
        phase = .running(running)
        return isTrusted
    }

    // MARK: The end

    /// A step failed on this machine, and no exchange is under way.
    mutating func failed(_ error: TransferError) -> RemoteExchangeAction {
        guard case .running = phase else { return .none }
        return finish(RemoteEnding(error: error))
    }

    /// Cancels the current step, or the exchange before its first step.
    mutating func cancel(_ reason: TransferError) -> RemoteExchangeAction {
        switch phase {
        case .idle: return finish(RemoteEnding(error: reason, isLocal: true))
        case .ended: return .none
        case .running(var running):
            if running.step.isCleanUp { return .none }
            running.failure = reason
            phase = .running(running)
            guard case .exchanging = running.stage else { return finish(RemoteEnding(error: reason)) }
            return .abort
        }
    }

    /// The client refuses bytes, has none to send, or finds the stored size wrong. libcurl aborts the exchange.
    mutating func clientFailed(_ error: TransferError) {
        guard case .running(var running) = phase, isExchanging else { return }
        running.failure = error
        phase = .running(running)
    }

    /// Returns whether libcurl is to go on within a call in which it waits.
    func continues(isCancelling: Bool) -> Bool {
        guard case .running(let running) = phase else { return !isCancelling }
        return running.step.isCleanUp || !isCancelling
    }

    /// Ends the step.
    mutating func finish(_ ending: RemoteEnding, forgetsAddresses: Bool = false) -> RemoteExchangeAction {
        var ending = ending
        if case .running(let running) = phase {
            if let failure = running.failure {
                ending = RemoteEnding(error: failure, facts: ending.facts, isLocal: true, duration: ending.duration)
            }
            ending.hasPaused = running.hasPaused
        }
        ending.bodyBegun = body == .begun
        phase = .ended
        body = .none
        pauses.endWithConnection()
        return .finish(ending, forgetsAddresses: forgetsAddresses)
    }
}
