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
