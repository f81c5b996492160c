import Curl
import Glibc
import HTTPTypes

/// One connection of a download: asks for the bytes that it was given, and takes the answers.
///
/// Lives on its loop's thread. What the head of an answer means is ``AnswerJudgement``'s to say; where bytes go is
/// ``BodyWriter``'s; what follows an end is its ``DownloadRun``'s.
final class SegmentWorker: TransactionClient {
    private enum Phase {
        /// Before the head of the answer is judged.
        case asking
        /// The body is the file's, up to `end` where that is known.
        case receiving(end: Int64?)
        /// The body is of no use; what follows it is decided.
        case discarding(Ending)
        /// The body's rest is of no use: broken off by us.
        case broken(Ending)
        case ended
    }

    /// How an exchange ended, for the run to go on from.
    enum Ending {
        /// libcurl saw a complete body, which goes up to `end` where that was stated; whether it is, our own count says.
        case body(end: Int64?)
        /// Every byte of the claim is here, and the answer has more of them.
        case claim
        /// What is there is of no use any more, the server's answer says: ask again for the whole.
        case askAgain(reason: String)
        /// What is there was seen to be wrong: forget it and ask for the whole.
        case startOver(reason: String)
        case askUnconditionally
        /// Nothing follows what is here, the server says: its last bytes are to show it.
        case confirmEnd
        /// Nothing is left to fetch.
        case whole
        /// The server has another version than the other connections bring.
        case changed(reason: String)
        /// The server answers with something else than the range that was asked for.
        case useless(reason: String)
        /// The exchange failed, by its server or on the way to it.
        case failed(TransferError)
        /// What was received cannot be kept, or must not be.
        case refused(TransferError)
        /// It is to be asked for once more, over another connection.
        case replaced
        /// The rest is to be asked for over a connection of its own.
        case elsewhere

        /// Whether it says nothing against the bytes that are here. Where they are complete, they count.
        var leavesBytesAsTheyAre: Bool {
            switch self {
            case .askAgain, .askUnconditionally, .confirmEnd, .changed, .useless, .failed, .replaced, .elsewhere: true
            // An end that is judged by itself, or bytes that were seen to be wrong.
            case .body, .claim, .whole, .startOver, .refused: false
            }
        }
    }

    /// Whether the last bytes that are here were asked for, to see whether something follows them: once is enough.
    private enum EndCheck { case none, underWay, done }

    private enum Origin {
        case new
        case takingOver(Transaction)
        case following(SegmentWorker, number: Int)
        case beside(SegmentWorker, number: Int)
    }

    private unowned let run: DownloadRun
    private let task: DownloadTask
    private let session: Session
    private let origin: Origin
    /// Where it fetches from.
    let source: DownloadSource
    private(set) lazy var transaction = makeTransaction()
    let writer: BodyWriter
    private var file: DownloadFile { run.file }

    private var phase = Phase.asking
    /// An answer was asked for, and its end has not been seen.
    private var awaitsEnd = false
    /// It has left its run, and asks nobody any more.
    private(set) var isStopped = false
    /// The bytes that it is to bring; without an end up to that of the file, wherever that is.
    private(set) var start: Int64 = 0
    private(set) var end: Int64?
    /// It was asked for a share of what others bring too.
    private var asksForShare = false
    /// The body under way goes to the file.
    private var isWriting = false
    /// Where the answer under way was to begin; `nil` where the whole was asked for.
    private(set) var askedFrom: Int64?
    /// It was asked with `If-Range`.
    private var isConditional = false
    /// Why what is here is not to be gone on with; `nil` where it is.
    private var reasonForWhole: String?
    private var endCheck = EndCheck.none
    /// What it had reached when it was asked.
    private(set) var haveBefore: Int64 = 0
    /// The body is a part of the resource and not the whole.
    private(set) var isPart = false
    /// What is compared without a strong validator.
    private var overlap = Overlap()
    /// Milliseconds that an answer counts for at least where its rate is taken.
    private static let shortestMeasure: Int64 = 10
    /// What tells of changes and damage where the server knows it (RFC 9530, section 4).
    private static let wantedDigests = "Want-Repr-Digest: sha-256=10, sha-512=5"
    /// Decoded bytes for each that came, and bytes that may come of anything: more is an attack.
    private static let largestGrowth: Int64 = 200
    private static let smallestGrown: Int64 = 64 << 20

    /// Of a body that came coded.
    private var decoder: BodyDecoder?

    /// The head that a destination is to be decided by, once the first byte has been judged.
    private(set) var undecided: ResourceMetadata?
    /// The first byte tells whether there is a body that the head's type matters for.
    private var judgesFirstByte = false

    /// When it was asked, and when the head of the answer came.
    private(set) var askedAt = MonotonicTime.now()
    private(set) var answeredAt: MonotonicTime?
    /// When the head of its first answer came.
    private(set) var begunAt: MonotonicTime?
    /// Bytes of body that it received over all its answers, and of those before the present one.
    private(set) var received: Int64 = 0
    private var receivedBefore: Int64 = 0
    /// Answers in a row that brought next to nothing.
    private var crumbs = 0
    /// Answers like that after which the next one is not asked for at once.
    private static let freeCrumbs = 16
    /// Bytes of an answer that are worth its asking.
    private static let smallestAnswer: Int64 = 4 << 10
    /// Milliseconds, doubled each time.
    private static let firstRest: Int64 = 50
    private static let longestRest: Int64 = 2_000
    /// Bytes a second that it brings, as far as is known.
    private(set) var pace = Pace()
    /// When bytes of the present answer were first seen, in milliseconds of a clock that no one sets.
    private var beganAt: Int64?

    private init(_ run: DownloadRun, _ source: DownloadSource, _ origin: Origin) {
        self.run = run
        self.source = source
        self.origin = origin
        task = run.task
        session = run.task.session
        writer = BodyWriter(file: run.file)
    }

    /// The first one of a download.
    ///
    /// - Parameter transaction: an answer that another task began to take.
    convenience init(_ run: DownloadRun, takingOver transaction: Transaction? = nil) {
        self.init(run, run.sources.own, transaction.map { .takingOver($0) } ?? .new)
    }

    /// One more, which asks where `other` does.
    convenience init(_ run: DownloadRun, following other: SegmentWorker, number: Int) {
        self.init(run, other.source, .following(other, number: number))
    }

    /// One more, which asks another source than `other`.
    convenience init(_ run: DownloadRun, beside other: SegmentWorker, at source: DownloadSource, number: Int) {
        self.init(run, source, .beside(other, number: number))
    }

    private func makeTransaction() -> Transaction {
        switch origin {
        case .new: return Transaction(task, request: source.request, client: self, core: run.core)
        case .takingOver(let transaction):
            transaction.hand(over: task, to: self)
            awaitsEnd = true
            return transaction
        case .following(let other, let number):
            return Transaction(following: other.transaction, number: number, client: self)
        case .beside(let other, let number):
            return Transaction(source.request, beside: other.transaction, number: number, client: self)
        }
    }

    var number: Int { transaction.number }

    /// Bytes a second of the answer that has just come: what came within moments says no more than what a longer time
    /// would.
    var meanRate: Double {
        guard let answeredAt else { return 0 }
        let seconds = Double(max(Self.shortestMeasure, answeredAt.milliseconds(until: .now()))) / 1000
        return Double(received - receivedBefore) / seconds
    }

    /// Whether it waits for a head, or brings bytes.
    var isReceiving: Bool { if case .receiving = phase { true } else { false } }

    /// Whether its answer has brought bytes.
    var hasBegun: Bool { beganAt != nil }

    /// Milliseconds for which it can be judged by what it brings: since its first bytes; before them since it was
    /// asked, less the time that its source is given.
    func watchedTime(at now: Int64) -> Int64 {
        now - (beganAt ?? askedAt.milliseconds + source.patience - DownloadSource.firstPatience)
    }

    /// Looks at how fast it brings bytes.
    func notePace(at now: Int64) {
        guard isReceiving else { return }
        if beganAt == nil, received > receivedBefore {
            beganAt = now
            source.note(answerTime: now - askedAt.milliseconds)
        }
        pace.note(received, at: now)
    }

    /// Where the answer under way ends, as far as that was stated.
    var reach: Int64? { if case .receiving(let end) = phase { end } else { nil } }

    /// The next byte that it is to bring.
    var position: Int64 { isWriting ? max(start, writer.position) : start }

    // MARK: Asking

    /// Asks for `range`; without one for all from `start` on.
    func ask(from start: Int64, to end: Int64?) {
        // What led here may have let it go on the way: an answer would find nobody.
        if isStopped { return }
        let isWhole = file.version.isDecoded
        if isWhole { startOver("a part of what was decoded cannot be asked for") }
        self.start = isWhole ? 0 : start
        self.end = isWhole ? nil : end
        phase = .asking
        receivedBefore = received
        askedAt = .now()
        answeredAt = nil
        beganAt = nil
        pace.pause()
        assert(!awaitsEnd, "asked again before the end of what was asked before")
        awaitsEnd = true
        transaction.ask()
    }

    /// Asks for the whole; once that comes, what is here makes way for it.
    func askForWhole(_ reason: String) {
        reasonForWhole = reason
        ask(from: 0, to: nil)
    }

    /// Asks for the last bytes that are here.
    func confirmEnd() {
        endCheck = .underWay
        ask(from: start, to: end)
    }

    /// Whether it was refused where a redirect once led to: what that leads to now may be another place.
    func isLedAstray(by error: TransferError) -> Bool {
        transaction.isShortcut && error.httpStatus.map { [400, 401, 403, 404, 410].contains($0) } ?? false
    }

    /// Asks for the rest of its claim, and its source's own URL first.
    func askSource() {
        transaction.goBack(to: source.request)
        ask(from: start, to: end)
    }

    /// Someone else brings what lies behind `end`.
    func cut(at end: Int64) { self.end = end }

    /// Ends it without a word to the run. To be called from outside libcurl's callbacks.
    func stop() {
        isStopped = true
        phase = .ended
        transaction.cancel()
        writer.release()
    }

    /// Whether an exchange is under way: it is to be broken off before something else is asked for.
    var isUnderWay: Bool { transaction.isUnderWay }

    /// The answer has ended and more is to be asked for: a server that hands out crumbs is not asked as fast as it answers.
    ///
    /// - Returns: milliseconds until it should be asked again.
    func restAfterAnswer() -> Int64 {
        guard received - receivedBefore < Self.smallestAnswer else {
            crumbs = 0
            return 0
        }
        crumbs += 1
        guard crumbs > Self.freeCrumbs else { return 0 }
        return min(Self.longestRest, Self.firstRest << Int64(min(crumbs - Self.freeCrumbs - 1, 16)))
    }

    /// Breaks off what is under way; ``DownloadRun/worker(_:did:)`` follows. To be called from outside libcurl's
    /// callbacks.
    func breakOff(_ ending: Ending) {
        phase = .broken(ending)
        transaction.cancel()
    }

    func prepare(_ request: TransferRequest, at url: CurlURL) throws(TransferError) -> Transaction.Contribution {
        phase = .asking
        var contribution = Transaction.Contribution(fields: ["Accept-Encoding: identity"])
        if !request.headerFields.contains(where: { $0.name.canonicalName == "want-repr-digest" }) {
            contribution.fields.append(Self.wantedDigests)
        }
        let least = LeastPace(session.configuration).bytes
        contribution.configure = { (exchange: Exchange) throws(CurlError) in exchange.leastBytes = least }
        askedFrom = nil
        isConditional = false
        isPart = false
        isWriting = false
        haveBefore = start
        if endCheck == .underWay {
            asksForShare = false
            haveBefore = file.front
            let from = max(0, haveBefore - Int64(Overlap.narrow))
            askedFrom = from
            contribution.fields.append("Range: bytes=\(from)-")
            return contribution
        }
        let ifRange = run.isConditionUseless ? nil : run.version(at: url)?.validator.ifRange
        asksForShare =
            reasonForWhole == nil
            && (run.isShared || (file.version.isJoined && (ifRange == nil || !run.isVouched(by: url))))
        guard reasonForWhole == nil, file.count > 0 || asksForShare else { return contribution }
        if ifRange != nil || asksForShare {
            askedFrom = start
            let last = end.flatMap { $0 < file.version.total ?? .max ? "\($0 - 1)" : nil } ?? ""
            contribution.fields.append("Range: bytes=\(start)-\(last)")
        } else {
            // Bytes that nothing vouches for are fetched once more and compared, unless a digest will tell, and those behind
            // a gap do not count.
            haveBefore = file.front
            let from = file.isJoinable && file.version.total != nil ? haveBefore : try file.start(of: overlap)
            guard from > 0 else { return contribution }
            askedFrom = from
            contribution.fields.append("Range: bytes=\(from)-")
        }
        if let ifRange {
            contribution.fields.append("If-Range: \(ifRange)")
            isConditional = true
        }
        return contribution
    }

    /// Fewer bytes to compare, where the answer brought no byte behind the overlap: it reached the end of the file, or of
    /// what the server sends at once, or it broke off within the overlap.
    ///
    /// - Returns: whether to ask once more from nearer to the end.
    func narrowOverlap() -> Bool {
        guard isPart, let askedFrom, askedFrom < haveBefore, start <= haveBefore, received > receivedBefore else {
            return false
        }
        return overlap.shrink()
    }

    // MARK: The answer

    func take(_ head: ResponseHead, at url: CurlURL) -> Transaction.HeadVerdict {
        answeredAt = run.core.now
        begunAt = begunAt ?? answeredAt
        let known = run.version(at: url)
        let hasBytes = file.count > 0 || asksForShare
        let judgement = AnswerJudgement(
            askedFrom: askedFrom, have: haveBefore,
            validator: !hasBytes ? nil : known?.validator ?? (asksForShare ? nil : file.version.validator),
            isVouched: known != nil, isConditional: isConditional, isConfirming: endCheck == .underWay,
            total: file.version.total,
            digest: file.version.digest, pathSuffix: url.path)
        let verdict = judgement.judge(head, now: Int64(time(nil)))
        if source.number > 0, let stated = task.stated?.digest, let theirs = head.representationDigest,
            theirs.contradicts(stated), run.destination?.digest == nil
        {
            phase = .discarding(
                .refused(TransferError(.checksumMismatch, "a mirror states another digest than the file's own server")))
            return .discard
        }
        if run.isShared || asksForShare { return takeShare(head, at: url, verdict, judgement) }
        let isInDoubt = askedFrom != nil && run.mayBeTakenForOneOfSeveral
        if askedFrom != nil, known == nil, run.canDoWithout(source), let reason = judgement.otherFile(in: head) {
            // A mirror that has another file must not discard bytes that another source can continue.
            phase = .discarding(.useless(reason: reason))
            return .discard
        }
        switch verdict {
        case .restart where isInDoubt, .decode where isInDoubt:
            phase = .discarding(.changed(reason: "the server sent the whole file"))
        case .accept(let offset, let length, let total):
            isPart = true
            if !isConditional {
                // What lies behind a gap is the file's too where its very version answers, at whatever place.
                let isSame =
                    file.version.validator.strongEntityTag.map { $0 == head.validator.strongEntityTag } ?? false
                if !isSame { file.keepFront() }
                start = haveBefore
                end = file.version.total.flatMap {
                    file.written.gaps(in: haveBefore..<max(haveBefore, $0)).first?.upperBound
                }
            }
            return receive(head, at: url, from: offset, end: length.map { offset + $0 }, total: total)
        case .restart(let length):
            startOver(reasonForWhole ?? "the server sent the whole file")
            return receive(head, at: url, from: 0, end: length, total: length)
        case .decode(let coding):
            startOver("the server sent the whole file, coded")
            let verdict = receive(head, at: url, from: 0, end: nil, total: nil, isDecoded: true)
            if isWriting { decoder = BodyDecoder(coding) }
            return verdict
        case .complete: phase = .discarding(.whole)
        case .askAgain(let reason): phase = .discarding(.askAgain(reason: reason))
        case .askUnconditionally: phase = .discarding(.askUnconditionally)
        // The last bytes have shown the version, and once more nothing follows them.
        case .confirmEnd where endCheck == .done: phase = .discarding(.whole)
        case .confirmEnd: phase = .discarding(.confirmEnd)
        case .fail(let error): phase = .discarding(.failed(error))
        }
        return .discard
    }

    /// What is here makes way for the whole.
    private func startOver(_ reason: String) {
        reasonForWhole = nil
        run.startOver(self, reason)
        start = 0
        end = nil
    }

    /// Others bring the file too: only the very range that was asked for is of use, and only of their version.
    private func takeShare(
        _ head: ResponseHead, at url: CurlURL, _ verdict: AnswerJudgement.Verdict, _ judgement: AnswerJudgement
    ) -> Transaction.HeadVerdict {
        switch verdict {
        case .accept(let offset, let length?, let total):
            let vouched = run.version(at: url)
            guard offset == askedFrom, vouched != nil || file.isJoinable || file.version.isJoined else {
                phase = .discarding(.useless(reason: "the server sent another range than was asked for"))
                return .discard
            }
            let isSame = vouched?.validator.strongEntityTag.map { $0 == head.validator.strongEntityTag } ?? true
            guard isConditional || isSame else {
                let isSilent = head.validator.entityTag == nil
                phase = .discarding(
                    isSilent
                        ? .useless(reason: "the server does not say which version a range is of")
                        : .changed(reason: "the file on the server has changed"))
                return .discard
            }
            isPart = true
            let claimed = ResourceVersion(
                validator: head.validator, origin: ResumeData.resource(of: url.text), total: total,
                suggestedFileName: nil)
            do throws(TransferError) {
                if file.target == nil || run.destination == nil {
                    try place(ResourceMetadata(head, file.version), total: total)
                }
            } catch {
                phase = .broken(.refused(error))
                return .refuse(error)
            }
            run.note(claimed, at: url)
            writer.begin(at: offset, of: file.version)
            if !run.isShared { run.didBegin(self, total: total, head) }
            isWriting = true
            phase = .receiving(end: offset + length)
            return .receive
        case .accept, .complete, .confirmEnd, .decode:
            phase = .discarding(.useless(reason: "the server sent something else than a range"))
        case .restart, .askAgain:
            let reason = judgement.contradiction(in: head)
            phase = .discarding(
                reason.map { .changed(reason: $0) } ?? .useless(reason: "the server does not send the range"))
        case .askUnconditionally: phase = .discarding(.askUnconditionally)
        case .fail(let error): phase = .discarding(.failed(error))
        }
        return .discard
    }

    private func receive(
        _ head: ResponseHead, at url: CurlURL, from offset: Int64, end: Int64?, total: Int64?, isDecoded: Bool = false
    ) -> Transaction.HeadVerdict {
        let claimed = ResourceVersion(
            validator: head.validator, origin: ResumeData.resource(of: url.text), total: total,
            digest: head.representationDigest, isDecoded: isDecoded, suggestedFileName: head.suggestedFileName)
        let metadata = ResourceMetadata(head, offset == 0 ? claimed : file.version.continued(by: claimed))
        undecided = nil
        do throws(TransferError) {
            try validate(head, length: end.map { $0 - offset })
            if let maximum = transaction.request.maximumBodySize, let total, total > maximum {
                throw TransferError(.tooLarge, "the file has \(total) bytes, more than the \(maximum) allowed")
            }
            if judgesFirstByte, file.target == nil {
                undecided = metadata
            } else {
                try place(metadata, total: total)
            }
        } catch {
            phase = .broken(.refused(error))
            return .refuse(error)
        }
        task.progress.setTotal(claimed.total ?? file.version.total)
        writer.begin(at: offset, of: claimed)
        isWriting = true
        if file.count > 0 {
            session.delegate.downloadTask(task, didResumeAtOffset: file.count, expected: file.version.total ?? total)
        }
        phase = .receiving(end: end)
        run.didBegin(self, total: total, head)
        return .receive
    }

    /// Finds the file's place, and makes sure that there is room for it.
    private func place(_ metadata: ResourceMetadata, total: Int64?) throws(TransferError) {
        undecided = nil
        run.destination = try file.place(metadata, total: total, ofMirror: source.number > 0)
    }

    /// An error page must not become the file: what the request demands of an answer is asked before its first byte.
    private func validate(_ head: ResponseHead, length: Int64?) throws(TransferError) {
        judgesFirstByte = false
        guard let error = session.delegate.downloadTask(task, validate: head, isEmpty: length == 0) else { return }
        // Of unknown length, it may yet turn out to be empty.
        guard length == nil, session.delegate.downloadTask(task, validate: head, isEmpty: true) == nil else {
            throw error
        }
        judgesFirstByte = true
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        switch phase {
        case .receiving(let answerEnd):
            if file.isAhead {
                transaction.pause(.checkpoint)
                return .paused
            }
            if writer.isBlocked {
                transaction.pause(.disk)
                return .paused
            }
            do throws(TransferError) {
                if judgesFirstByte { try judgeFirstByte() }
                if let undecided { try place(undecided, total: nil) }
                let answer = writer.position + Int64(bytes.count)
                if let answerEnd, answer > answerEnd {
                    throw TransferError(.remoteChanged, "the server sends more than the \(answerEnd) bytes it spoke of")
                }
                received += Int64(bytes.count)
                if let decoder {
                    task.progress.transferred(bytes.count)
                    try decoder.decode(bytes) { (piece: UnsafeRawBufferPointer) throws(TransferError) in
                        try writer.append(piece)
                        try judgeSize()
                    }
                    return .accepted
                }
                guard let end, answer >= end, answerEnd.map({ $0 > end }) ?? true else {
                    try append(bytes)
                    return .accepted
                }
                // Someone else has the rest.
                try append(UnsafeRawBufferPointer(rebasing: bytes[..<Int(max(0, end - writer.position))]))
                return breakOffInside(.claim, .cancelled)
            } catch {
                return breakOffInside(.refused(error), error)
            }
        case .discarding: return .accepted
        case .asking, .broken, .ended: return .refused
        }
    }

    func leavesSharedConnection() -> Bool {
        guard case .receiving = phase, run.canAskForRest, decoder == nil else { return false }
        phase = .broken(.elsewhere)
        return true
    }

    private func append(_ bytes: UnsafeRawBufferPointer) throws(TransferError) {
        task.progress.transferred(bytes.count)
        try writer.append(bytes)
        try judgeSize()
    }

    private func breakOffInside(_ ending: Ending, _ error: TransferError) -> BodyVerdict {
        phase = .broken(ending)
        transaction.failure = error
        return .refused
    }

    private func judgeFirstByte() throws(TransferError) {
        judgesFirstByte = false
        if let head = task.response, let error = session.delegate.downloadTask(task, validate: head, isEmpty: false) {
            throw error
        }
    }

    private func judgeSize() throws(TransferError) {
        if file.version.isDecoded, writer.position > Self.smallestGrown,
            writer.position / Self.largestGrowth > received
        {
            throw TransferError(.tooLarge, "what the server sent coded grows past all measure when decoded")
        }
        if let maximum = transaction.request.maximumBodySize, writer.position > maximum {
            throw TransferError(.tooLarge, "the file grew past the \(maximum) bytes allowed")
        }
    }

    func didEnd(_ error: TransferError?) {
        let before = phase
        if case .ended = before { return }
        assert(awaitsEnd, "an end is seen twice")
        awaitsEnd = false
        // What it reached counts from here on.
        start = position
        isWriting = false
        if endCheck == .underWay { endCheck = .done }
        phase = .asking
        let undecoded = decoder?.failureAtEnd()
        decoder = nil
        switch (before, error) {
        case (.ended, _): break
        case (.broken(let ending), _): run.worker(self, did: ending)
        // A digest tells whether it is whole; some servers end every connection so.
        case (.receiving(nil), let error?) where error.isIncompleteClose && run.destination?.digest != nil:
            run.worker(self, did: undecoded.map { .failed($0) } ?? .body(end: nil))
        case (_, let error?): run.worker(self, did: .failed(error))
        case (.discarding(let ending), nil): run.worker(self, did: ending)
        case (.receiving(let end), nil): run.worker(self, did: undecoded.map { .failed($0) } ?? .body(end: end))
        case (.asking, nil):
            run.worker(self, did: .failed(TransferError(.truncated, "the connection ended without an answer")))
        }
    }
}
