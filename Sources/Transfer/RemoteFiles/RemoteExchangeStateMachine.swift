import Curl

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

/// The replies of an FTP server.
extension RemoteExchangeStateMachine {
    /// - Parameter now: monotonic time, in milliseconds.
    mutating func replyReceived(_ reply: FTPReply, now: Int64) -> RemoteExchangeAction {
        guard case .running(var running) = phase, case .exchanging(let data) = running.stage else { return .none }
        // The reply to QUIT does not explain a failure.
        if reply.code != 221 { running.lastReply = reply }
        if case .fetch(let offset) = running.step.work { running.recordSize(reply, data, offset) }
        let action: RemoteExchangeAction
        switch (reply.code, data) {
        case (227, .none), (229, .none):
            running.stage = .exchanging(.opening(since: now))
            action = .scheduleNudge(running.attempt.number, milliseconds: Self.nudgeInterval(after: 0))
        case (227, _), (229, _):
            running.stage = .exchanging(.opening(since: now))
            action = .none
        case (100..<200, _):
            running.stage = .exchanging(.none)
            action = .none
        default:
            action = running.step.work.stores ? reply.size.map { .evaluateStoredSize($0) } ?? .none : .none
        }
        phase = .running(running)
        return action
    }

    /// Between the reply with the server's port and the reply that starts the transfer, libcurl must be woken up; see
    /// ``Exchange/nudge()``.
    mutating func nudgeDue(_ attempt: Int, now: Int64) -> RemoteExchangeAction {
        guard case .running(let running) = phase, running.attempt.number == attempt,
            case .exchanging(.opening(let since)) = running.stage
        else { return .none }
        return .nudge(attempt, again: Self.nudgeInterval(after: now - since))
    }

    /// Returns the time until the next wake-up, in milliseconds. It grows, because a distant server does not justify a
    /// wake-up every few milliseconds.
    private static func nudgeInterval(after elapsed: Int64) -> Int64 { min(100, 5 + max(0, elapsed) / 8) }
}

extension RemoteStep.Work {
    fileprivate var stores: Bool { if case .store = self { true } else { false } }
}

extension RemoteExchangeStateMachine.RunningStep {
    /// Records the file size in a reply. The replies to MDTM and SIZE have the same code, but the reply to MDTM
    /// precedes the data connection.
    fileprivate mutating func recordSize(
        _ reply: FTPReply, _ data: RemoteExchangeStateMachine.DataConnection, _ offset: Int64
    ) {
        if data != .none, let size = reply.size { reportedSize = size }
        if reportedSize ?? 0 == 0, let rest = reply.announcedSize {
            reportedSize = RemoteExchangeStateMachine.sum(rest, offset)
        }
    }
}

/// The events of the file's bytes. They come for every chunk, and allocate nothing.
extension RemoteExchangeStateMachine {
    /// Decides on bytes that libcurl has received.
    mutating func bytesReceived() -> RemoteBytesAction {
        if body == .none { return .ignore }
        if !pauses.isEmpty { return .pause(begins: false) }
        return .pass(begins: beginBody())
    }

    /// Decides whether bytes are sent. The server has accepted the file name.
    mutating func bytesWanted() -> RemoteBytesAction {
        if body == .none { return .ignore }
        let begins = beginBody()
        return pauses.isEmpty ? .pass(begins: begins) : .pause(begins: begins)
    }

    /// - Returns: whether this is the first chunk of the step.
    private mutating func beginBody() -> Bool {
        if body == .begun { return false }
        body = .begun
        return true
    }

    /// Returns the server's statements about the file.
    ///
    /// - Parameter stated: the number of bytes that libcurl expects, and the file's modification time.
    func facts(_ stated: RemoteFacts) -> RemoteFacts {
        guard case .running(let running) = phase else { return RemoteFacts() }
        guard case .fetch(let offset) = running.step.work else { return stated }
        let size = file.scheme.isFTP ? running.reportedSize : stated.size.flatMap { Self.sum($0, offset) }
        return RemoteFacts(size: size, time: stated.time)
    }

    /// Returns the sum, or `nil` on overflow: a server may report any number of remaining bytes.
    static func sum(_ rest: Int64, _ offset: Int64) -> Int64? {
        let (size, isOverflow) = rest.addingReportingOverflow(offset)
        return isOverflow ? nil : size
    }

    // MARK: Pauses

    /// The task is suspended, or the client has no room, no bytes or no checkpoint.
    mutating func pause(for reason: RemotePause) {
        // The connection that was paused is gone.
        if reason != .suspended, !isExchanging { return }
        if case .running(var running) = phase {
            running.hasPaused = true
            phase = .running(running)
        }
        pauses.insert(reason)
    }

    /// A reason for a pause has passed.
    mutating func resume(after reason: RemotePause) -> RemoteExchangeAction {
        guard pauses.contains(reason) else { return .none }
        pauses.remove(reason)
        return pauses.isEmpty && isExchanging ? .unpause : .none
    }

    /// Whether a rate limit delays the bytes of the step.
    var isResting: Bool { pauses.contains(.rate) }

    /// A rate limit lets no bytes pass for so many milliseconds.
    mutating func limitReached(_ milliseconds: Int64) -> RemoteExchangeAction {
        guard case .running(let running) = phase, isExchanging else { return .none }
        pauses.insert(.rate)
        return .rest(running.attempt.number, milliseconds: milliseconds)
    }

    /// The time of a rest has passed.
    mutating func delayEnded(_ attempt: Int) -> RemoteExchangeAction {
        guard isResting, case .running(let running) = phase, running.attempt.number == attempt else { return .none }
        return .checkLimits
    }

    /// - Parameter milliseconds: the time for which a limit still lets no bytes pass. It changes when a limit does.
    mutating func limitsChecked(_ milliseconds: Int64) -> RemoteExchangeAction {
        guard isResting, case .running(let running) = phase else { return .none }
        if milliseconds > 0 { return .rest(running.attempt.number, milliseconds: milliseconds) }
        return resume(after: .rate)
    }
}

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

/// An action that ``RemoteExchangeStateMachine`` wants performed. Its performer, ``RemoteExchange``, does nothing else.
enum RemoteExchangeAction {
    case none
    /// Reads the files of the host key policy; ``RemoteExchangeStateMachine/hostKeysRead(_:)`` or
    /// ``RemoteExchangeStateMachine/failed(_:)`` follows.
    case readHostKeys
    /// Resolves the names on the way to the server; ``RemoteExchangeStateMachine/routeResolved(_:)`` or
    /// ``RemoteExchangeStateMachine/failed(_:)`` follows.
    case resolve(RemoteAttempt)
    /// Starts an exchange; ``RemoteExchangeStateMachine/ended(_:)`` follows, or
    /// ``RemoteExchangeStateMachine/failed(_:)`` if there is none.
    case start(RemoteAttempt)
    /// Aborts the exchange; ``RemoteExchangeStateMachine/ended(_:)`` follows.
    case abort
    /// Ends the pause of the exchange.
    case unpause
    /// Calls ``RemoteExchangeStateMachine/delayEnded(_:)`` after so many milliseconds.
    case rest(Int, milliseconds: Int64)
    /// Determines how long the rate limits still delay bytes; ``RemoteExchangeStateMachine/limitsChecked(_:)`` follows.
    case checkLimits
    /// Calls ``RemoteExchangeStateMachine/nudgeDue(_:now:)`` after so many milliseconds.
    case scheduleNudge(Int, milliseconds: Int64)
    /// Wakes libcurl up, and does so again after so many milliseconds.
    case nudge(Int, again: Int64)
    /// Has the client judge the size that the server reports for the stored file;
    /// ``RemoteExchangeStateMachine/clientFailed(_:)`` follows if it is wrong.
    case evaluateStoredSize(Int64)
    /// Reports the end of the step to the client, which may begin another.
    ///
    /// - Parameter forgetsAddresses: whether the names are to be resolved again before the next attempt.
    case finish(RemoteEnding, forgetsAddresses: Bool)
}

/// A connection to the server for a step.
struct RemoteAttempt {
    /// The number of the connection within the exchange, by which late events of others are recognised.
    let number: Int
    let step: RemoteStep
    /// The type of host key that an SFTP server is requested to present; `nil` for any.
    var hostKeyType: String?
    /// Whether an FTP server has refused logins without TLS.
    var requiresTLS = false
}

/// The decision on bytes that libcurl wants to deliver or to send.
enum RemoteBytesAction: Equatable {
    /// Pass them.
    ///
    /// - Parameter begins: whether they are the first of the connection.
    case pass(begins: Bool)
    /// Pause the exchange.
    case pause(begins: Bool)
    /// Drop them: they do not belong to the file.
    case ignore
}

/// The client's decision on bytes that were received.
enum RemoteBodyVerdict {
    case accepted
    /// The same bytes are delivered again after the pause.
    case paused(RemotePause)
    case refused(TransferError)
}

/// The client's decision on bytes to be sent.
enum RemoteFillVerdict {
    /// The number of bytes written; 0 at the end of the file.
    case filled(Int)
    case paused(RemotePause)
    case failed(TransferError)
}

/// The end of an exchange, as libcurl and the performer see it.
struct RemoteExchangeEnd {
    /// The way in which it ended, with libcurl's own message in the place of the general one.
    var ending: ExchangeEnding
    /// The number of bytes that libcurl expected, and the file's modification time.
    var stated = RemoteFacts()
    /// The time since the connection was begun, in milliseconds.
    var duration: Int64 = 0
    /// Whether the time for a call in which libcurl waits had passed.
    var hasExpired = false
    /// The error if every address lies in a denied network.
    var addressError: TransferError?
    /// The error of a connection that was not established.
    var connectError: TransferError?
}

/// A reason for which no bytes of a file are received from a file server or sent to it. Each reason has one owner, who
/// ends it.
enum RemotePause: UInt8, CaseIterable {
    /// The task is suspended. Its caller resumes it. This reason alone outlives a step.
    case suspended
    /// A rate limit is exhausted. The timer of ``RemoteExchangeAction/rest(_:milliseconds:)`` ends the pause.
    case rate
    /// The receiver of the bytes has no room for more. Its reader makes room.
    case full
    /// The source has no bytes to send yet. It reports when it has some.
    case source
    /// A checkpoint has yet to be confirmed. Its confirmation ends the pause.
    case checkpoint
    /// Too many blocks are queued for the disk. The disk reports when it has written them.
    case disk
}

/// The reasons for which an exchange is paused. Read for every chunk, so that it allocates nothing.
struct RemotePauses: Equatable {
    private var bits: UInt8 = 0

    var isEmpty: Bool { bits == 0 }

    func contains(_ pause: RemotePause) -> Bool { bits & Self.bit(pause) != 0 }

    mutating func insert(_ pause: RemotePause) { bits |= Self.bit(pause) }

    mutating func remove(_ pause: RemotePause) { bits &= ~Self.bit(pause) }

    /// Removes the reasons that end with a connection.
    mutating func endWithConnection() { bits &= Self.bit(.suspended) }

    private static func bit(_ pause: RemotePause) -> UInt8 { 1 << pause.rawValue }
}
