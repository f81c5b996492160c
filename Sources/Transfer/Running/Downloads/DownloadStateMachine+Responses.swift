import Curl

/// The responses.
extension DownloadStateMachine {
    /// The facts that the evaluation of a response head depends on.
    struct HeadContext {
        /// The digest that the file's own server stated.
        var statedDigest: FileDigest?
        /// Whether the destination has a digest of its own.
        var hasDestinationDigest = false
        /// The kind of credential that was sent, if the response rejects it.
        var sentCredential: SentCredential?
        /// The error by which the download completes with the file that is there; `nil` unless the server says that it
        /// has no other version.
        var current: TransferError?
        /// Milliseconds since 1970.
        var wallTime: Int64
    }

    /// Evaluates the head of a response. The range is checked by ``ResponseEvaluator``.
    mutating func headReceived(
        _ number: Int, _ head: ResponseHead, at url: CurlURL, _ context: HeadContext, _ facts: DownloadFacts
    ) -> HeadAction {
        guard let index = index(of: number) else { return .discard }
        let resource = connections[index].setResource(url: url.text)
        connections[index].timing.responded(at: facts.now)
        if let current = context.current { return discard(number, .refused(current)) }
        let (connection, part) = (connections[index], facts.part)
        let known = version(at: resource, part)
        let (request, isConcurrent) = (connection.request, connection.request.isConcurrent)
        let hasBytes = part.count > 0 || isConcurrent
        let present = ResponseEvaluator.Present(
            mediaType: part.version.mediaType, unconfirmed: unconfirmed,
            requestedAt: context.wallTime - (facts.now - connection.timing.requestedAt),
            confirmationDelay: configuration.confirmationDelay)
        let judgement = ResponseEvaluator(
            askedFrom: request.from, have: request.have,
            validator: !hasBytes ? nil : known?.validator ?? (isConcurrent ? nil : part.version.validator),
            isVouched: known != nil, isConditional: request.isConditional,
            isConfirming: connection.endCheck == .underWay, total: part.version.total,
            digest: part.version.digest, present: part.count > 0 ? present : nil,
            emptyStatuses: configuration.emptyStatuses,
            sentCredential: context.sentCredential, pathSuffix: url.path)
        let verdict = judgement.evaluate(head, now: context.wallTime / 1000)
        if connection.source > 0, let stated = context.statedDigest, let theirs = head.representationDigest,
            theirs.contradicts(stated), !context.hasDestinationDigest
        {
            return discard(
                number,
                .refused(
                    TransferError(.checksumMismatch, "a mirror reported another digest than the file's own server")))
        }
        if isShared || isConcurrent { return rangeResponseReceived(number, head, resource, verdict, judgement, facts) }
        let isInDoubt = request.from != nil && mayStillCountClosedConnections(part)
        if request.from != nil, known == nil, hasAlternative(connection.source, facts),
            let reason = judgement.otherFile(in: head)
        {
            // A mirror that has another file must not discard bytes that another source can continue.
            return discard(number, .unusable(reason: reason))
        }
        switch verdict {
        case .restart where isInDoubt, .decode where isInDoubt, .unconfirmed where isInDoubt:
            return discard(number, .changed(reason: "the server sent the whole file"))
        case .accept(let offset, let length, let total):
            var (contents, keepsFront) = (part, false)
            if !request.isConditional {
                // Bytes behind a gap belong to the file where their very version answers, wherever that is.
                let tag = part.version.validator.strongEntityTag
                keepsFront = tag == nil || tag != head.validator.strongEntityTag
                if keepsFront { _ = contents.keepFront() }
                connections[index].start = request.have
                connections[index].end = part.version.total.flatMap {
                    contents.written.gaps(in: request.have..<max(request.have, $0)).first?.upperBound
                }
            }
            connections[index].isPart = true
            unconfirmed = nil
            var plan = BodyPlan(
                offset: offset, end: length.map { offset + $0 }, total: total,
                claimed: claim(head, resource, total, url, connection.source))
            plan.keepsFront = keepsFront
            return .receive(plan)
        case .restart(let length):
            var plan = BodyPlan(
                offset: 0, end: length, total: length,
                claimed: claim(head, resource, length, url, connection.source))
            plan.startsOver = connection.reasonForWhole ?? "the server sent the whole file"
            partDropped(by: number)
            return .receive(plan)
        case .decode(let codings):
            var plan = BodyPlan(offset: 0, claimed: claim(head, resource, nil, url, connection.source))
            plan.claimed.isDecoded = true
            plan.startsOver = "the server sent the whole file with a content coding"
            plan.codings = codings
            partDropped(by: number)
            return .receive(plan)
        case .unconfirmed(let version):
            unconfirmed = version
            return discard(number, .failed(Self.unconfirmed(version, head, at: url)))
        case .complete: return discard(number, .complete)
        case .askAgain(let reason): return discard(number, .requestWhole(reason: reason))
        case .askUnconditionally: return discard(number, .requestUnconditionally)
        // The last bytes have shown the version, and the server says again that nothing follows them.
        case .confirmEnd where connection.endCheck == .done: return discard(number, .complete)
        case .confirmEnd: return discard(number, .confirmEnd)
        case .fail(let error): return discard(number, .failed(error))
        }
    }

    /// Returns the error for a response that claims another version and does not prove it.
    private static func unconfirmed(
        _ version: UnconfirmedVersion, _ head: ResponseHead, at url: CurlURL
    ) -> TransferError {
        let facts = [version.mediaType ?? "no media type", version.length.map { "\($0) bytes" } ?? "unknown length"]
        return TransferError(
            .remoteChanged,
            "the part is kept: instead of its rest \(url.origin) sent something whole that may be a login page "
                + "(\(head.status), \(facts.joined(separator: ", ")))")
    }

    private func claim(
        _ head: ResponseHead, _ resource: String, _ total: Int64?, _ url: CurlURL, _ source: Int
    ) -> ResourceVersion {
        // The name of a mirror's file says nothing about the request's own.
        let isRedirected = source == 0 && resource != ResumeData.resource(of: sources[source].request.url)
        return ResourceVersion(
            validator: head.validator, origin: resource, mediaType: head.mediaType, total: total,
            digest: head.representationDigest, suggestedFileName: head.suggestedFileName,
            redirectedFileName: isRedirected ? SafeFileName.make(fromURL: url.text) : nil,
            sendsRanges: Self.sendsRanges(head))
    }

    /// Returns whether a response is a range, or says that the server sends ranges.
    private static func sendsRanges(_ head: ResponseHead) -> Bool {
        head.status == 206 || head.value(of: "accept-ranges")?.lowercased() == "bytes"
    }

    private mutating func discard(_ number: Int, _ outcome: SegmentOutcome) -> HeadAction {
        update(number) { $0.phase = .discarding(outcome) }
        return .discard
    }

    /// Evaluates a response while others bring the file too: only the very range that was requested is of use, and only
    /// of their version.
    private mutating func rangeResponseReceived(
        _ number: Int, _ head: ResponseHead, _ resource: String, _ verdict: ResponseEvaluator.Verdict,
        _ judgement: ResponseEvaluator, _ facts: DownloadFacts
    ) -> HeadAction {
        guard let connection = self[number] else { return .discard }
        switch verdict {
        case .accept(let offset, let length?, let total):
            let provenVersion = version(at: resource, facts.part)
            guard offset == connection.request.from,
                provenVersion != nil || facts.part.isJoinable || facts.part.version.isJoined
            else { return discard(number, .unusable(reason: "the server sent another range than requested")) }
            let isSame = provenVersion?.validator.strongEntityTag.map { $0 == head.validator.strongEntityTag } ?? true
            guard connection.request.isConditional || isSame else {
                return discard(
                    number,
                    head.validator.entityTag == nil
                        ? .unusable(reason: "the server sent a range without a validator")
                        : .changed(reason: "the file on the server has changed"))
            }
            update(number) { $0.isPart = true }
            unconfirmed = nil
            let claimed = ResourceVersion(
                validator: head.validator, origin: resource, total: total, sendsRanges: true)
            var plan = BodyPlan(offset: offset, end: offset + length, total: total, claimed: claimed)
            plan.isShare = true
            return .receive(plan)
        case .accept, .complete, .confirmEnd, .decode:
            return discard(number, .unusable(reason: "the server sent something other than a range"))
        case .restart, .askAgain, .unconfirmed:
            let reason = judgement.contradiction(in: head)
            return discard(
                number,
                reason.map { .changed(reason: $0) } ?? .unusable(reason: "the server did not send the range"))
        case .askUnconditionally: return discard(number, .requestUnconditionally)
        case .fail(let error): return discard(number, .failed(error))
        }
    }

    /// Records that the body of a response cannot be kept; its exchange is broken off.
    mutating func bodyRefused(_ number: Int, _ error: TransferError) {
        update(number) { $0.phase = .interrupted(.refused(error)) }
    }

    /// Records that the body of a response begins to be written. From here on other connections may join.
    ///
    /// - Parameter facts: after the part has been prepared for the body.
    mutating func bodyBegan(
        _ number: Int, _ plan: BodyPlan, _ head: ResponseHead, at url: CurlURL, _ facts: DownloadFacts
    ) -> DownloadAction {
        guard let index = index(of: number) else { return .none }
        connections[index].isWriting = true
        connections[index].phase = .receiving(end: plan.end)
        if plan.isShare {
            let resource = ResumeData.resource(of: url.text)
            if !isVouched(by: resource, facts.part), versions.count < Self.versionLimit {
                versions[resource] = plan.claimed
            }
            if isShared { return .none }
        }
        return firstBodyBegan(index, plan, head, at: url, facts)
    }

    private mutating func firstBodyBegan(
        _ index: Int, _ plan: BodyPlan, _ head: ResponseHead, at url: CurlURL, _ facts: DownloadFacts
    ) -> DownloadAction {
        guard let total = plan.total ?? facts.part.version.total, total > 0 else { return .none }
        let connection = connections[index]
        if connection.end == nil { connections[index].end = total }
        if facts.part.isJoinable, !configuration.hasMismatch, configuration.isRepeatable {
            sources.add(duplicates: head, at: url)
        }
        if table?.total != total { table = SegmentTable(total: total) }
        table?.put(connection.number, on: connection.start..<max(connection.start, connections[index].end ?? total))
        let sendsRanges = plan.claimed.sendsRanges ?? false
        traits.sendsRanges = traits.sendsRanges || sendsRanges
        let hasChoice = sources.all.count > 1 && facts.part.isJoinable
        let isShareable =
            configuration.segments.most > 1 && total - facts.part.count >= Self.smallestShared
            && (sendsRanges || sources.all.count > 1 || head.value(of: "accept-ranges")?.lowercased() != "none")
        guard !isTicking, hasChoice || isShareable else { return .none }
        return startTicking(configuration.segments.isAutomatic ? ConnectionScaler.interval : 0)
    }

    mutating func startTicking(_ milliseconds: Int64) -> DownloadAction {
        isTicking = true
        return .tick(milliseconds: milliseconds)
    }

    /// Decides on bytes of a body. Called for every chunk: it allocates nothing.
    ///
    /// - Parameter position: the position of the connection's writer.
    mutating func bytesReceived(_ count: Int, on number: Int, at position: Int64, isDecoding: Bool) -> BytesAction {
        guard let index = index(of: number) else { return .refuse }
        switch connections[index].phase {
        case .receiving(let stated):
            let reached = position + Int64(count)
            if let stated, reached > stated {
                return .fail(
                    TransferError(.remoteChanged, "the server sent more than the \(stated) bytes it announced"))
            }
            connections[index].timing.receive(count)
            guard !isDecoding, let end = connections[index].end, reached >= end, stated.map({ $0 > end }) ?? true else {
                return .append
            }
            return .claimReached
        case .discarding: return .ignore
        case .requesting, .interrupted: return .refuse
        }
    }

    /// Decides on bytes of a body with which a connection reaches the end of its claim, while its response goes on: it
    /// continues where no other connection brings the next bytes, or one that has received nothing yet was to.
    mutating func claimReached(
        _ number: Int, _ count: Int, at position: Int64, _ facts: DownloadFacts
    ) -> BytesAction {
        guard let index = index(of: number), case .receiving(let stated) = connections[index].phase else {
            return .refuse
        }
        measure(facts)
        let reached = position + Int64(count)
        let silent = silentConnections(beside: number, isEach: true, facts)
        let setUp = setUpTime
        while let end = connections[index].end, reached >= end, stated.map({ $0 > end }) ?? true {
            let isExtended =
                table?.extend(
                    number, upTo: stated ?? 0, silent: silent, written: facts.part.written,
                    connections: max(growth.target, connections.count), setUp: setUp) ?? false
            guard isExtended, let next = table?.claims[number]?.end, next > end else {
                // Another connection brings the rest.
                connections[index].phase = .interrupted(.claimFulfilled)
                return .fulfil(Int(max(0, end - position)))
            }
            keepToClaims()
        }
        return .append
    }

    /// Decides whether a paused response is broken off, for its rest to be requested over a connection that no other
    /// request shares.
    mutating func leavesSharedConnection(_ number: Int, isDecoding: Bool, _ part: PartContents) -> Bool {
        guard let index = index(of: number), connections[index].isReceiving, canRequestRest(part), !isDecoding else {
            return false
        }
        connections[index].phase = .interrupted(.needsOwnConnection)
        return true
    }
}
