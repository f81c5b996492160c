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
