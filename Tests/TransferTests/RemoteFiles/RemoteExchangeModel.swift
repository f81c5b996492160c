import Curl

@testable import Transfer

/// A file server as a value.
struct ModelFileServer: Equatable {
    /// The types of its host keys, the one first that it presents unasked.
    var keyTypes = ["ssh-ed25519"]
    /// The type of the key that is trusted; `nil`: none is.
    var trustedType: String? = "ssh-ed25519"
    /// Whether it refuses logins without TLS.
    var demandsTLS = false

    static func key(_ type: String) -> [UInt8] { [0, 0, 0, UInt8(type.utf8.count)] + Array(type.utf8) + [1] }
}

/// An exchange with a file server as a value: the state machine, a resolver, libcurl, timers and a client. It performs
/// every action without I/O, so that a test can order the events as it likes.
struct RemoteExchangeModel {
    /// What may happen next.
    enum Event: Hashable {
        case begin
        case resolved(Int)
        case notResolved
        case reply(String)
        case hostKey
        /// libcurl delivers or wants bytes; the client accepts them, pauses or fails.
        case bytes(Client)
        /// The owner of a reason ends the pause.
        case release(RemotePause)
        case rest(Int)
        case nudge(Int)
        case end(End)
        case cancel, suspend, resume
    }

    enum Client: Hashable {
        case accepts, fails, limited
        case pauses(RemotePause)
    }

    enum End: Hashable { case well, stalled, failed, refused }

    let server: ModelFileServer
    private(set) var machine: RemoteExchangeStateMachine
    private var steps: [RemoteStep]
    /// Attempts whose names may still be resolved, late replies among them.
    private var answers: [Int] = []
    private var resolving: Int?
    /// The connection that libcurl is at work for.
    private(set) var exchange: RemoteAttempt?
    /// Whether libcurl waits for the end of a pause.
    private(set) var isPausedInCurl = false
    private var keyIsTrusted = false
    private var mustAbort = false
    private var rests: [Int] = []
    private var nudges: [Int] = []
    /// The rate limit lets bytes pass from this time on.
    private var limitedUntil: Int64 = 0
    private(set) var now: Int64 = 0
    private(set) var begun = 0
    private(set) var endings: [RemoteEnding] = []
    private(set) var connections: [Int] = []
    private(set) var fault: String?
    private var fingerprint: String

    init(_ url: String, server: ModelFileServer, steps: [RemoteStep]) throws {
        self.server = server
        self.steps = steps
        let file = try RemoteFile(url)
        machine = RemoteExchangeStateMachine(RemoteExchangeStateMachine.Configuration(file: file))
        fingerprint =
            server.trustedType.flatMap { HostKey(ModelFileServer.key($0))?.fingerprint }
            ?? String(repeating: "A", count: 43)
    }

    /// Whether every step has ended.
    var isOver: Bool { steps.isEmpty && endings.count == begun && !isUnderWay }

    private var isUnderWay: Bool { if case .running = machine.phase { true } else { false } }

    /// The invariant that does not hold; `nil` where all do.
    var violation: String? {
        if let fault { return fault }
        if let violation = machine.violation { return violation }
        if endings.count > begun { return "a step ended twice" }
        if isUnderWay != (endings.count < begun) { return "a step and its end disagree" }
        if isPausedInCurl, machine.pauses.isEmpty { return "no one ends the pause" }
        if machine.isResting, rests.isEmpty { return "no timer ends the rest" }
        if exchange == nil, resolving == nil, isUnderWay { return "no event will come" }
        if exchange != nil, resolving != nil { return "two connections for one step" }
        if let most = connections.max(), most > HostKey.types.count + 2 { return "a step connects for ever" }
        return nil
    }

    // MARK: Events

    /// Every event that may happen now.
    var possibleEvents: [Event] {
        var events: [Event] = []
        if !isUnderWay, !steps.isEmpty { events.append(.begin) }
        events += answers.map { .resolved($0) }
        if resolving != nil { events.append(.notResolved) }
        if exchange != nil { events += exchangeEvents }
        for pause in RemotePause.allCases where machine.pauses.contains(pause) && pause != .rate {
            events.append(.release(pause))
        }
        events += rests.map { .rest($0) } + nudges.map { .nudge($0) }
        return events + [.cancel, .suspend, .resume]
    }

    private var exchangeEvents: [Event] {
        if mustAbort { return [.end(.failed)] }
        if machine.file.scheme == .sftp, !keyIsTrusted { return [.hostKey, .end(.stalled), .end(.failed)] }
        if machine.file.scheme == .ftp, server.demandsTLS, exchange?.requiresTLS == false { return [.end(.refused)] }
        var events: [Event] = [.end(.stalled), .end(.failed)]
        if machine.file.scheme.isFTP { events += ["227 Entering", "213 70", "150 Go"].map { .reply($0) } }
        if isPausedInCurl { return events }
        events.append(.end(.well))
        if exchange?.step.work.carriesFile == true {
            events += [.accepts, .pauses(.disk), .pauses(.checkpoint), .fails, .limited].map { .bytes($0) }
        }
        return events
    }

    mutating func happen(_ event: Event, after milliseconds: Int64 = 50) {
        now += milliseconds
        switch event {
        case .begin:
            begun += 1
            connections.append(0)
            perform(machine.begin(steps.removeFirst()))
        case .resolved(let attempt):
            answers.removeAll { $0 == attempt }
            if resolving == attempt { resolving = nil }
            perform(machine.routeResolved(attempt))
        case .notResolved:
            answers.removeAll { $0 == resolving }
            resolving = nil
            perform(machine.failed(TransferError(.unknownHost, "r")))
        case .reply(let line):
            guard let reply = FTPReply(Array(line.utf8)) else { return }
            perform(machine.replyReceived(reply, now: now))
        case .hostKey:
            let type = exchange?.hostKeyType ?? server.keyTypes[0]
            // A server without the requested type presents none.
            keyIsTrusted = server.keyTypes.contains(type) && machine.hostKeyReceived(ModelFileServer.key(type))
            if !keyIsTrusted { end(.failed(CurlError(.peerFailedVerification, message: "m"))) }
        case .bytes(let client): pass(client)
        case .release(let pause): perform(machine.resume(after: pause))
        case .rest(let attempt):
            rests.remove(at: rests.firstIndex(of: attempt) ?? 0)
            perform(machine.delayEnded(attempt))
        case .nudge(let attempt):
            nudges.removeAll { $0 == attempt }
            perform(machine.nudgeDue(attempt, now: now))
        case .end(let end): self.end(ending(end))
        case .cancel:
            // Before the first step, the whole exchange ends.
            if begun == 0, endings.isEmpty {
                steps = []
                begun = 1
            }
            perform(machine.cancel(.cancelled))
        case .suspend: machine.pause(for: .suspended)
        case .resume: perform(machine.resume(after: .suspended))
        }
    }

    private func ending(_ end: End) -> ExchangeEnding {
        switch end {
        case .well: .finished
        case .stalled: .stalled
        case .failed: .failed(CurlError(.recvError, message: "m"))
        case .refused: .failed(CurlError(.loginDenied, message: "m"))
        }
    }

    private mutating func end(_ ending: ExchangeEnding) {
        if case .failed(let error) = ending, error.code == .loginDenied, let reply = FTPReply(Array("530 TLS".utf8)) {
            perform(machine.replyReceived(reply, now: now))
        }
        (exchange, isPausedInCurl, mustAbort) = (nil, false, false)
        perform(machine.ended(RemoteExchangeEnd(ending: ending)))
    }

    private mutating func pass(_ client: Client) {
        let isStoring = if case .store = exchange?.step.work { true } else { false }
        let wasPaused = !machine.pauses.isEmpty
        switch isStoring ? machine.bytesWanted() : machine.bytesReceived() {
        case .ignore: fault = "bytes of the file are ignored"
        case .pause: isPausedInCurl = true
        case .pass:
            if wasPaused { fault = "bytes pass during a pause" }
            switch client {
            case .accepts: break
            case .pauses(let reason):
                machine.pause(for: reason)
                isPausedInCurl = true
            case .fails:
                machine.clientFailed(TransferError(.tooLarge, "r"))
                mustAbort = true
            case .limited:
                limitedUntil = now + 100
                perform(machine.limitReached(100))
                isPausedInCurl = true
            }
        }
    }

    // MARK: Actions

    private mutating func perform(_ action: RemoteExchangeAction) {
        switch action {
        case .none: break
        case .readHostKeys:
            do {
                let check = try HostKeyCheck(.fingerprint(fingerprint), files: [], host: "h", port: 22)
                perform(machine.hostKeysRead(check))
            } catch {
                fault = "\(error)"
            }
        case .resolve(let attempt):
            if exchange != nil { fault = "a connection begins before the last has ended" }
            connections[connections.count - 1] += 1
            resolving = attempt.number
            answers.append(attempt.number)
        case .start(let attempt):
            if exchange != nil { fault = "an exchange begins before the last has ended" }
            exchange = attempt
            keyIsTrusted = false
        case .abort:
            if exchange == nil { fault = "nothing is there to abort" }
            end(.cancelled)
        case .unpause:
            if !machine.pauses.isEmpty { fault = "the exchange goes on although it is paused" }
            isPausedInCurl = false
        case .rest(let attempt, _): rests.append(attempt)
        case .checkLimits: perform(machine.limitsChecked(max(0, limitedUntil - now)))
        case .scheduleNudge(let attempt, _): nudges.append(attempt)
        case .nudge(let attempt, _): nudges.append(attempt)
        case .evaluateStoredSize(let size):
            if size != 70 { fault = "\(size) is not the stored size" }
        case .finish(let ending, _):
            resolving = nil
            endings.append(ending)
            if exchange != nil { fault = "a step ends before its exchange" }
        }
    }
}
