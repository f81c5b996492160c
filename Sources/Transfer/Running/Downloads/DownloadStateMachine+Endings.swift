/// The ends of exchanges.
extension DownloadStateMachine {
    /// The end of an exchange, as libcurl and the decoder saw it.
    struct ExchangeEnd {
        /// `nil` where libcurl accepts the body as complete.
        var error: TransferError?
        /// The coded body is incomplete or invalid.
        var decodingError: TransferError?
        /// The body ended before it came to new bytes, and is shorter than the part.
        var overlapError: TransferError?
        /// Whether a digest will show whether a body of unknown length is complete.
        var hasDigest = false
        /// The position of the connection's writer.
        var position: Int64 = 0
        /// The origin of the URL that was asked, for error messages.
        var origin: String?
    }

    /// Decides what follows the end of an exchange.
    mutating func ended(_ number: Int, _ end: ExchangeEnd, _ facts: DownloadFacts) -> DownloadAction {
        guard let index = index(of: number), !isEnded else { return .none }
        assert(connections[index].isUnderWay, "the end of an exchange is seen twice")
        var outcome = outcome(of: connections[index].phase, end)
        if case .failed(let error) = outcome { outcome = .failed(error.named(by: end.origin)) }
        connections[index].start = connections[index].position(end.position)
        connections[index].isUnderWay = false
        connections[index].isWriting = false
        if connections[index].endCheck == .underWay { connections[index].endCheck = .done }
        connections[index].phase = .requesting
        let (connection, timing) = (connections[index], connections[index].timing)
        if let setUp = timing.setUp {
            let seconds = Double(setUp) / 1000
            rates.setUp = rates.setUp == 0 ? seconds : (3 * rates.setUp + seconds) / 4
            // A response that ends before the first tick is measured by this alone.
            let rate = timing.meanRate(at: facts.now)
            rates.best = max(rates.best, rate)
            sources[connection.source].record(rate: rate)
        }
        // Complete bytes are never thrown away: nothing is left to request.
        if outcome.leavesPartIntact, hasEverything(facts) { return .finish(number) }
        if case .bodyEnded = outcome, let error = end.overlapError { return diskFailed(number, error, facts) }
        return follow(outcome, of: connection, facts)
    }

    private func outcome(of phase: SegmentConnection.Phase, _ end: ExchangeEnd) -> SegmentOutcome {
        let decoded = end.decodingError.map { SegmentOutcome.failed($0) }
        return switch (phase, end.error) {
        case (.interrupted(let outcome), _): outcome
        // Some servers end every connection so.
        case (.receiving(nil), let error?) where error.isIncompleteClose && end.hasDigest:
            decoded ?? .bodyEnded(end: nil)
        case (_, let error?): .failed(error)
        case (.discarding(let outcome), nil): outcome
        case (.receiving(let stated), nil): decoded ?? .bodyEnded(end: stated)
        case (.requesting, nil): .failed(TransferError(.truncated, "the connection was closed before a response"))
        }
    }

    private mutating func follow(
        _ outcome: SegmentOutcome, of connection: SegmentConnection, _ facts: DownloadFacts
    ) -> DownloadAction {
        let number = connection.number
        switch outcome {
        case .bodyEnded(let end): return bodyEnded(connection, end, facts)
        case .claimFulfilled: return claimFulfilled(number, facts)
        case .replaced: return replaced(connection, facts)
        case .needsOwnConnection: return .flush(number, then: .requestRest)
        case .complete: return .finish(number)
        case .requestUnconditionally:
            traits.ignoresCondition = true
            return request(number, from: connection.start, to: connection.end, facts)
        case .confirmEnd:
            update(number) { $0.endCheck = .underWay }
            return send(number, from: connection.start, to: connection.end, facts)
        case .changed where isShared:
            // The other connections bring one version, and the response may be a page that only says that there are too
            // many connections.
            if sources.all.count > 1, facts.part.isJoinable {
                sources[connection.source].drop()
            } else {
                isSingle = true
            }
            return .flush(number, then: .closeConnection)
        // A mirror that has brought nothing has another version than the part.
        case .changed(let reason) where sources.all.count > 1 && connection.timing.received == 0:
            return leaveSource(connection, reason, facts)
        case .requestWhole where mayStillCountClosedConnections(facts.part),
            .changed where mayStillCountClosedConnections(facts.part):
            return wait(number, Self.recheckDelay)
        case .requestWhole(let reason), .changed(let reason): return requestWhole(connection, reason, facts)
        case .startOver(let reason): return restart(number, reason, facts)
        case .unusable(let reason): return leaveSource(connection, reason, facts)
        case .failed(let error): return failed(connection, error, facts)
        case .refused(let error): return refused(connection, error, facts)
        }
    }

    /// Checks the length of a body that libcurl accepts as complete.
    private mutating func bodyEnded(
        _ connection: SegmentConnection, _ end: Int64?, _ facts: DownloadFacts
    ) -> DownloadAction {
        let (number, position) = (connection.number, facts[connection.number].position)
        if let end, position < end {
            let error = TransferError(.truncated, "the body ended at \(position) of \(end) bytes")
            return isShared ? dropConnection(connection, error, facts) : fail(error)
        }
        if let claimed = connection.end, position >= claimed { return claimFulfilled(number, facts) }
        // A range shorter than the requested one is legal (RFC 9110, section 15.3.7): the rest is requested, as long as
        // responses bring something.
        guard connection.end != nil || connection.isPart else { return .finish(number) }
        guard position > connection.request.have || narrowOverlap(number) else {
            // The size is unknown, and no byte follows the part.
            if facts.part.version.total == nil, facts[number].bodyBegun { return .finish(number) }
            let error = TransferError(.truncated, "the server sent nothing after byte \(position)")
            return isShared ? dropConnection(connection, error, facts) : fail(error)
        }
        return .flush(number, then: .requestOn(from: max(connection.request.have, connection.start)))
    }

    /// Narrows the comparison of a connection, where its response ended before any new byte.
    ///
    /// - Returns: whether to request once more from nearer to the end.
    private mutating func narrowOverlap(_ number: Int) -> Bool {
        index(of: number).map { connections[$0].narrowOverlap() } ?? false
    }

    private mutating func failed(
        _ connection: SegmentConnection, _ error: TransferError, _ facts: DownloadFacts
    ) -> DownloadAction {
        let number = connection.number
        if facts[number].isShortcut, let status = error.httpStatus, [400, 401, 403, 404, 410].contains(status) {
            return shortcutRefused(connection, facts)
        }
        if isShared { return dropConnection(connection, error, facts) }
        if error.code == .truncated, narrowOverlap(number) { return .flush(number, then: .requestRest) }
        if let delay = confirmationDelay(error) { return wait(number, delay) }
        if sources.all.count > 1, error.code != .cancelled {
            sources[connection.source].fail(at: facts.now, rest: RetryPolicy.hold(retryAfter: error.retryAfter ?? 0))
            failures.first = failures.first ?? error
            return .flush(number, then: .tryNextSource(error))
        }
        return exhausted(connection, error, facts)
    }

    /// Codes of refusals that concern the response, as opposed to this machine.
    private static let errorsOfServers: Set<TransferError.Code> = [
        .checksumMismatch, .remoteChanged, .tooLarge, .httpStatus, .unacceptableContentType, .validationFailed,
    ]

    /// Decides what follows a response that cannot be kept.
    private mutating func refused(
        _ connection: SegmentConnection, _ error: TransferError, _ facts: DownloadFacts
    ) -> DownloadAction {
        let number = connection.number
        if error.code == .checksumMismatch {
            // It has another file than the wanted one.
            sources[connection.source].drop()
            if isShared { return .flush(number, then: .closeConnection) }
            if sources.all.count > 1 {
                sources[connection.source].fail(at: facts.now)
                failures.first = failures.first ?? error
                return .flush(number, then: .tryNextSource(error))
            }
        }
        // A full disk, say, is reported as it is, whatever another source failed with before.
        let isOfServer = Self.errorsOfServers.contains(error.code)
        return diskFailed(number, isOfServer ? failures.first ?? error : error, facts)
    }

    /// Decides what follows the failure of the last connection when no other source can continue.
    mutating func exhausted(
        _ connection: SegmentConnection, _ error: TransferError, _ facts: DownloadFacts
    ) -> DownloadAction {
        let number = connection.number
        if canBeginAnew(from: connection) { return .flush(number, then: .beginAnew) }
        // The next attempt may confirm the version that was claimed.
        if error.code == .remoteChanged { return fail(error) }
        if error.code == .checksumMismatch { return diskFailed(number, failures.first ?? error, facts) }
        if failures.restarts == 0, connection.request.from ?? 0 > 0, let status = error.httpStatus,
            [304, 400, 406, 501].contains(status)
        {
            failures.restarts += 1
            update(number) { $0.reasonForWhole = "the server refused to send a range (\(status))" }
            return send(number, from: 0, to: nil, facts)
        }
        return diskFailed(number, failures.first ?? error, facts)
    }

    /// The URL that an earlier redirect led to refuses the request: by now the source may redirect to another one.
    private mutating func shortcutRefused(_ connection: SegmentConnection, _ facts: DownloadFacts) -> DownloadAction {
        // A digest, or a comparison with the part, tells whether the bytes of another URL belong to it.
        let mayBeRequested = !isShared || facts.part.isJoinable
        failures.addsFrom = mayBeRequested ? facts.now + 1_000 : .max
        return .flush(connection.number, then: mayBeRequested ? .requestOwnURL : .closeConnection)
    }

    /// Milliseconds after which a server is asked once more that refused one of several connections, or a response to a
    /// request without `If-Range`: it may not have noticed yet that the others are gone.
    private func confirmationDelay(_ error: TransferError) -> Int64? {
        guard traits.refusedConnection || traits.ignoresCondition, !traits.wasAskedLater,
            let status = error.httpStatus, [403, 429, 503].contains(status)
        else { return nil }
        let delay = max(Self.recheckDelay, RetryPolicy.hold(retryAfter: error.retryAfter ?? 0))
        return delay <= Self.maximumRecheckDelay ? delay : nil
    }

    private mutating func wait(_ number: Int, _ delay: Int64) -> DownloadAction {
        traits.wasAskedLater = true
        isSingle = true
        isWaiting = true
        return .wait(number, milliseconds: delay)
    }

    /// Drops a source whose bytes cannot be combined with the part, and continues from another one.
    private mutating func leaveSource(
        _ connection: SegmentConnection, _ reason: String, _ facts: DownloadFacts
    ) -> DownloadAction {
        let number = connection.number
        sources[connection.source].drop()
        if sources.all.count == 1 { isSingle = true }
        if isShared { return .flush(number, then: .closeConnection) }
        let next = sources.best(at: facts.now, users: [:], where: { $0.number != connection.source })
        guard facts.part.count > 0, facts.part.isJoinable, let next else {
            if canBeginAnew(from: connection) { return .flush(number, then: .beginAnew) }
            return requestWhole(connection, reason, facts)
        }
        if failures.first == nil, failures.changed == nil { failures.changed = (connection.source, reason) }
        return .flush(number, then: .switchSource(to: next.number))
    }

    /// Whether the download restarts from the source that was dropped first for another version, because no other one
    /// continues the part.
    private func canBeginAnew(from connection: SegmentConnection) -> Bool {
        failures.changed.map { $0.source != connection.source } ?? false
    }

    /// Decides what follows the failure of one of several connections.
    ///
    /// - Parameter isGivenUp: whether another connection in its place would do no better.
    mutating func dropConnection(
        _ connection: SegmentConnection, _ error: TransferError, isGivenUp: Bool = false, _ facts: DownloadFacts
    ) -> DownloadAction {
        let number = connection.number
        if connection.hasProgressed, !isGivenUp, error.code != .httpStatus {
            return .flush(number, then: .requestOn(from: connection.start))
        }
        let rest = RetryPolicy.hold(retryAfter: error.retryAfter ?? 0)
        let isLast = !connections.contains { $0.number != number && $0.source == connection.source }
        if isLast, sources.all.count > 1 {
            sources[connection.source].fail(at: facts.now, rest: rest)
        } else {
            if error.code == .httpStatus { traits.refusedConnection = true }
            // Several that are lost at once are one occasion: other downloads may have taken their places for a moment.
            if facts.now >= failures.addsFrom { failures.losses += 1 }
            let delay: Int64 = 1_000 << Int64(min(failures.losses, Self.lossLimit))
            failures.addsFrom = max(failures.addsFrom, facts.now + max(rest, delay))
        }
        return .flush(number, then: .closeConnection)
    }

    /// A slow connection was broken off: the rest of its claim is requested elsewhere, or over another connection.
    private mutating func replaced(_ connection: SegmentConnection, _ facts: DownloadFacts) -> DownloadAction {
        let isAlone = !connections.contains {
            $0.number != connection.number && $0.source == connection.source
        }
        guard isShared, isAlone || !connection.hasProgressed else {
            return .flush(connection.number, then: .requestRest)
        }
        let memory = recordSilence(of: connection, facts)
        let error = TransferError(.stalled, "the server stopped sending")
        let dropping = dropConnection(connection, error, isGivenUp: true, facts)
        return memory.isEmpty ? dropping : .sequence(memory + [dropping])
    }

    /// A response was of no use for the part: the whole is requested over one connection. The part is kept until a
    /// response shows that it may replace it.
    private mutating func requestWhole(
        _ connection: SegmentConnection, _ reason: String, _ facts: DownloadFacts
    ) -> DownloadAction {
        // A mirror with another file discards nothing that the source which failed may go on with later.
        if connection.timing.received == 0, let error = passingFailure(facts.part) { return fail(error) }
        return begin(restarting: connection, reason, facts, dropsPart: false)
    }

    /// The bytes of the part were seen to be wrong: it is dropped, and the whole is requested over one connection.
    mutating func restart(_ number: Int, _ reason: String, _ facts: DownloadFacts) -> DownloadAction {
        let connection = self[number] ?? connections.first
        guard let connection else { return fail(TransferError(.remoteChanged, reason)) }
        // A mirror with another file discards nothing that the source which failed may go on with later.
        if self[number]?.timing.received == 0, let error = passingFailure(facts.part) { return fail(error) }
        if connection.isUnderWay {
            if isShared { isSingle = true }
            connections = [connection]
            // Its bytes must not come to what is begun anew; its end leads here again.
            return .sequence([
                .closeOthers(than: connection.number), interrupt(connection.number, .startOver(reason: reason)),
            ])
        }
        return begin(restarting: connection, reason, facts, dropsPart: true)
    }

    private mutating func begin(
        restarting connection: SegmentConnection, _ reason: String, _ facts: DownloadFacts, dropsPart: Bool
    ) -> DownloadAction {
        let number = connection.number
        if isShared { isSingle = true }
        connections = [connection]
        failures.restarts += 1
        let prepared = DownloadAction.restart(number, dropping: dropsPart ? reason : nil)
        guard failures.restarts <= Self.restartLimit, configuration.isRepeatable else {
            return .sequence([.closeOthers(than: number), prepared, fail(TransferError(.remoteChanged, reason))])
        }
        var facts = facts
        if dropsPart {
            partDropped(by: number)
            // The part that the request is decided by is empty by then.
            facts.part.removeAll()
        } else {
            table = nil
            isTicking = false
            update(number) { $0.reasonForWhole = reason }
        }
        return .sequence([.closeOthers(than: number), prepared, send(number, from: 0, to: nil, facts)])
    }

    mutating func interrupt(_ number: Int, _ outcome: SegmentOutcome) -> DownloadAction {
        update(number) { $0.phase = .interrupted(outcome) }
        return .interrupt(number)
    }
}
