/// The events that follow an action: bytes were written, the disk failed, a delay has passed.
extension DownloadStateMachine {
    /// Decides what follows once a connection's gathered bytes are written.
    mutating func flushed(
        _ number: Int, _ continuation: DownloadAction.AfterFlush, _ facts: DownloadFacts
    ) -> DownloadAction {
        guard let connection = self[number], !isEnded else { return .none }
        switch continuation {
        case .nextClaim: return nextClaim(number, facts)
        case .requestRest: return request(number, from: connection.start, to: connection.end, facts)
        case .requestOn(let start):
            var delay: Int64 = 0
            update(number) {
                delay = $0.timing.delayAfterResponse()
                if delay > 0 {
                    $0.start = start
                    $0.isResting = true
                }
            }
            guard delay > 0 else { return request(number, from: start, to: connection.end, facts) }
            return .delayRequest(number, milliseconds: delay)
        case .closeConnection: return closeConnection(number, facts)
        case .requestOwnURL:
            let sent = send(number, from: connection.start, to: connection.end, facts)
            return .sequence([.requestOwnURL(number), sent])
        case .tryNextSource(let error): return tryNextSource(from: connection, error, facts)
        case .switchSource(let source): return switchSource(connection, to: source, isJoining: true, facts)
        case .change(let source):
            // However little the present source brought: its rate is known now. One that has not responded yet may
            // still be fast.
            if connection.timing.hasBegun {
                sources[connection.source].record(rate: max(1, connection.timing.pace.rate))
            } else {
                sources[connection.source].recordDeparture()
            }
            if sources[source].rate > 0 { sources.recordReturn() }
            return switchSource(connection, to: source, isJoining: true, facts)
        case .beginAnew:
            guard let changed = failures.changed else { return .none }
            failures.changed = nil
            return switchSource(connection, to: changed.source, isJoining: false, reason: changed.reason, facts)
        }
    }

    /// Bytes could not be written, or the disk shows that the part is not what it should be.
    mutating func diskFailed(_ number: Int, _ error: TransferError, _ facts: DownloadFacts) -> DownloadAction {
        if isEnded { return .none }
        return error.code == .remoteChanged ? restart(number, error.message, facts) : fail(error)
    }

    /// The delay of a connection whose responses bring next to nothing has passed.
    mutating func delayEnded(_ number: Int, _ facts: DownloadFacts) -> DownloadAction {
        update(number) { $0.isResting = false }
        guard let connection = self[number], !connection.isUnderWay else { return .none }
        return request(number, from: connection.start, to: connection.end, facts)
    }

    /// The delay has passed after which a server is requested from once more, over one connection.
    mutating func waitEnded(_ number: Int, _ facts: DownloadFacts) -> DownloadAction {
        isWaiting = false
        // A damaged part may have had it request the whole meanwhile.
        guard let connection = self[number], !connection.isUnderWay else { return .none }
        return .flush(number, then: .requestRest)
    }

    // MARK: Claims

    /// A connection has brought every byte of its claim.
    mutating func claimFulfilled(_ number: Int, _ facts: DownloadFacts) -> DownloadAction {
        guard let total = table?.total else { return .finish(number) }
        table?.release(number)
        failures.losses = 0
        if let connection = self[number] { sources[connection.source].succeed() }
        // The last block is written together with the completion of the file.
        if facts.part.count + facts[number].gathered >= total || hasEverything(facts) { return .finish(number) }
        return .flush(number, then: .nextClaim)
    }

    private mutating func nextClaim(_ number: Int, _ facts: DownloadFacts) -> DownloadAction {
        switch nextRange(for: number, facts) {
        case .none: return .flush(number, then: .closeConnection)
        case .range(let range): return request(number, from: range.lowerBound, to: range.upperBound, facts)
        case .takeOver(let victim, let range):
            let memory = self[victim].map { recordSilence(of: $0, facts) } ?? []
            let request = request(number, from: range.lowerBound, to: range.upperBound, facts)
            return .sequence(memory + [.flush(victim, then: .closeConnection), request])
        }
    }

    /// Chooses the next bytes for a connection.
    ///
    /// - Parameter isFaster: whether its source is expected to be far faster than the others.
    mutating func nextRange(
        for number: Int, isFaster: Bool = false, _ facts: DownloadFacts
    ) -> SegmentTable.Work {
        measure(facts)
        guard let connection = self[number] else { return .none }
        let expected = expectedRate(of: connection)
        let isUnknown = isFaster && sources[connection.source].rate == 0
        let setUp = setUpTime
        let silent =
            connection.timing.received > 0 ? silentConnections(beside: number, isEach: false, facts) : []
        let work = table?.next(
            for: number, written: facts.part.written, connections: max(growth.target, connections.count),
            rate: isUnknown ? 2 * SegmentTable.slowness * expected : expected, setUp: setUp, silent: silent)
        keepToClaims()
        return work ?? .none
    }

    /// Seconds from a request to the head of its response, as far as is known.
    var setUpTime: Double {
        if rates.setUp > 0 { return rates.setUp }
        return connections.compactMap(\.timing.setUp).min().map { Double($0) / 1000 } ?? 0
    }

    /// The connections that have received nothing of their present responses.
    ///
    /// - Parameters:
    ///   - number: A connection that receives bytes.
    ///   - isEach: Whether to name each. Otherwise those are left out whose sources have time to respond, unless no
    ///     other connection receives bytes.
    func silentConnections(beside number: Int, isEach: Bool, _ facts: DownloadFacts) -> Set<Int> {
        let others = connections.filter { $0.number != number && $0.isUnderWay && !facts[$0.number].isPaused }
        let isEach = isEach || !others.contains { $0.isReceiving && $0.timing.receivedNow > 0 }
        return Set(
            others.filter {
                $0.timing.receivedNow == 0
                    && (isEach || facts.now - $0.timing.requestedAt >= sources[$0.source].responseTimeout)
            }.map(\.number))
    }

    /// The throughput that a connection is likely to have, in bytes a second: its own where it is known; otherwise the
    /// median of its source's connections, its source's best, or the median of all.
    private func expectedRate(of connection: SegmentConnection) -> Double {
        func median(_ connections: [SegmentConnection]) -> Double? {
            let known = connections.map(\.timing.pace.rate).filter { $0 > 0 }.sorted()
            return known.isEmpty ? nil : known[known.count / 2]
        }
        if connection.timing.pace.rate > 0 { return connection.timing.pace.rate }
        if let rate = median(connections.filter { $0.source == connection.source }) { return rate }
        let best = sources[connection.source].rate
        if best > 0 { return best }
        return median(connections).map { min(rates.best, $0) } ?? rates.best
    }

    /// Has every connection end where its claim does.
    mutating func keepToClaims() {
        guard let table else { return }
        for index in connections.indices {
            if let claim = table.claims[connections[index].number] { connections[index].end = claim.end }
        }
    }

    /// Closes a connection; the others go on, into its claim where their responses reach that far.
    mutating func closeConnection(_ number: Int, _ facts: DownloadFacts) -> DownloadAction {
        table?.release(number)
        connections.removeAll { $0.number == number }
        let connections = connections
        table?.extend(written: facts.part.written) { number in connections.first { $0.number == number }?.reach }
        keepToClaims()
        return .close(number)
    }

    // MARK: Sources

    /// Has another source go on after the last connection failed.
    private mutating func tryNextSource(
        from connection: SegmentConnection, _ error: TransferError, _ facts: DownloadFacts
    ) -> DownloadAction {
        guard
            facts.part.mayLeaveSource(
                after: error, hasMismatch: configuration.hasMismatch,
                leavesFailingSource: configuration.leavesFailingSource),
            let next = sources.best(at: facts.now, users: [:], where: { $0.number != connection.source })
        else { return exhausted(connection, error, facts) }
        return switchSource(connection, to: next.number, isJoining: mayBeJoined(facts.part), facts)
    }

    /// Has another source bring what the last connection would have brought.
    ///
    /// - Parameters:
    ///   - isJoining: whether the part is continued; otherwise the whole replaces it, once it comes.
    ///   - reason: the reason why it does.
    private mutating func switchSource(
        _ connection: SegmentConnection, to source: Int, isJoining: Bool, reason: String = fromMirror,
        _ facts: DownloadFacts
    ) -> DownloadAction {
        lastNumber += 1
        let number = lastNumber
        table?.release(connection.number)
        connections.removeAll { $0.number == connection.number }
        connections.append(SegmentConnection(number: number, source: source))
        currentSource = source
        let isContinued = isJoining && facts.part.count > 0
        let next = begin(number, isJoining: isJoining, reason, facts)
        return .sequence([
            .replace(connection.number, by: number, source: source, isJoining: isContinued), next,
        ])
    }
}
