/// The start, and the requests.
extension DownloadStateMachine {
    /// Opens the first connection.
    mutating func start() -> Int {
        connections = [SegmentConnection(number: 0, source: sources.own.number)]
        return 0
    }

    /// Goes on with a response that another run has begun to receive.
    mutating func start(takingOverFrom resource: String?, now: Int64) {
        _ = start()
        hasSent = true
        connections[0].isUnderWay = true
        connections[0].setResource(resource)
        connections[0].timing.sent(at: now)
    }

    /// Begins with the first missing bytes, or completes where an earlier attempt received all.
    mutating func begin(_ facts: DownloadFacts) -> DownloadAction {
        guard let first = connections.first else { return .none }
        return requestMissing(first.number, facts)
    }

    /// Begins with mirrors in the place of a file server that failed.
    mutating func startWithMirrors(after error: TransferError, _ facts: DownloadFacts) -> DownloadAction {
        failures.first = error
        let number = start()
        return begin(number, isJoining: mayBeJoined(facts.part), Self.fromMirror, facts)
    }

    /// Requests the first missing bytes.
    mutating func requestMissing(_ number: Int, _ facts: DownloadFacts) -> DownloadAction {
        let gap = facts.part.version.total.flatMap { facts.part.written.gaps(in: 0..<$0).first }
        return request(number, from: gap?.lowerBound ?? facts.part.front, to: gap?.upperBound, facts)
    }

    /// Requests what is missing, or the whole.
    ///
    /// - Parameters:
    ///   - isJoining: whether the bytes of the part are continued; otherwise the whole replaces them, once it comes.
    ///   - reason: the reason why it does.
    mutating func begin(
        _ number: Int, isJoining: Bool, _ reason: String, _ facts: DownloadFacts
    ) -> DownloadAction {
        if isJoining, facts.part.count > 0 { return requestMissing(number, facts) }
        update(number) { $0.reasonForWhole = reason }
        return send(number, from: 0, to: nil, facts)
    }

    /// Requests bytes, unless nothing is missing.
    mutating func request(
        _ number: Int, from start: Int64, to end: Int64?, _ facts: DownloadFacts
    ) -> DownloadAction {
        if hasEverything(facts) { return .finish(number) }
        if let end, start >= end { return claimFulfilled(number, facts) }
        return send(number, from: start, to: end, facts)
    }

    /// Sends a request for a claim.
    ///
    /// - Parameter end: `nil`: the end of the file.
    mutating func send(_ number: Int, from start: Int64, to end: Int64?, _ facts: DownloadFacts) -> DownloadAction {
        guard let index = index(of: number) else { return .none }
        guard configuration.isRepeatable || !hasSent else {
            return fail(TransferError(.truncated, "the response is incomplete, and its rest cannot be requested"))
        }
        hasSent = true
        // A range of a decoded body cannot be requested.
        let isWhole = facts.part.version.isDecoded
        connections[index].start = isWhole ? 0 : start
        connections[index].end = isWhole ? nil : end
        if isWhole, connections[index].reasonForWhole == nil {
            connections[index].reasonForWhole = "a range of a decoded body cannot be requested"
        }
        connections[index].phase = .requesting
        connections[index].isResting = false
        assert(!connections[index].isUnderWay, "a request is sent before the end of the one before")
        connections[index].isUnderWay = true
        connections[index].timing.sent(at: facts.now)
        return .send(number)
    }

    /// Records that a connection's response replaces the part.
    mutating func partDropped(by number: Int) {
        update(number) {
            $0.reasonForWhole = nil
            $0.start = 0
            $0.end = nil
        }
        table = nil
        isTicking = false
        unconfirmed = nil
    }

    /// Decides on the range of a request that is about to be sent.
    ///
    /// - Parameter url: the URL that is asked.
    mutating func requestRange(_ number: Int, at url: String, _ facts: DownloadFacts) -> RangeRequest {
        guard let index = index(of: number) else { return .whole }
        var connection = connections[index]
        defer { connections[index] = connection }
        connection.phase = .requesting
        let resource = connection.setResource(url: url)
        connection.isPart = false
        connection.isWriting = false
        connection.request = SegmentConnection.RangeRequest(have: connection.start)
        guard configuration.isRepeatable else { return .whole }
        let part = facts.part
        if connection.endCheck == .underWay {
            connection.request.have = part.front
            let from = max(0, part.front - Int64(Overlap.narrow))
            connection.request.from = from
            return .range(from: from, last: nil, ifRange: nil)
        }
        let ifRange = traits.ignoresCondition ? nil : version(at: resource, part)?.validator.ifRange
        connection.request.isConcurrent =
            connection.reasonForWhole == nil
            && (isShared || (part.version.isJoined && (ifRange == nil || !isVouched(by: resource, part))))
        guard connection.reasonForWhole == nil, part.count > 0 || connection.request.isConcurrent else { return .whole }
        if ifRange != nil || connection.request.isConcurrent {
            connection.request.from = connection.start
            connection.request.isConditional = ifRange != nil
            let last = connection.end.flatMap { $0 < part.version.total ?? .max ? $0 - 1 : nil }
            return .range(from: connection.start, last: last, ifRange: ifRange)
        }
        // Bytes without a strong validator are received once more and compared, unless a digest will tell. Bytes
        // behind a gap do not count.
        connection.request.have = part.front
        guard part.isJoinable, part.version.total != nil else { return .overlap(connection.overlap) }
        guard part.front > 0 else { return .whole }
        connection.request.from = part.front
        return .range(from: part.front, last: nil, ifRange: nil)
    }

    /// Records where the comparison with the part begins.
    ///
    /// - Parameter start: 0 where no comparison would tell one version from another.
    mutating func overlapBegins(_ number: Int, at start: Int64) -> RangeRequest {
        guard start > 0 else { return .whole }
        update(number) { $0.request.from = start }
        return .range(from: start, last: nil, ifRange: nil)
    }
}
