import Curl
import Testing

@testable import Transfer

/// The transitions of an exchange with a file server as tables: every event in every state, and every end of a
/// connection in every kind of step.
@Suite("The transitions of an exchange with a file server")
struct RemoteExchangeTransitionTests {
    typealias Machine = RemoteExchangeStateMachine

    enum State: String, CaseIterable {
        case idle, readingKeys, resolving, exchanging, opening, begun, suspended, resting, aborted, cleaningUp, ended
    }

    static func machine(_ url: String = "ftp://h/f", _ security: TransportSecurity = .none) -> Machine {
        // The URLs of these tests are valid.
        let file = try? RemoteFile(url)
        guard let file else { preconditionFailure("\(url) names no file") }
        return Machine(Machine.Configuration(file: file, transportSecurity: security))
    }

    /// A machine at work for a step. Host keys are judged by a fingerprint that no key has.
    static func running(_ url: String, _ work: RemoteStep.Work, _ security: TransportSecurity = .none) -> Machine {
        var machine = machine(url, security)
        _ = machine.begin(RemoteStep(work: work, path: machine.file.path))
        let policy = HostKeyPolicy.fingerprint(String(repeating: "A", count: 43))
        if let check = try? HostKeyCheck(policy, files: [], host: "h", port: 22) { _ = machine.hostKeysRead(check) }
        _ = machine.routeResolved(machine.attempts)
        return machine
    }

    private static func machine(in state: State) -> Machine {
        var machine = machine()
        let fetch = RemoteStep(work: .fetch(from: 100))
        switch state {
        case .idle: return machine
        case .readingKeys:
            machine = Self.machine("sftp://h/f")
            _ = machine.begin(fetch)
        case .resolving: _ = machine.begin(fetch)
        case .cleaningUp:
            _ = machine.begin(RemoteStep(work: .command, isCleanUp: true))
            _ = machine.routeResolved(1)
        case .ended:
            _ = machine.begin(fetch)
            _ = machine.failed(.cancelled)
        case .exchanging, .opening, .begun, .suspended, .resting, .aborted:
            _ = machine.begin(fetch)
            _ = machine.routeResolved(1)
            if state == .opening { _ = machine.replyReceived(reply("227 Entering"), now: 1_000) }
            if [.begun, .suspended, .resting].contains(state) { _ = machine.bytesReceived() }
            if state == .suspended { machine.pause(for: .suspended) }
            if state == .resting { _ = machine.limitReached(300) }
            if state == .aborted { _ = machine.cancel(TransferError(.diskFull, "r")) }
        }
        return machine
    }

    static func reply(_ line: String) -> FTPReply {
        guard let reply = FTPReply(Array(line.utf8)) else { preconditionFailure("\(line) is no reply") }
        return reply
    }

    static func words(_ action: RemoteExchangeAction) -> String {
        switch action {
        case .none: "-"
        case .readHostKeys: "read keys"
        case .resolve(let attempt):
            "resolve \(attempt.number)\(attempt.hostKeyType.map { " " + $0 } ?? "")\(attempt.requiresTLS ? " TLS" : "")"
        case .start(let attempt): "start \(attempt.number)"
        case .abort: "abort"
        case .unpause: "unpause"
        case .rest(_, let time): "rest \(time)"
        case .checkLimits: "check limits"
        case .scheduleNudge(_, let time): "nudge in \(time)"
        case .nudge(_, let time): "nudge, again in \(time)"
        case .evaluateStoredSize(let size): "judge \(size)"
        case .finish(let ending, let forgets): "finish \(words(ending))\(forgets ? " forgetting" : "")"
        }
    }

    static func words(_ ending: RemoteEnding) -> String {
        var words = [ending.error?.code.rawValue ?? "well"]
        if let size = ending.facts.size { words.append("\(size)") }
        if ending.isLocal { words.append("local") }
        if ending.isCommandRefused { words.append("command") }
        if ending.isNameRefused { words.append("name") }
        if ending.isOfDirectory { words.append("directory") }
        return words.joined(separator: " ")
    }

    private static func words(_ action: RemoteBytesAction) -> String {
        switch action {
        case .pass(let begins): begins ? "pass, begin" : "pass"
        case .pause(let begins): begins ? "pause, begin" : "pause"
        case .ignore: "ignore"
        }
    }

    // MARK: Events

    private typealias Event = @Sendable (inout Machine) -> String

    private static let events: [(String, Event)] = beginnings + replies + bytes + pauses + endings

    private static let beginnings: [(String, Event)] = [
        ("begin", { words($0.begin(RemoteStep(work: .fetch(from: 0)))) }),
        (
            "keys read",
            { machine in
                let check = try? HostKeyCheck(.knownHosts(path: "k"), files: [[]], host: "h", port: 22)
                return check.map { words(machine.hostKeysRead($0)) } ?? ""
            }
        ),
        ("resolved", { words($0.routeResolved(1)) }),
        ("resolved, too late", { words($0.routeResolved(0)) }),
        ("host key", { $0.hostKeyReceived([1]) ? "trust" : "refuse" }),
    ]

    private static let replies: [(String, Event)] = ["213 7", "227 Entering", "150 Opening (7 bytes)", "530 No"].map {
        line in ("reply \(line)", { words($0.replyReceived(reply(line), now: 2_000)) })
    }

    private static let bytes: [(String, Event)] = [
        ("nudge due", { words($0.nudgeDue(1, now: 1_400)) }),
        ("nudge due, too late", { words($0.nudgeDue(0, now: 1_400)) }),
        ("bytes", { words($0.bytesReceived()) }),
        ("bytes wanted", { words($0.bytesWanted()) }),
    ]

    private static let pauses: [(String, Event)] = [
        ("suspend", pause(.suspended)),
        ("pause for the disk", pause(.disk)),
        ("resume", { words($0.resume(after: .suspended)) }),
        ("disk has room", { words($0.resume(after: .disk)) }),
        ("limit reached", { words($0.limitReached(70)) }),
        ("rest ended", { words($0.delayEnded(1)) }),
        ("rest ended, too late", { words($0.delayEnded(0)) }),
        ("limits let pass", { words($0.limitsChecked(0)) }),
        ("limits delay", { words($0.limitsChecked(20)) }),
    ]

    private static func pause(_ reason: RemotePause) -> Event {
        { machine in
            machine.pause(for: reason)
            return machine.pauses.contains(reason) ? "paused" : "-"
        }
    }

    private static let endings: [(String, Event)] = [
        ("cancel", { words($0.cancel(.cancelled)) }),
        ("failed", { words($0.failed(TransferError(.unknownHost, "r"))) }),
        (
            "client failed",
            { machine in
                machine.clientFailed(TransferError(.tooLarge, "r"))
                return words(machine.ended(RemoteExchangeEnd(ending: .cancelled)))
            }
        ),
        ("ended", { words($0.ended(RemoteExchangeEnd(ending: .finished))) }),
        ("ended with error", { words($0.ended(end(.remoteFileNotFound))) }),
        ("stalled", { words($0.ended(RemoteExchangeEnd(ending: .stalled))) }),
        ("continues", { $0.continues(isCancelling: true) ? "yes" : "no" }),
    ]

    private static func end(_ code: CurlError.Code, _ message: String = "m") -> RemoteExchangeEnd {
        RemoteExchangeEnd(ending: .failed(CurlError(code, message: message)))
    }

    private func compare(_ found: [String], _ expected: [String]) {
        for (row, expected) in zip(found, expected) { #expect(row == expected) }
        #expect(found.count == expected.count)
        if found != expected { print(found.map { "        \"\($0)\"," }.joined(separator: "\n")) }
    }

    @Test("every event in every state")
    func events() {
        let found = Self.events.map { name, event in
            let cells = State.allCases.map { state -> String in
                var machine = Self.machine(in: state)
                #expect(machine.violation == nil, "\(state)")
                let words = event(&machine)
                #expect(machine.violation == nil, "\(name) in \(state)")
                return words
            }
            return ([name] + cells).joined(separator: " | ")
        }
        compare(found, Self.expectedEvents)
    }

    /// The columns are the states, in their order.
    private static let expectedEvents: [String] = [
        "begin | resolve 1 | - | - | - | - | - | - | - | - | - | resolve 2",
        "keys read | - | resolve 1 | - | - | - | - | - | - | - | - | -",
        "resolved | - | - | start 1 | - | - | - | - | - | - | - | -",
        "resolved, too late | - | - | - | - | - | - | - | - | - | - | -",
        "host key | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse | refuse",
        "reply 213 7 | - | - | - | - | - | - | - | - | - | - | -",
        "reply 227 Entering | - | - | - | nudge in 5 | - | nudge in 5 | nudge in 5 | nudge in 5 | nudge in 5 | nudge in 5 | -",
        "reply 150 Opening (7 bytes) | - | - | - | - | - | - | - | - | - | - | -",
        "reply 530 No | - | - | - | - | - | - | - | - | - | - | -",
        "nudge due | - | - | - | - | nudge, again in 55 | - | - | - | - | - | -",
        "nudge due, too late | - | - | - | - | - | - | - | - | - | - | -",
        "bytes | ignore | ignore | ignore | pass, begin | pass, begin | pass | pause | pause | pass, begin | ignore | ignore",
        "bytes wanted | ignore | ignore | ignore | pass, begin | pass, begin | pass | pause | pause | pass, begin | ignore | ignore",
        "suspend | paused | paused | paused | paused | paused | paused | paused | paused | paused | paused | paused",
        "pause for the disk | - | - | - | paused | paused | paused | paused | paused | paused | paused | -",
        "resume | - | - | - | - | - | - | unpause | - | - | - | -",
        "disk has room | - | - | - | - | - | - | - | - | - | - | -",
        "limit reached | - | - | - | rest 70 | rest 70 | rest 70 | rest 70 | rest 70 | rest 70 | rest 70 | -",
        "rest ended | - | - | - | - | - | - | - | check limits | - | - | -",
        "rest ended, too late | - | - | - | - | - | - | - | - | - | - | -",
        "limits let pass | - | - | - | - | - | - | - | unpause | - | - | -",
        "limits delay | - | - | - | - | - | - | - | rest 20 | - | - | -",
        "cancel | finish cancelled local | finish cancelled local | finish cancelled local | abort | abort | abort | abort | abort | abort | - | -",
        "failed | - | finish dns | finish dns | finish dns | finish dns | finish dns | finish dns | finish dns | finish disk-full local | finish dns | -",
        "client failed | - | - | - | finish too-large local | finish too-large local | finish too-large local | finish too-large local | finish too-large local | finish too-large local | finish too-large local | -",
        "ended | - | - | - | finish well | finish well | finish well | finish well | finish well | finish disk-full local | finish well | -",
        "ended with error | - | - | - | finish not-found | finish not-found | finish not-found | finish not-found | finish not-found | finish disk-full local | finish not-found | -",
        "stalled | - | - | - | finish stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish disk-full local | finish stalled | -",
        "continues | no | no | no | no | no | no | no | no | no | yes | no",
    ]

    // MARK: The end of a connection

    private static let steps: [(String, @Sendable () -> Machine)] = [
        ("FTP fetch", { running("ftp://h/f", .fetch(from: 100)) }),
        (
            "FTP fetch, begun",
            {
                var machine = running("ftp://h/f", .fetch(from: 0))
                _ = machine.bytesReceived()
                return machine
            }
        ),
        ("FTP look", { running("ftp://h/f", .look) }),
        ("FTP store", { running("ftp://h/f", .store(length: 9, from: 0)) }),
        ("FTP command, TLS", { running("ftp://h/f", .command, .required) }),
        ("SFTP fetch", { running("sftp://h/f", .fetch(from: 100)) }),
        (
            "SFTP store, begun",
            {
                var machine = running("sftp://h/f", .store(length: 9, from: 0))
                _ = machine.bytesWanted()
                return machine
            }
        ),
        (
            "aborted",
            {
                var machine = running("sftp://h/f", .fetch(from: 0))
                _ = machine.cancel(TransferError(.diskFull, "r"))
                return machine
            }
        ),
    ]

    private static let ends: [(String, RemoteExchangeEnd)] = [
        ("finished", RemoteExchangeEnd(ending: .finished, stated: RemoteFacts(size: 5))),
        ("finished, absurd size", RemoteExchangeEnd(ending: .finished, stated: RemoteFacts(size: .max))),
        ("cancelled", RemoteExchangeEnd(ending: .cancelled)),
        ("stalled", RemoteExchangeEnd(ending: .stalled)),
        ("aborted by callback", end(.abortedByCallback)),
        ("expired", RemoteExchangeEnd(ending: end(.abortedByCallback).ending, hasExpired: true)),
        ("quote", end(.quoteError)),
        ("access denied", end(.remoteAccessDenied)),
        ("upload failed", end(.uploadFailed)),
        ("login denied", end(.loginDenied)),
        ("not found", end(.remoteFileNotFound)),
        ("wrong key", end(.peerFailedVerification)),
        ("no key agreed on", end(.failedInit, "libssh2 -5, kex")),
        ("not connected", end(.couldntConnect)),
        (
            "not connected, with words",
            RemoteExchangeEnd(ending: end(.couldntConnect).ending, connectError: TransferError(.unreachable, "r"))
        ),
        (
            "denied address",
            RemoteExchangeEnd(
                ending: end(.couldntConnect).ending, addressError: TransferError(.addressNotAllowed, "r"),
                connectError: TransferError(.unreachable, "r"))
        ),
        ("SSH", end(.ssh)),
        ("SSH, known size", RemoteExchangeEnd(ending: end(.ssh).ending, stated: RemoteFacts(size: 5))),
    ]

    private static let lastReplies = ["", "530 Log in", "530 TLS is required", "450 Later"]

    @Test("every end of a connection in every kind of step")
    func endsOfConnections() {
        let found = Self.ends.map { name, end in
            let cells = Self.steps.map { _, make -> String in
                var machine = make()
                return Self.words(machine.ended(end))
            }
            return ([name] + cells).joined(separator: " | ")
        }
        compare(found, Self.expectedEnds)
    }

    /// The columns are the steps, in their order.
    private static let expectedEnds: [String] = [
        "finished | finish well | finish well | finish well 5 | finish well 5 | finish well 5 | finish well 105 | finish well 5 | finish disk-full 5 local",
        "finished, absurd size | finish well | finish well | finish well 9223372036854775807 | finish well 9223372036854775807 | finish well 9223372036854775807 | finish well | finish well 9223372036854775807 | finish disk-full 9223372036854775807 local",
        "cancelled | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish disk-full local",
        "stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish disk-full local",
        "aborted by callback | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish cancelled | finish disk-full local",
        "expired | finish stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish stalled | finish disk-full local",
        "quote | finish remote-changed command | finish remote-changed command | finish permission-denied command | finish permission-denied command | finish permission-denied command | finish remote-changed command | finish permission-denied command | finish disk-full local",
        "access denied | finish permission-denied name | finish permission-denied | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish permission-denied | finish disk-full local",
        "upload failed | finish permission-denied name | finish permission-denied | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish permission-denied | finish disk-full local",
        "login denied | finish login-refused | finish login-refused | finish login-refused | finish login-refused | finish login-refused | finish login-refused | finish login-refused | finish disk-full local",
        "not found | finish not-found | finish not-found | finish not-found | finish not-found | finish not-found | finish not-found | finish not-found | finish disk-full local",
        "wrong key | finish tls | finish tls | finish tls | finish tls | finish tls | resolve 2 ssh-ed25519 | resolve 2 ssh-ed25519 | finish disk-full local",
        "no key agreed on | finish connect | finish truncated | finish connect | finish connect | finish connect | resolve 2 ssh-ed25519 | resolve 2 ssh-ed25519 | finish disk-full local",
        "not connected | finish connect forgetting | finish connect forgetting | finish connect forgetting | finish connect forgetting | finish connect forgetting | finish connect forgetting | finish connect forgetting | finish disk-full local forgetting",
        "not connected, with words | finish unreachable forgetting | finish connect forgetting | finish unreachable forgetting | finish unreachable forgetting | finish unreachable forgetting | finish unreachable forgetting | finish connect forgetting | finish disk-full local forgetting",
        "denied address | finish address-not-allowed forgetting | finish address-not-allowed forgetting | finish address-not-allowed forgetting | finish address-not-allowed forgetting | finish address-not-allowed forgetting | finish address-not-allowed forgetting | finish address-not-allowed forgetting | finish disk-full local forgetting",
        "SSH | finish connect | finish truncated | finish connect | finish connect | finish connect | finish connect | finish truncated | finish disk-full local",
        "SSH, known size | finish connect | finish truncated | finish connect 5 directory | finish connect 5 directory | finish connect 5 directory | finish truncated 105 directory | finish truncated 5 | finish disk-full 5 local",
    ]

    @Test("an FTP server's last reply tells a refusal from a failure that passes, and a login that wants TLS")
    func lastReplies() {
        let codes: [(String, CurlError.Code)] = [
            ("quote", .quoteError), ("access denied", .remoteAccessDenied), ("upload failed", .uploadFailed),
            ("login denied", .loginDenied), ("weird reply", .ftpWeirdPassReply),
        ]
        let found = codes.flatMap { name, code in
            [TransportSecurity.none, .required].map { security in
                let cells = Self.lastReplies.map { line -> String in
                    var machine = Self.running("ftp://h/f", .store(length: 9, from: 0), security)
                    if !line.isEmpty { _ = machine.replyReceived(Self.reply(line), now: 0) }
                    // The reply to QUIT explains nothing.
                    _ = machine.replyReceived(Self.reply("221 Bye"), now: 0)
                    return Self.words(machine.ended(Self.end(code)))
                }
                return (["\(name), \(security)"] + cells).joined(separator: " | ")
            }
        }
        compare(found, Self.expectedReplies)
    }

    /// The columns are the last replies, in their order.
    private static let expectedReplies: [String] = [
        "quote, none | finish permission-denied command | finish permission-denied command | finish permission-denied command | finish connect",
        "quote, required | finish permission-denied command | finish permission-denied command | finish permission-denied command | finish connect",
        "access denied, none | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish permission-denied",
        "access denied, required | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish permission-denied",
        "upload failed, none | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish connect",
        "upload failed, required | finish permission-denied name | finish permission-denied name | finish permission-denied name | finish connect",
        "login denied, none | finish login-refused | finish login-refused | resolve 2 TLS | finish connect",
        "login denied, required | finish login-refused | finish login-refused | finish login-refused | finish connect",
        "weird reply, none | finish login-refused | finish login-refused | resolve 2 TLS | finish connect",
        "weird reply, required | finish login-refused | finish login-refused | finish login-refused | finish connect",
    ]

    // MARK: Single rules

    @Test("the size of an FTP file comes from SIZE after the port is known, or else from the reply that begins it")
    func reportedSize() {
        func size(_ lines: [String]) -> Int64? {
            var machine = Self.running("ftp://h/f", .fetch(from: 100))
            for line in lines { _ = machine.replyReceived(Self.reply(line), now: 0) }
            return machine.facts(RemoteFacts(size: 1)).size
        }
        #expect(size(["213 20201126042228"]) == nil)
        #expect(size(["213 20201126042228", "227 Entering", "213 500"]) == 500)
        #expect(size(["227 Entering", "150 Opening (400 bytes)"]) == 500)
        #expect(size(["227 Entering", "213 600", "150 Opening (400 bytes)"]) == 600)
        #expect(size(["227 Entering", "150 Opening (9223372036854775807 bytes)"]) == nil)
    }

    @Test("TLS that a server demands stays for the next steps, and is asked for once")
    func transportSecurity() {
        var machine = Self.running("ftp://h/f", .look)
        _ = machine.replyReceived(Self.reply("530 TLS is required"), now: 0)
        var found = [Self.words(machine.ended(Self.end(.loginDenied)))]
        _ = machine.routeResolved(2)
        found.append(Self.words(machine.ended(Self.end(.loginDenied))))
        found.append(Self.words(machine.begin(RemoteStep(work: .fetch(from: 0)))))
        #expect(found == ["resolve 2 TLS", "finish login-refused", "resolve 3 TLS"])
    }

    @Test("a server is requested to show each type of key, and the last refusal is the error")
    func hostKeys() {
        var machine = Self.running("sftp://h/f", .look)
        var found: [String] = []
        for type in HostKey.types {
            let isTrusted = machine.hostKeyReceived(ModelFileServer.key(type))
            #expect(!isTrusted)
            found.append(Self.words(machine.ended(Self.end(.peerFailedVerification))))
            _ = machine.routeResolved(machine.attempts)
        }
        #expect(
            found == [
                "resolve 2 ecdsa-sha2-nistp256", "resolve 3 ecdsa-sha2-nistp384", "resolve 4 ecdsa-sha2-nistp521",
                "resolve 5 ssh-rsa", "finish tls",
            ])
    }

    @Test("wake-ups become rarer, end with the transfer's beginning, and there is one series of them")
    func nudges() {
        var machine = Self.running("ftp://h/f", .look)
        let actions = [
            machine.replyReceived(Self.reply("229 (|||5|)"), now: 0), machine.nudgeDue(1, now: 80),
            machine.nudgeDue(1, now: 9_000), machine.replyReceived(Self.reply("227 Entering"), now: 9_000),
            machine.nudgeDue(1, now: 9_008), machine.replyReceived(Self.reply("125 Go"), now: 9_010),
            machine.nudgeDue(1, now: 9_020),
        ]
        #expect(
            actions.map(Self.words) == [
                "nudge in 5", "nudge, again in 15", "nudge, again in 100", "-", "nudge, again in 6", "-", "-",
            ])
    }

    @Test("the stored size is judged in uploads alone")
    func storedSize() {
        var store = Self.running("ftp://h/f", .store(length: 9, from: 0))
        var look = Self.running("ftp://h/f", .look)
        let actions = [
            store.replyReceived(Self.reply("213 9"), now: 0), look.replyReceived(Self.reply("213 9"), now: 0),
        ]
        #expect(actions.map(Self.words) == ["judge 9", "-"])
    }

    @Test("a suspension outlives a step; the end of a step tells whether it was paused, and whether bytes passed")
    func pausesOverSteps() {
        var machine = Self.running("ftp://h/f", .fetch(from: 0))
        _ = machine.bytesReceived()
        machine.pause(for: .checkpoint)
        machine.pause(for: .suspended)
        guard case .finish(let first, _) = machine.ended(RemoteExchangeEnd(ending: .finished, duration: 7)) else {
            Issue.record("the step does not end")
            return
        }
        #expect(first.hasPaused && first.bodyBegun && first.duration == 7)
        #expect(machine.pauses.contains(.suspended) && !machine.pauses.contains(.checkpoint))
        _ = machine.begin(RemoteStep(work: .look))
        let resumption = Self.words(machine.resume(after: .suspended))
        #expect(resumption == "-")
        guard case .finish(let second, _) = machine.failed(.cancelled) else {
            Issue.record("the step does not end")
            return
        }
        #expect(second.hasPaused && !second.bodyBegun)
    }
}
