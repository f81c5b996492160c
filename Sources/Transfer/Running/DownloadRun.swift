import Curl
import Glibc

/// A download task at work on its loop: one connection at first, more where they make it faster, until the file is
/// whole or nothing more can be done.
///
/// Lives on its loop's thread. Who fetches which bytes is ``SegmentTable``'s to say, how many do ``ConnectionGrowth``'s;
/// each connection is a ``SegmentWorker``.
final class DownloadRun: TransactionRun, ConfirmableRun, FileRun {
    let task: DownloadTask
    unowned let core: LoopCore
    let file: DownloadFile
    private let session: Session

    /// The first brings what nobody else does; those behind it came later.
    private(set) var workers: [SegmentWorker] = []
    private var lastNumber = 0
    /// The source whose version the part is of.
    private var home: Int
    /// Once the size is known.
    private var table: SegmentTable?
    private var growth: ConnectionGrowth
    private var line: LineMembership?
    private var borrowed: BorrowedConnections
    private var timer: Int?
    private var later: Int?
    /// Timers of connections that rest between two answers, by the connection's number.
    private var rests: [Int: Int] = [:]
    private var load = ThreadLoad()
    private(set) var isSuspended = false
    private(set) var isEnded = false

    private(set) var sources: DownloadSources
    /// What other sources than the part's have shown, by URL.
    private var versions: [String: ResourceVersion] = [:]
    private static let versionLimit = 256
    /// Why the first source could not be used.
    private var firstFailure: TransferError?
    /// A source that was left for others since it has another version than what is here, and what showed that.
    private var changed: (source: DownloadSource, reason: String)?

    private var restarts = 0
    private static let restartLimit = 2
    /// The server does not honour its own tag in `If-Range`.
    private(set) var isConditionUseless = false
    /// The server has said or shown that it sends ranges.
    private var takesRanges = false
    /// Several connections have shown different versions, or the server sends no ranges.
    private var isSingle = false
    var destination: FileDestination?

    /// Seconds that pass until a request for a range is answered.
    private var setUp = 0.0
    /// The fastest connection's, in bytes a second.
    private var bestRate = 0.0
    private var slow = SlowConnections()
    /// Milliseconds; no connection is added before.
    private var addsFrom: Int64 = 0
    /// Occasions on which connections brought nothing, one after another.
    private var losses = 0
    /// The server answered one of several connections with a refusal.
    private var wasRefused = false
    /// Several connections have been at work at once.
    private var wasShared = false
    /// A server that may have taken the last connection for one of several has been asked once more.
    private var hasAskedLater = false

    /// Bytes that have to be missing for a second connection.
    private static let smallestShared: Int64 = 4 << 20
    /// Doublings of the time until a connection is added again, after so many occasions in a row: 32 seconds.
    private static let lossLimit = 5
    /// Milliseconds that a server is left alone that refused a second connection.
    private static let secondThought: Int64 = 500
    /// The longest that a run waits for a server by itself; its task may wait longer.
    private static let longestThought: Int64 = 5_000
    /// The reason for a restart where a mirror brings the whole.
    private static let fromMirror = "the file is fetched from a mirror"
    /// Milliseconds between looks where one connection is left as it is.
    private static let calmInterval: Int64 = 1_000

    /// - Parameter file: what is here of it; absent: what an earlier attempt left.
    init(task: DownloadTask, core: LoopCore, file: DownloadFile? = nil) {
        self.task = task
        self.core = core
        session = task.session
        borrowed = BorrowedConnections(of: task)
        self.file = file ?? DownloadFile(task: task, core: core)
        growth = ConnectionGrowth(task.originalRequest.segments)
        sources = DownloadSources(task.originalRequest, wrong: task.mismatches.wrong)
        home = sources.own.number
        // What several connections brought was wrong as a whole.
        isSingle = !task.mismatches.isEmpty
    }

    /// Goes on with an answer that another run began to take; ``take(_:at:)`` follows.
    convenience init(task: DownloadTask, core: LoopCore, takingOver transaction: Transaction) {
        self.init(task: task, core: core)
        workers = [SegmentWorker(self, takingOver: transaction)]
        _ = workers[0].transaction
    }

    func take(_ head: ResponseHead, at url: CurlURL) -> Transaction.HeadVerdict {
        workers.first?.take(head, at: url) ?? .discard
    }

    // MARK: From the task

    func start() {
        do throws(TransferError) {
            try file.reopen()
        } catch {
            return fail(error)
        }
        let worker = SegmentWorker(self)
        workers = [worker]
        if isSuspended { worker.transaction.pause(.suspended) }
        // Every byte came in an earlier life.
        if let total = file.version.total, file.count == total, total > 0 { return finish(worker) }
        task.progress.setConnections(1)
        do throws(TransferError) {
            try prepareJoining(worker)
        } catch {
            return broke(worker, error)
        }
        askForRest(worker)
    }

    /// Goes on with mirrors in the place of a file server.
    ///
    /// - Parameters:
    ///   - error: why that one is left.
    ///   - isSuspended: whether the task is.
    func standIn(after error: TransferError, isSuspended: Bool) {
        firstFailure = error
        self.isSuspended = isSuspended
        let worker = SegmentWorker(self)
        workers = [worker]
        if isSuspended { worker.transaction.pause(.suspended) }
        task.progress.setConnections(1)
        begin(worker, mayJoin: file.mayBeJoined, Self.fromMirror)
    }

    /// Finds out before the first answer whether the destination knows a digest: under one, the bytes that are here are
    /// gone on with whatever the server says of its version, and another source may do that too.
    ///
    /// After a mismatch, what is missing may come from another source where pieces are checked one by one.
    private func prepareJoining(_ worker: SegmentWorker) throws(TransferError) {
        guard file.count > 0, file.target != nil else { return }
        if task.mismatches.isEmpty {
            guard try file.isDigestKnown() else { return }
        }
        destination = try file.place(
            ResourceMetadata(nil, file.version), total: file.version.total, ofMirror: worker.source.number > 0)
        let isOwn =
            file.version.validator.ifRange != nil
            && file.version.origin == ResumeData.resource(of: worker.source.request.url)
        if !task.mismatches.isEmpty, file.isChecked, !isOwn { file.join() }
    }

    /// Has a worker fetch the first bytes that are missing.
    private func askForRest(_ worker: SegmentWorker) {
        let gap = file.version.total.flatMap { file.written.gaps(in: 0..<$0).first }
        ask(worker, from: gap?.lowerBound ?? file.front, to: gap?.upperBound)
    }

    /// Has a worker ask for bytes. Every request for a part of the file leads through here: nothing is asked for where
    /// nothing is missing.
    private func ask(_ worker: SegmentWorker, from start: Int64, to end: Int64?) {
        if hasEverything { return finish(worker) }
        if let end, start >= end { return goOn(worker) }
        worker.ask(from: start, to: end)
    }

    /// Bytes that are neither written nor gathered; `nil` while the size is not known.
    private var missing: Int64? {
        guard let total = file.version.total ?? table?.total, total > 0 else { return nil }
        return max(0, total - file.count - workers.reduce(0) { $0 + Int64($1.writer.pending) })
    }

    /// Whether every byte of the file is written or gathered.
    private var hasEverything: Bool { missing == 0 && !file.version.isDecoded }

    func transaction(_ number: Int) -> Transaction? { workers.first { $0.number == number }?.transaction }

    func cancel() { fail(.cancelled) }

    func suspend() {
        isSuspended = true
        for worker in workers { worker.transaction.pause(.suspended) }
    }

    func goOn() {
        isSuspended = false
        for worker in workers { worker.transaction.resume(.suspended) }
        checkInvariants()
    }

    /// A checkpoint that covers `count` bytes has been written down.
    func confirm(_ count: Int64) {
        file.confirm(count)
        guard !file.isAhead else { return }
        for worker in workers { worker.transaction.resume(.checkpoint) }
        checkInvariants()
    }

    func flushGathered() {
        for worker in workers where !isEnded { _ = flush(worker) }
        checkInvariants()
    }

    func diskDidMove(_ error: TransferError?) {
        if isEnded { return }
        if let error, let worker = workers.first { return broke(worker, error) }
        guard !file.isBehind else { return }
        for worker in workers where !worker.writer.isBlocked { worker.transaction.resume(.disk) }
        checkInvariants()
    }

    // MARK: For the connections

    /// Whether several connections bring the file.
    var isShared: Bool { workers.count > 1 }

    /// Whether the server can be asked for the rest of an answer that is broken off: it sends parts, and a strong
    /// validator ties them to what is here.
    var canAskForRest: Bool {
        guard let first = workers.first, let url = first.transaction.url else { return false }
        return takesRanges && isVouched(by: url) && file.version.validator.ifRange != nil && !isConditionUseless
    }

    /// Whether the validator is one that this very URL sent, so that the server can be asked by it.
    func isVouched(by url: CurlURL) -> Bool {
        guard let origin = file.version.origin else { return false }
        return origin == ResumeData.resource(of: url.text)
    }

    /// What is known of the resource at this very URL.
    func version(at url: CurlURL) -> ResourceVersion? {
        if isVouched(by: url) { return file.version }
        return versions.isEmpty ? nil : versions[ResumeData.resource(of: url.text)]
    }

    /// A source brings bytes of what it says is `version`.
    func note(_ version: ResourceVersion, at url: CurlURL) {
        if isVouched(by: url) { return file.adopt(version) }
        file.join()
        if versions.count < Self.versionLimit { versions[ResumeData.resource(of: url.text)] = version }
    }

    /// Whether a timer will ask again.
    var isWaiting: Bool { later != nil || !rests.isEmpty }

    /// Forgets all that is there of the file; what `worker` brings is the first of it.
    ///
    /// - Parameter reason: told where something was there.
    func startOver(_ worker: SegmentWorker, _ reason: String) {
        if file.count > 0 { session.delegate.downloadTask(task, didRestartBecause: reason) }
        worker.writer.drop()
        file.startOver()
        table = nil
        stopTimer()
    }

    /// The only connection begins to receive: from here on others may join it.
    func didBegin(_ worker: SegmentWorker, total: Int64?, _ head: ResponseHead) {
        guard let total = total ?? file.version.total, total > 0 else { return }
        if worker.end == nil { worker.cut(at: total) }
        if file.isJoinable, task.mismatches.isEmpty, let url = worker.transaction.url {
            sources.add(duplicates: head, at: url)
        }
        if table?.total != total { table = SegmentTable(total: total) }
        table?.put(worker.number, on: worker.start..<max(worker.start, worker.end ?? total))
        let mayTakeRanges = head.status == 206 || head.value(of: "accept-ranges")?.lowercased() != "none"
        takesRanges = takesRanges || head.status == 206 || head.value(of: "accept-ranges")?.lowercased() == "bytes"
        let hasChoice = sources.all.count > 1 && file.isJoinable
        let isShareable =
            (mayTakeRanges || sources.all.count > 1) && task.originalRequest.segments.most > 1
            && total - file.count >= Self.smallestShared
        guard timer == nil, hasChoice || isShareable else { return }
        _ = load.isBusy()
        if line == nil, task.originalRequest.segments.isAutomatic, let host = worker.transaction.url?.origin {
            line = LineMembership(task, at: host, now: core.now.milliseconds)
        }
        look(in: task.originalRequest.segments.isAutomatic ? ConnectionGrowth.interval : 0)
    }

    /// An exchange ended. Never from within one of libcurl's callbacks.
    func worker(_ worker: SegmentWorker, did ending: SegmentWorker.Ending) {
        if isEnded { return }
        defer { checkInvariants() }
        if let answered = worker.answeredAt {
            let seconds = Double(worker.askedAt.milliseconds(until: answered)) / 1000
            setUp = setUp == 0 ? seconds : (3 * setUp + seconds) / 4
            // What is over before anyone looks at it is known by this alone.
            bestRate = max(bestRate, worker.meanRate)
            worker.source.note(rate: worker.meanRate)
        }
        if ending.leavesBytesAsTheyAre, hasEverything {
            // Complete bytes are never thrown away: nothing is left to ask this server, or another one, for.
            return finish(worker)
        }
        switch ending {
        case .body(let end): bodyEnded(worker, end)
        case .claim: goOn(worker)
        case .replaced: replace(worker)
        case .elsewhere: again(worker)
        case .whole: finish(worker)
        case .askUnconditionally:
            isConditionUseless = true
            ask(worker, from: worker.start, to: worker.end)
        case .confirmEnd: worker.confirmEnd()
        case .changed where isShared:
            // What the others bring is all of one version, and the answer may be a page that says no more than that
            // there are too many of us.
            if sources.all.count > 1, file.isJoinable { worker.source.drop() } else { isSingle = true }
            dismiss(worker)
        // A mirror that has brought nothing has another version than the bytes that are here.
        case .changed(let reason) where sources.all.count > 1 && worker.received == 0: leave(worker, reason)
        case .askAgain where mayBeTakenForOneOfSeveral, .changed where mayBeTakenForOneOfSeveral: askLater(worker)
        case .askAgain(let reason), .changed(let reason), .startOver(let reason): restart(worker, reason)
        case .useless(let reason): leave(worker, reason)
        case .failed(let failure):
            let error = failure.named(by: worker.transaction.url?.origin)
            if worker.isLedAstray(by: error) {
                goBack(worker)
            } else if isShared {
                lose(worker, error)
            } else if error.code == .truncated, worker.narrowOverlap() {
                again(worker)
            } else if !asksLater(worker, error), !turn(from: worker, error), !beginAnew(from: worker) {
                if restarts == 0, worker.askedFrom ?? 0 > 0, [400, 501].contains(error.httpStatus) {
                    restarts += 1
                    worker.askForWhole("the server refuses to send a part (\(error.httpStatus ?? 0))")
                } else {
                    broke(worker, firstFailure ?? error)
                }
            }
        case .refused(let error):
            if error.code == .checksumMismatch {
                // It has another file than the one that is wanted.
                worker.source.drop()
                if isShared { return dismiss(worker) }
                if turn(from: worker, error) || beginAnew(from: worker) { return }
            }
            broke(worker, error.code == .allowanceUsedUp ? error : firstFailure ?? error)
        }
    }

    /// Whether another source may go on with the bytes that are here.
    func canDoWithout(_ source: DownloadSource) -> Bool {
        guard sources.all.count > 1, file.count > 0, file.isJoinable else { return false }
        return sources.best(at: core.now.milliseconds, users: [:], where: { $0 !== source }) != nil
    }

    /// Leaves a source alone that sends nothing that can be joined to the bytes that are here; another source goes on
    /// with them.
    private func leave(_ worker: SegmentWorker, _ reason: String) {
        worker.source.drop()
        if sources.all.count == 1 { isSingle = true }
        if isShared { return dismiss(worker) }
        let next = sources.best(at: core.now.milliseconds, users: [:], where: { $0 !== worker.source })
        guard file.count > 0, file.isJoinable, let next, flush(worker) else {
            if !beginAnew(from: worker) { restart(worker, reason) }
            return
        }
        if firstFailure == nil { changed = changed ?? (worker.source, reason) }
        hand(worker, to: next, mayJoin: true)
    }

    /// Nobody else goes on with the bytes that are here: they make way for the version that the first source has which
    /// was left for that.
    ///
    /// - Returns: whether that source is asked for the whole.
    private func beginAnew(from worker: SegmentWorker) -> Bool {
        guard let changed, changed.source !== worker.source, flush(worker) else { return false }
        self.changed = nil
        hand(worker, to: changed.source, mayJoin: false, changed.reason)
        return true
    }

    /// Why the source failed that what is here is from, where that may pass.
    private var passingFailure: TransferError? {
        guard let firstFailure, file.count > 0, !task.originalRequest.leavesFailingSource else { return nil }
        return RetryClass(firstFailure).isLasting ? nil : firstFailure
    }

    /// The place that its source led to refuses it: the source may lead to another one by now.
    private func goBack(_ worker: SegmentWorker) {
        // What comes from elsewhere is held to what is here by a digest, or by its overlap with all of it.
        let mayBeAsked = !isShared || file.isJoinable
        addsFrom = mayBeAsked ? core.now.milliseconds + 1_000 : .max
        guard mayBeAsked else { return dismiss(worker) }
        guard flush(worker) else { return }
        worker.askSource()
    }

    /// A server that refused one of several connections may not have noticed yet that only one is left, or that an
    /// answer was broken off to ask for a part instead.
    ///
    /// - Returns: whether it is asked once more.
    private func asksLater(_ worker: SegmentWorker, _ error: TransferError) -> Bool {
        guard wasRefused || isConditionUseless, !hasAskedLater, let status = error.httpStatus,
            [403, 429, 503].contains(status)
        else { return false }
        let wait = max(Self.secondThought, RetryPolicy.hold(retryAfter: error.retryAfter ?? 0))
        guard wait <= Self.longestThought else { return false }
        askLater(worker, after: wait)
        return true
    }

    /// Whether an answer that brings no part may mean that there are too many connections: the server may not have
    /// noticed yet that only one is left. Until it has been asked once more, the bytes that are here are kept.
    var mayBeTakenForOneOfSeveral: Bool { wasShared && !isShared && !hasAskedLater && file.count > 0 }

    /// Asks once more, over one connection, when the server has had time to notice that the others are gone.
    private func askLater(_ worker: SegmentWorker, after wait: Int64 = secondThought) {
        hasAskedLater = true
        isSingle = true
        later = core.after(milliseconds: wait) { [unowned self] in
            later = nil
            again(worker)
        }
    }

    /// libcurl saw a complete body; whether it is, our own count says.
    private func bodyEnded(_ worker: SegmentWorker, _ end: Int64?) {
        let writer = worker.writer
        do throws(TransferError) {
            try writer.endOfBody()
            if let end, writer.position < end {
                let error = TransferError(.truncated, "the body ended at \(writer.position) of \(end) bytes")
                return isShared ? lose(worker, error) : fail(error)
            }
            if let claimed = worker.end, writer.position >= claimed { return goOn(worker) }
            // A part shorter than what was asked for is legal: ask for the rest, as long as it brings something.
            guard worker.end != nil || worker.isPart else { return finish(worker) }
            guard writer.position > worker.haveBefore || worker.narrowOverlap() else {
                // Nobody says how long it is, and nothing follows what is here.
                if file.version.total == nil, worker.transaction.bodyBegun { return finish(worker) }
                let error = TransferError(.truncated, "the server sends nothing after byte \(writer.position)")
                return isShared ? lose(worker, error) : fail(error)
            }
            try writer.flush()
            askOn(worker, from: max(worker.haveBefore, worker.start))
        } catch {
            broke(worker, error)
        }
    }

    /// Asks for the rest of a claim of which a part came, or has that wait where the parts are next to nothing.
    private func askOn(_ worker: SegmentWorker, from start: Int64) {
        let rest = worker.restAfterAnswer()
        guard rest > 0 else { return ask(worker, from: start, to: worker.end) }
        endRest(of: worker)
        rests[worker.number] = core.after(milliseconds: rest) { [unowned self, weak worker] in
            guard let worker else { return }
            rests[worker.number] = nil
            guard workers.contains(where: { $0 === worker }), !worker.isUnderWay else { return }
            ask(worker, from: start, to: worker.end)
            checkInvariants("askOn")
        }
    }

    private func endRest(of worker: SegmentWorker) {
        if let rest = rests.removeValue(forKey: worker.number) { core.cancelTimer(rest) }
    }

    // MARK: Sharing the work

    /// A connection has brought what it was to bring.
    private func goOn(_ worker: SegmentWorker) {
        guard let total = table?.total else { return finish(worker) }
        table?.release(worker.number)
        losses = 0
        worker.source.succeed()
        // The last block goes to the disk with the rest of the file.
        if file.count + Int64(worker.writer.pending) >= total || hasEverything { return finish(worker) }
        guard flush(worker) else { return }
        if let range = range(for: worker) {
            ask(worker, from: range.lowerBound, to: range.upperBound)
        } else if !isEnded {
            dismiss(worker)
        }
    }

    /// - Parameter isFaster: whether the worker's source is expected to be far faster than the others.
    /// - Returns: what it is to fetch next; `nil` where the others need no help.
    private func range(for worker: SegmentWorker, isFaster: Bool = false) -> Range<Int64>? {
        note()
        let expected = expectedRate(of: worker)
        let rate = isFaster && worker.source.rate == 0 ? 2 * SegmentTable.slowness * expected : expected
        guard
            let work = table?.next(
                for: worker.number, written: file.written, connections: max(growth.target, workers.count), rate: rate,
                setUp: setUp)
        else { return nil }
        keepToClaims()
        switch work {
        case .none: return nil
        case .range(let range): return range
        case .takeOver(let victim, let range):
            if let other = workers.first(where: { $0.number == victim }) { dismiss(other) }
            return isEnded ? nil : range
        }
    }

    /// Bytes a second that it is likely to bring: what is not known of it is taken to be as with most of the others at its
    /// source, or as its source was, or as with most of all.
    private func expectedRate(of worker: SegmentWorker) -> Double {
        func usual(_ rates: [Double]) -> Double? {
            let known = rates.filter { $0 > 0 }.sorted()
            return known.isEmpty ? nil : known[known.count / 2]
        }
        if worker.pace.rate > 0 { return worker.pace.rate }
        if let rate = usual(workers.filter { $0.source === worker.source }.map(\.pace.rate)) { return rate }
        if worker.source.rate > 0 { return worker.source.rate }
        return usual(workers.map(\.pace.rate)).map { min(bestRate, $0) } ?? bestRate
    }

    private func keepToClaims() {
        for worker in workers { if let claim = table?.claims[worker.number] { worker.cut(at: claim.end) } }
    }

    /// Its connection broke, and others are at work.
    ///
    /// - Parameter isGivenUp: another connection would do no better.
    private func lose(_ worker: SegmentWorker, _ error: TransferError, isGivenUp: Bool = false) {
        let hasProgressed = worker.start > worker.haveBefore
        if hasProgressed, !isGivenUp, error.code != .httpStatus {
            if flush(worker) { askOn(worker, from: worker.start) }
            return
        }
        let now = core.now.milliseconds
        let rest = RetryPolicy.hold(retryAfter: error.retryAfter ?? 0)
        let isLast = !workers.contains { $0 !== worker && $0.source === worker.source }
        dismiss(worker)
        if isLast, sources.all.count > 1 {
            // The others bring what it would have brought.
            return worker.source.fail(at: now, rest: rest)
        }
        if error.code == .httpStatus { wasRefused = true }
        // Several that are lost at once are one occasion: the places may be another's for a moment only.
        if now >= addsFrom { losses += 1 }
        addsFrom = max(addsFrom, now + max(rest, 1_000 << Int64(min(losses, Self.lossLimit))))
    }

    /// The last connection failed: another source may go on.
    ///
    /// - Returns: whether one does.
    private func turn(from worker: SegmentWorker, _ error: TransferError) -> Bool {
        guard sources.all.count > 1, error.code != .cancelled else { return false }
        let now = core.now.milliseconds
        worker.source.fail(at: now, rest: RetryPolicy.hold(retryAfter: error.retryAfter ?? 0))
        firstFailure = firstFailure ?? error
        guard (try? worker.writer.flush()) != nil else { return false }
        guard file.isLeft(after: error),
            let next = sources.best(at: now, users: [:], where: { $0 !== worker.source })
        else { return false }
        hand(worker, to: next, mayJoin: file.mayBeJoined)
        return true
    }

    /// Another source brings what the last connection would have brought.
    ///
    /// - Parameters:
    ///   - mayJoin: what is here of the file is gone on with; otherwise it makes way for the whole, once that comes.
    ///   - reason: why it makes way.
    private func hand(
        _ worker: SegmentWorker, to next: DownloadSource, mayJoin: Bool,
        _ reason: String = fromMirror
    ) {
        lastNumber += 1
        let other = SegmentWorker(self, beside: worker, at: next, number: lastNumber)
        workers.append(other)
        table?.release(worker.number)
        workers.removeAll { $0 === worker }
        worker.stop()
        home = next.number
        other.transaction.isQuiet = false
        begin(other, mayJoin: mayJoin, reason)
    }

    /// Has another source's worker ask for what is missing, or for the whole.
    private func begin(_ worker: SegmentWorker, mayJoin: Bool, _ reason: String) {
        if mayJoin, file.count > 0 {
            file.join()
            askForRest(worker)
        } else {
            worker.askForWhole(reason)
        }
    }

    /// It has brought too little: what is missing of its claim is asked for elsewhere, or over another connection.
    private func replace(_ worker: SegmentWorker) {
        let isAlone = !workers.contains { $0 !== worker && $0.source === worker.source }
        guard isShared, isAlone || worker.start == worker.haveBefore else { return again(worker) }
        lose(worker, TransferError(.stalled, "the server sends nothing"), isGivenUp: true)
    }

    /// Hands what a worker has gathered to the disk.
    ///
    /// - Returns: whether it was taken; otherwise the run has gone on from that.
    private func flush(_ worker: SegmentWorker) -> Bool {
        do throws(TransferError) {
            try worker.writer.flush()
            return true
        } catch {
            broke(worker, error)
            return false
        }
    }

    /// Asks for the rest of its claim over another connection.
    private func again(_ worker: SegmentWorker) {
        guard flush(worker) else { return }
        ask(worker, from: worker.start, to: worker.end)
    }

    /// Lets a connection go; others are at work.
    private func dismiss(_ worker: SegmentWorker) {
        guard flush(worker) else { return }
        table?.release(worker.number)
        workers.removeAll { $0 === worker }
        worker.stop()
        endRest(of: worker)
        table?.extend(written: file.written) { number in workers.first { $0.number == number }?.reach }
        keepToClaims()
        borrowed.giveBack(worker.number, at: worker.transaction.url?.origin)
        task.progress.setConnections(workers.count)
    }

    // MARK: Looking after them

    private func look(in milliseconds: Int64) {
        timer = core.after(milliseconds: milliseconds) { [unowned self] in
            timer = nil
            look()
            // Not where room was offered: two downloads that do not take it would offer it to each other for ever.
            if !isEnded, growth.isWaiting, let origin = workers.first?.transaction.url?.origin {
                session.expectConnection(at: origin, for: task)
            }
            checkInvariants("look")
        }
    }

    private func stopTimer() {
        if let timer { core.cancelTimer(timer) }
        timer = nil
    }

    private func look() {
        guard table != nil, let left = missing else { return }
        if !isSuspended, canShare {
            note()
            let now = core.now.milliseconds
            let target = wantedConnections(now, left: left)
            let wanted = borrowed.wanted
            if workers.count > target || !wanted.isEmpty {
                for _ in 0..<(wanted.isEmpty ? workers.count - target : 1) where isShared && !isEnded {
                    let slowest = workers.filter { wanted.isEmpty || wanted.contains($0.number) }
                        .min { $0.pace.rate < $1.pace.rate }
                    if let slowest { dismiss(slowest) }
                }
            } else if now >= addsFrom, isWorthSharing(left) {
                addConnections(upTo: target)
            }
            let better = betterSource(now, left: left)
            // A single connection that is slow moves to a better source, where there is one, instead of being replaced.
            if isShared || better == nil { replaceSlow(now) }
            if let better, !isEnded { changeSource(to: better, now) }
        }
        if isEnded || timer != nil { return }
        let calm = isShared || growth.isWaiting ? ConnectionGrowth.longInterval : Self.calmInterval
        look(in: growth.isTrying && canShare ? ConnectionGrowth.interval : calm)
    }

    /// Adds connections; after a loss one at a time, so that a server which wants few is asked seldom.
    private func addConnections(upTo target: Int) {
        if losses > 0 || wasRefused {
            if workers.count < target, workers.allSatisfy(\.isReceiving) { _ = add() }
            return
        }
        var addition = Addition.added
        while workers.count < target, addition == .added { addition = add() }
        if !isEnded { growth.cap(to: workers.count, isFull: addition == .noRoom) }
    }

    /// The host that this download waits for a connection of has room for one.
    func mayBorrow(at origin: String) {
        if timer != nil, !isEnded {
            stopTimer()
            look()
            checkInvariants("mayBorrow")
        }
        // What is left of the room is another's.
        session.offerConnection(at: origin)
    }

    /// Whether what is left is worth another connection: a few seconds' bytes of a slow line, or as many as a fast one
    /// brings in a moment.
    private func isWorthSharing(_ left: Int64) -> Bool {
        let rate = workers.reduce(0) { $0 + $1.pace.rate }
        return left >= Self.smallestShared || (rate > 0 && Double(left) >= 3 * rate)
    }

    /// - Returns: how many connections the line is worth.
    private func wantedConnections(_ now: Int64, left: Int64) -> Int {
        guard growth.segments.isAutomatic else { return growth.target }
        let view =
            sources.all.count == 1
            ? line?.look(connections: workers.count, isTrying: growth.isTrying, now: now) : nil
        let answers = workers.compactMap { worker in
            worker.answeredAt.map { Int64(clamping: worker.askedAt.milliseconds(until: $0)) }
        }
        let before = growth.lesson
        let target = growth.look(
            LineSight(
                now: now, received: view?.received ?? task.progress.transferredBytes,
                connections: workers.compactMap { worker in
                    worker.begunAt.map {
                        LineSight.Connection(
                            number: worker.number, age: now - $0.milliseconds, received: worker.received)
                    }
                },
                others: view?.others ?? 0, left: left, setUp: answers.min() ?? Int64(setUp * 1000),
                isBusy: load.isBusy(),
                isHeld: workers.contains { $0.transaction.isHeldBack(now: core.now) },
                lesson: view?.lesson, mayTry: view?.mayTry ?? true))
        if sources.all.count == 1, let lesson = growth.lesson, lesson != before, lesson != view?.lesson {
            line?.teach(lesson, now: now)
        }
        return target
    }

    /// Whether several connections may bring the file: all can be held to one version.
    private var canShare: Bool {
        guard !isSingle, let first = workers.first, let url = first.transaction.url else { return false }
        if file.isJoinable { return true }
        guard isVouched(by: url), first.transaction.speaksHTTP1 else { return false }
        let validator = file.version.validator
        return isConditionUseless ? validator.strongEntityTag != nil : validator.ifRange != nil
    }

    /// Notes where the connections stand.
    private func note() {
        let now = core.now.milliseconds
        for worker in workers {
            worker.notePace(at: now)
            table?.move(worker.number, to: worker.position, rate: worker.pace.rate)
            bestRate = max(bestRate * 0.995, worker.pace.rate)
            worker.source.note(rate: worker.pace.rate)
        }
    }

    /// What became of the wish for one connection more.
    private enum Addition { case added, noWork, noRoom }

    /// - Parameter wanted: the source to ask; absent, the best one.
    /// - Returns: whether there was work for one more, and whether the host has room for it.
    private func add(at wanted: DownloadSource? = nil) -> Addition {
        var users: [Int: (count: Int, rate: Double)] = [:]
        for worker in workers {
            let known = users[worker.source.number] ?? (0, 0)
            users[worker.source.number] = (known.count + 1, known.rate + worker.pace.rate)
        }
        let mayJoin = file.isJoinable
        let best = sources.best(at: core.now.milliseconds, users: users) { [home] in mayJoin || $0.number == home }
        guard let source = wanted ?? best, let first = workers.first else { return .noWork }
        let like = workers.first { $0.source === source }
        guard let origin = like?.transaction.url?.origin ?? (try? CurlURL(source.request.url).origin) else {
            return .noWork
        }
        guard borrowed.borrow(lastNumber + 1, at: origin) else { return .noRoom }
        lastNumber += 1
        let worker =
            like.map { SegmentWorker(self, following: $0, number: lastNumber) }
            ?? SegmentWorker(self, beside: first, at: source, number: lastNumber)
        workers.append(worker)
        var range = range(for: worker)
        // A rest that is too small to share is taken over from a source that would need long for it.
        if range == nil, !isEnded, wanted != nil { range = self.range(for: worker, isFaster: true) }
        guard let range, !isEnded else {
            if !isEnded { dismiss(worker) }
            return .noWork
        }
        wasShared = true
        task.progress.setConnections(workers.count)
        ask(worker, from: range.lowerBound, to: range.upperBound)
        return .added
    }

    /// A source that would bring what is left far sooner than those at work, as far as is known now.
    private func betterSource(_ now: Int64, left: Int64) -> DownloadSource? {
        guard left > 0, file.isJoinable, sources.all.count > 1 else { return nil }
        return sources.better(
            at: now, than: workers.reduce(0) { $0 + ($1.isReceiving ? $1.pace.rate : 0) }, left: left,
            users: Set(workers.map(\.source.number)), isShared: isShared, mayReturn: takesRanges)
    }

    /// Once those at work have been watched for long enough, a better source joins them, or takes the place of the last.
    private func changeSource(to source: DownloadSource, _ now: Int64) {
        guard let first = workers.first,
            workers.allSatisfy({
                $0.watchedTime(at: now) >= DownloadSource.firstPatience && $0.transaction.pauses.isEmpty
            })
        else { return }
        if isShared {
            _ = add(at: source)
        } else if flush(first) {
            // However little it was: it is known now. What has not answered yet may still be fast.
            if first.hasBegun {
                first.source.note(rate: max(1, first.pace.rate))
            } else {
                first.source.leave()
            }
            if source.rate > 0 { sources.noteReturn() }
            hand(first, to: source, mayJoin: true)
        }
    }

    /// What a connection that is far slower than the others has yet to bring is asked for anew.
    private func replaceSlow(_ now: Int64) {
        for worker in workers where !isEnded && worker.transaction.pauses.isEmpty {
            let others = workers.filter { $0 !== worker }
            let neighbours = others.filter { $0.source === worker.source }
            let subject = SlowConnections.Subject(
                number: worker.number,
                watched: worker.watchedTime(at: now),
                rate: worker.isReceiving ? worker.pace.rate : 0,
                rest: (worker.end ?? worker.position) - worker.position,
                hasNeighbour: !neighbours.isEmpty, isShared: isShared,
                neighbours: neighbours.map(\.pace.rate).max() ?? 0, others: others.map(\.pace.rate).max() ?? 0)
            if slow.replaces(subject, best: bestRate, setUp: setUp, now: now) {
                if !worker.hasBegun { worker.source.leave() }
                worker.breakOff(.replaced)
            }
        }
    }

    // MARK: The end

    /// What is here is of no use: the whole is asked for once more, over one connection.
    private func restart(_ worker: SegmentWorker, _ reason: String) {
        // A mirror with another file discards nothing that the source which failed may go on with later.
        if worker.received == 0, let error = passingFailure { return fail(error) }
        if isShared { isSingle = true }
        let worker = member(for: worker)
        letGo(allBut: worker)
        // What it is being sent must not come to what is begun anew; its end leads here again.
        if worker.isUnderWay { return worker.breakOff(.startOver(reason: reason)) }
        restarts += 1
        guard restarts <= Self.restartLimit else { return fail(TransferError(.remoteChanged, reason)) }
        startOver(worker, reason)
        endRest(of: worker)
        worker.transaction.isQuiet = false
        worker.ask(from: 0, to: nil)
    }

    /// `worker`, or, where it has been let go meanwhile, one that asks in its place.
    private func member(for worker: SegmentWorker) -> SegmentWorker {
        guard worker.isStopped else { return worker }
        lastNumber += 1
        let other = SegmentWorker(self, beside: worker, at: worker.source, number: lastNumber)
        workers.append(other)
        return other
    }

    private func letGo(allBut worker: SegmentWorker?) {
        for other in workers where other !== worker { other.stop() }
        workers.removeAll { $0 !== worker }
        borrowed.giveBackAll()
        task.progress.setConnections(workers.count)
    }

    private func finish(_ worker: SegmentWorker) {
        do throws(TransferError) {
            if destination == nil {
                destination = try file.place(worker.undecided ?? ResourceMetadata(nil, file.version), total: nil)
            }
            for other in workers where other !== worker { try other.writer.flush() }
            let size = file.version.total ?? max(worker.writer.position, file.front)
            let part = try file.complete(size: size, flushing: worker.writer) { [unowned self] in
                if !isEnded { finish(worker) }
            }
            guard let part else { return }
            // However the counts came about: what has a hole gets no name.
            guard file.front >= size else {
                throw TransferError(.remoteChanged, "of \(size) bytes only the first \(file.front) are here in a row")
            }
            guard let destination else { throw TransferError(.internal, "a file without a destination") }
            if !task.mismatches.isEmpty { task.setSoleSource(worker.source.request.url) }
            end()
            task.progress.setTotal(size)
            session.publish(task, part, size: size, destination: destination, file.verification())
        } catch {
            broke(worker, error)
        }
    }

    /// What is there is of no use any more, or nothing more can be done.
    private func broke(_ worker: SegmentWorker, _ error: TransferError) {
        if error.code == .remoteChanged { restart(worker, error.message) } else { fail(error) }
    }

    private func fail(_ error: TransferError) {
        if isEnded { return }
        // Bytes that are in memory still may spare fetching them again; if the disk does not want them, so be it.
        if error.code != .remoteChanged { for worker in workers { try? worker.writer.flush() } }
        let part = error.code == .remoteChanged ? nil : file.part
        let (version, isAtRest) = (file.version, file.isAtRest)
        end()
        session.fail(task, error, part: part, version: version, isAtRest: isAtRest)
    }

    private func end() {
        isEnded = true
        line?.leave()
        stopTimer()
        if let later { core.cancelTimer(later) }
        for rest in rests.values { core.cancelTimer(rest) }
        rests = [:]
        // What a caller still holds of this outlives its place on the loop.
        withExtendedLifetime(workers) {
            letGo(allBut: nil)
            core.release(task.identifier)
        }
    }
}
