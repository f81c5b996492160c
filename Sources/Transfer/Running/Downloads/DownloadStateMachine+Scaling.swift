/// The number of connections, and the choice of sources, looked at again with each tick.
extension DownloadStateMachine {
    /// Observations that are made outside of the state machine for one tick.
    struct Observations {
        /// The host's line, where several downloads share it.
        var line: PathView?
        /// Bytes of body that the task has received.
        var received: Int64 = 0
        /// Whether the loop's thread has hardly rested.
        var isBusy = false
        /// The borrowed connections that other tasks wait for.
        var wanted: Set<Int> = []
    }

    /// Whether the next tick decides on the number of connections, so that it needs ``Observations``.
    func isScaling(_ facts: DownloadFacts) -> Bool {
        !isEnded && !isSuspended && table != nil && missing(facts) ?? 0 > 0 && canShare(facts)
    }

    /// Whether the host's line is looked at together with other downloads.
    var observesLine: Bool { configuration.segments.isAutomatic && sources.all.count == 1 }

    /// Opens and closes connections.
    mutating func tick(_ observations: Observations, _ facts: DownloadFacts) -> DownloadAction {
        isTicking = false
        guard isScaling(facts), let left = missing(facts) else { return .none }
        measure(facts)
        let target = wantedConnections(observations, left: left, facts)
        let wanted = observations.wanted.filter { index(of: $0) != nil }
        if connections.count > target || !wanted.isEmpty {
            let excess = wanted.isEmpty ? connections.count - target : 1
            let slowest = connections.filter { wanted.isEmpty || wanted.contains($0.number) }
                .sorted { $0.timing.pace.rate < $1.timing.pace.rate }
            return .sequence(
                slowest.prefix(min(excess, connections.count - 1)).map { .flush($0.number, then: .closeConnection) })
        }
        guard facts.now >= failures.addsFrom, isWorthSharing(left) else { return .none }
        if failures.losses > 0 || traits.refusedConnection {
            // One at a time, so that a server which wants few connections is seldom asked.
            guard connections.count < target, connections.allSatisfy(\.isReceiving) else { return .none }
            return wish(for: .single, facts).map { .borrow($0) } ?? .none
        }
        return grow(to: target, facts)
    }

    /// Opens one connection more, as long as there are fewer than `target`.
    mutating func grow(to target: Int, _ facts: DownloadFacts) -> DownloadAction {
        if isEnded { return .none }
        if connections.count < target, let wish = wish(for: .growth(target: target), facts) { return .borrow(wish) }
        growth.cap(to: connections.count, isFull: false)
        return .none
    }

    /// Replaces slow connections, and changes to a better source.
    mutating func tickSources(_ facts: DownloadFacts) -> DownloadAction {
        guard isScaling(facts), let left = missing(facts) else { return .none }
        let better = betterSource(left: left, facts)
        var actions: [DownloadAction] = []
        // A single slow connection moves to a better source, where there is one, instead of being replaced.
        if isShared || better == nil { actions = replaceSlow(facts) }
        if actions.isEmpty, let better { return change(to: better, facts) }
        return actions.isEmpty ? .none : .sequence(actions)
    }

    /// Schedules the next tick.
    mutating func tickEnded(_ facts: DownloadFacts) -> DownloadAction {
        guard !isEnded, !isTicking, table != nil, missing(facts) != nil else { return .none }
        let calm = isShared || growth.isWaiting ? ConnectionScaler.longInterval : Self.calmInterval
        return startTicking(growth.isTrying && canShare(facts) ? ConnectionScaler.interval : calm)
    }

    /// Whether several connections may bring the file: all can be held to one version.
    func canShare(_ facts: DownloadFacts) -> Bool {
        guard !isSingle, let first = connections.first, first.resource != nil else { return false }
        if facts.part.isJoinable { return true }
        guard isVouched(by: first.resource, facts.part), facts[first.number].speaksHTTP1 else { return false }
        let validator = facts.part.version.validator
        return traits.ignoresCondition ? validator.strongEntityTag != nil : validator.ifRange != nil
    }

    /// Whether the missing bytes are worth another connection: a few seconds' bytes of a slow line, or as many as a
    /// fast one brings in a moment.
    private func isWorthSharing(_ left: Int64) -> Bool {
        let rate = connections.reduce(0) { $0 + $1.timing.pace.rate }
        return left >= Self.smallestShared || (rate > 0 && Double(left) >= 3 * rate)
    }

    /// The number of connections that the line is worth.
    private mutating func wantedConnections(
        _ observations: Observations, left: Int64, _ facts: DownloadFacts
    ) -> Int {
        guard growth.segments.isAutomatic else { return growth.target }
        let line = observations.line
        return growth.look(
            PathObservation(
                now: facts.now, received: line?.received ?? observations.received,
                connections: connections.compactMap { connection in
                    connection.timing.firstRespondedAt.map {
                        PathObservation.Connection(
                            number: connection.number, age: facts.now - $0, received: connection.timing.received)
                    }
                },
                others: line?.others ?? 0, left: left,
                setUp: connections.compactMap(\.timing.setUp).min() ?? Int64(rates.setUp * 1000),
                isBusy: observations.isBusy,
                isHeld: connections.contains { facts[$0.number].isHeldBack },
                capacity: line?.capacity, mayTry: line?.mayTry ?? true))
    }

    /// Measures the throughput of every connection.
    mutating func measure(_ facts: DownloadFacts) {
        for index in connections.indices {
            let number = connections[index].number
            if facts[number].isPaused { connections[index].timing.postpone(to: facts.now) }
            if connections[index].isReceiving, let time = connections[index].timing.measure(at: facts.now) {
                let source = connections[index].source
                sources[source].record(answerTime: time)
                sources[source].recordService(
                    ofSeveral: connections.contains {
                        $0.number != number && $0.source == source && $0.isReceiving && $0.timing.hasBegun
                    })
            }
            let rate = connections[index].timing.pace.rate
            table?.move(number, to: connections[index].position(facts[number].position), rate: rate)
            rates.best = max(rates.best * 0.995, rate)
            sources[connections[index].source].record(rate: rate)
        }
    }

    // MARK: One connection more

    /// - Parameter wanted: the source; absent, the best one.
    /// - Returns: `nil` where no source can be used.
    private func wish(
        for purpose: ConnectionRequest.Purpose, at wanted: Int? = nil, _ facts: DownloadFacts
    ) -> ConnectionRequest? {
        var users: [Int: (count: Int, rate: Double)] = [:]
        for connection in connections {
            let known = users[connection.source] ?? (0, 0)
            users[connection.source] = (known.count + 1, known.rate + connection.timing.pace.rate)
        }
        let (currentSource, isJoinable) = (currentSource, facts.part.isJoinable)
        let best = sources.best(at: facts.now, users: users) { isJoinable || $0.number == currentSource }
        guard let source = wanted ?? best?.number, let first = connections.first else { return nil }
        return ConnectionRequest(
            number: lastNumber + 1, source: source, like: connections.first { $0.source == source }?.number,
            beside: first.number, purpose: purpose)
    }

    /// Opens a connection, where the origin's limit allows it and there are bytes for it.
    mutating func limitAnswered(
        _ wish: ConnectionRequest, isGranted: Bool, _ facts: DownloadFacts
    ) -> DownloadAction {
        if isEnded { return .none }
        guard isGranted else {
            if case .growth = wish.purpose {
                growth.cap(to: connections.count, isFull: !sources[wish.source].servesOne(at: facts.now))
            }
            return .none
        }
        lastNumber = max(lastNumber, wish.number)
        var connection = SegmentConnection(number: wish.number, source: wish.source)
        connection.setResource(wish.like.flatMap { self[$0]?.resource })
        connections.append(connection)
        var work = nextRange(for: wish.number, facts)
        // A rest that is too small to share is taken over from a source that would need long for it.
        if work == .none, wish.purpose == .betterSource { work = nextRange(for: wish.number, isFaster: true, facts) }
        let range: Range<Int64>
        var actions: [DownloadAction] = []
        switch work {
        case .none:
            _ = closeConnection(wish.number, facts)
            if case .growth = wish.purpose { growth.cap(to: connections.count, isFull: false) }
            return .giveBack(wish.number)
        case .range(let found): range = found
        case .takeOver(let victim, let found):
            range = found
            if let silent = self[victim] { actions += recordSilence(of: silent, facts) }
            actions.append(.flush(victim, then: .closeConnection))
        }
        wasShared = true
        // The next action may close the connection whose redirects and credentials the new one copies.
        actions.insert(.open(wish), at: 0)
        actions.append(request(wish.number, from: range.lowerBound, to: range.upperBound, facts))
        if case .growth(let target) = wish.purpose { actions.append(.grow(to: target)) }
        return .sequence(actions)
    }

    // MARK: Better ones

    /// A source that would bring the missing bytes far sooner than those in use, as far as is known now.
    private func betterSource(left: Int64, _ facts: DownloadFacts) -> Int? {
        guard left > 0, facts.part.isJoinable, sources.all.count > 1 else { return nil }
        let rate = connections.reduce(0) { $0 + ($1.isReceiving ? $1.timing.pace.rate : 0) }
        return sources.better(
            at: facts.now, than: rate, left: left, users: Set(connections.map(\.source)), isShared: isShared,
            mayReturn: traits.sendsRanges)?.number
    }

    private func watchedTime(_ connection: SegmentConnection, _ now: Int64) -> Int64 {
        connection.timing.watchedTime(at: now, responseTimeout: sources[connection.source].responseTimeout)
    }

    /// Has a better source join the connections, or take the place of the last one, once those were watched for long
    /// enough.
    private mutating func change(to source: Int, _ facts: DownloadFacts) -> DownloadAction {
        guard let first = connections.first,
            connections.allSatisfy({
                watchedTime($0, facts.now) >= DownloadSource.firstResponseTimeout && !facts[$0.number].isPaused
            })
        else { return .none }
        if isShared { return wish(for: .betterSource, at: source, facts).map { .borrow($0) } ?? .none }
        return .flush(first.number, then: .change(to: source))
    }

    /// Breaks off connections that are far slower than the others.
    private mutating func replaceSlow(_ facts: DownloadFacts) -> [DownloadAction] {
        var actions: [DownloadAction] = []
        for connection in connections where !facts[connection.number].isPaused {
            let others = connections.filter { $0.number != connection.number }
            let neighbours = others.filter { $0.source == connection.source }
            let position = connection.position(facts[connection.number].position)
            let subject = StragglerDetector.Subject(
                number: connection.number,
                watched: watchedTime(connection, facts.now),
                rate: connection.isReceiving ? connection.timing.pace.rate : 0,
                // What it was to bring, another one may have reached meanwhile.
                rest: max((connection.end ?? position) - position, connection.timing.receivedNow > 0 ? 0 : 1),
                hasNeighbour: !neighbours.isEmpty, isShared: isShared,
                neighbours: neighbours.map(\.timing.pace.rate).max() ?? 0,
                others: others.map(\.timing.pace.rate).max() ?? 0)
            if rates.slow.replaces(subject, best: rates.best, setUp: rates.setUp, now: facts.now) {
                if !connection.timing.hasBegun { sources[connection.source].recordDeparture() }
                actions.append(interrupt(connection.number, .replaced))
            }
        }
        return actions
    }

    // MARK: Silence

    /// Records that a connection is given up which has received nothing. If another one to its source receives bytes,
    /// and none ever did beside another, the source is taken for one that serves a client's connections one by one.
    ///
    /// - Returns: the action that remembers it, or none.
    func recordSilence(of connection: SegmentConnection, _ facts: DownloadFacts) -> [DownloadAction] {
        let source = sources[connection.source]
        guard connection.timing.received == 0, !source.servesSeveral, !source.servesOne(at: facts.now),
            connections.contains(where: {
                $0.number != connection.number && $0.source == source.number && $0.isReceiving
                    && $0.timing.receivedNow > 0
            })
        else { return [] }
        return [.rememberSingleService(connection.number)]
    }

    /// Records that a connection's source gets one connection only, as this or an earlier download has seen.
    mutating func singleServiceRemembered(by number: Int, until time: Int64) {
        guard let source = self[number]?.source else { return }
        sources[source].recordSingleService(until: time)
        growth.cap(to: connections.count { $0.source != source || $0.timing.received > 0 }, isFull: false)
    }
}
