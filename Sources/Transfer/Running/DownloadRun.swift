import Curl
import Glibc

/// A download task at work on its loop: one answer after another until the file is whole or nothing more can be done.
///
/// Lives on its loop's thread. What the head of an answer means is ``AnswerJudgement``'s to say; where bytes go is
/// ``BodyWriter``'s.
final class DownloadRun: TransactionRun, TransactionClient, ConfirmableRun {
    private enum Phase {
        /// Before the head of the answer is judged.
        case asking
        /// The body is the file's.
        case receiving(end: Int64?)
        /// The body is of no use; what follows it is decided.
        case discarding(Next)
        case ended
    }

    private enum Next {
        case askAgain(reason: String)
        case askUnconditionally
        case finish
        case fail(TransferError)
    }

    private(set) lazy var transaction = Transaction(task, client: self, core: core)
    private let task: DownloadTask
    private let session: Session
    private unowned let core: LoopCore
    private let writer: BodyWriter

    private var phase = Phase.asking
    private var restarts = 0
    private var askedFrom: Int64?
    /// It was asked with `If-Range`.
    private var isConditional = false
    /// Bytes that were there when it was asked.
    private var haveBefore: Int64 = 0
    /// The body is a part of the resource and not the whole.
    private var isPart = false
    private var destination: FileDestination?
    /// The head that a destination is to be decided by, once the first byte has been judged.
    private var undecided: ResourceMetadata?
    /// The first byte tells whether there is a body that the head's type matters for.
    private var judgesFirstByte = false

    /// Without a strong validator so many bytes are fetched again and compared before new ones are joined to them.
    private var overlap: Int64 = 256 * 1024
    /// What a server that never sends more than the overlap is asked with.
    private static let narrowOverlap: Int64 = 64 * 1024
    /// The server does not honour its own tag in `If-Range`.
    private var isConditionUseless = false
    private static let restartLimit = 2

    init(task: DownloadTask, core: LoopCore) {
        self.task = task
        self.core = core
        session = task.session
        writer = BodyWriter(task: task, core: core, configuration: task.session.configuration)
    }

    /// Goes on with an answer that another run began to take.
    convenience init(task: DownloadTask, core: LoopCore, takingOver transaction: Transaction) {
        self.init(task: task, core: core)
        self.transaction = transaction
        transaction.hand(over: task, to: self)
    }

    func start() {
        if let resumeData = task.resumeData { writer.reopen(resumeData) }
        // Every byte came in an earlier life.
        if let total = writer.version.total, writer.have == total, total > 0 { return finish() }
        transaction.ask()
    }

    private func ask() {
        phase = .asking
        transaction.ask()
    }

    func prepare(_ request: TransferRequest, at url: CurlURL) throws(TransferError) -> Transaction.Contribution {
        phase = .asking
        var fields = ["Accept-Encoding: identity"]
        askedFrom = nil
        isConditional = false
        haveBefore = writer.have
        if writer.have > 0 {
            let ifRange = isVouched && !isConditionUseless ? writer.version.validator.ifRange : nil
            // Bytes that nothing vouches for are fetched once more and compared.
            let from = ifRange == nil ? max(0, writer.have - overlap) : writer.have
            if from > 0 {
                askedFrom = from
                fields.append("Range: bytes=\(from)-")
                if let ifRange {
                    fields.append("If-Range: \(ifRange)")
                    isConditional = true
                }
            }
        }
        return Transaction.Contribution(fields: fields)
    }

    /// A checkpoint that covers `count` bytes at the front has been written down.
    func confirm(_ count: Int64) {
        writer.confirm(count)
        if !writer.isAhead { transaction.resume(.checkpoint) }
    }

    /// Whether the validator is one that this very URL sent, so that the server can be asked by it.
    private var isVouched: Bool {
        guard let url = transaction.url, let origin = writer.version.origin else { return false }
        return origin == ResumeData.resource(of: url.text)
    }

    // MARK: The answer

    func take(_ head: ResponseHead, at url: CurlURL) -> Transaction.HeadVerdict {
        let judgement = AnswerJudgement(
            askedFrom: askedFrom, have: writer.have, validator: writer.have > 0 ? writer.version.validator : nil,
            isVouched: isVouched, isConditional: isConditional, total: writer.version.total, pathSuffix: url.path)
        switch judgement.judge(head, now: Int64(time(nil))) {
        case .accept(let offset, let length, let total):
            isPart = true
            return receive(head, at: url, from: offset, end: length.map { offset + $0 }, total: total)
        case .restart(let length):
            if writer.have > 0 {
                session.delegate.downloadTask(task, didRestartBecause: "the server sent the whole file")
            }
            writer.startOver()
            isPart = false
            return receive(head, at: url, from: 0, end: length, total: length)
        case .complete: phase = .discarding(.finish)
        case .askAgain(let reason): phase = .discarding(.askAgain(reason: reason))
        case .askUnconditionally: phase = .discarding(.askUnconditionally)
        case .fail(let error): phase = .discarding(.fail(error))
        }
        return .discard
    }

    private func receive(
        _ head: ResponseHead, at url: CurlURL, from offset: Int64, end: Int64?, total: Int64?
    ) -> Transaction.HeadVerdict {
        let claimed = ResourceVersion(
            validator: head.validator, origin: ResumeData.resource(of: url.text), total: total,
            suggestedFileName: head.suggestedFileName)
        let metadata = ResourceMetadata(head, offset == 0 ? claimed : writer.version.continued(by: claimed))
        undecided = nil
        do throws(TransferError) {
            try validate(head, length: end.map { $0 - offset })
            if let maximum = transaction.request.maximumBodySize, let total, total > maximum {
                throw TransferError(.tooLarge, "the file has \(total) bytes, more than the \(maximum) allowed")
            }
            if judgesFirstByte, writer.target == nil {
                undecided = metadata
            } else {
                try place(metadata, total: total)
            }
        } catch {
            return .refuse(error)
        }
        writer.begin(at: offset, of: claimed)
        if writer.have > 0 {
            session.delegate.downloadTask(task, didResumeAtOffset: writer.have, expected: writer.version.total ?? total)
        }
        phase = .receiving(end: end)
        return .receive
    }

    /// Finds the file's place, and makes sure that there is room for it.
    private func place(_ metadata: ResourceMetadata, total: Int64?) throws(TransferError) {
        undecided = nil
        destination = try writer.place(metadata, total: total)
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
        case .receiving(let end):
            if writer.isAhead {
                transaction.pause(.checkpoint)
                return .paused
            }
            if judgesFirstByte {
                judgesFirstByte = false
                if let head = task.response,
                    let error = session.delegate.downloadTask(task, validate: head, isEmpty: false)
                {
                    transaction.failure = error
                    return .refused
                }
            }
            do throws(TransferError) {
                if let undecided { try place(undecided, total: nil) }
                if let end, writer.position + Int64(bytes.count) > end {
                    throw TransferError(.remoteChanged, "the server sends more than the \(end) bytes it spoke of")
                }
                try writer.append(bytes)
                if let maximum = transaction.request.maximumBodySize, writer.position > maximum {
                    throw TransferError(.tooLarge, "the file grew past the \(maximum) bytes allowed")
                }
                return .accepted
            } catch {
                transaction.failure = error
                return .refused
            }
        case .discarding: return .accepted
        case .asking, .ended: return .refused
        }
    }

    func didEnd(_ error: TransferError?) {
        switch (phase, error) {
        case (.ended, _): break
        case (_, let error?): broke(error)
        case (.discarding(let next), nil): go(next)
        case (_, nil): bodyEnded()
        }
    }

    private func go(_ next: Next) {
        switch next {
        case .askAgain(let reason):
            restarts += 1
            guard restarts <= Self.restartLimit else {
                return fail(TransferError(.remoteChanged, reason))
            }
            session.delegate.downloadTask(task, didRestartBecause: reason)
            writer.startOver()
            ask()
        case .askUnconditionally:
            isConditionUseless = true
            ask()
        case .finish: finish()
        case .fail(let error): fail(error)
        }
    }

    /// libcurl saw a complete body; whether it is, our own count says.
    private func bodyEnded() {
        guard case .receiving(let end) = phase else {
            return fail(TransferError(.truncated, "the connection ended without an answer"))
        }
        do throws(TransferError) {
            try writer.endOfBody()
        } catch {
            return broke(error)
        }
        if let end, writer.position < end {
            return fail(TransferError(.truncated, "the body ended at \(writer.position) of \(end) bytes"))
        }
        // A part shorter than what was asked for is legal: ask for the rest, as long as it brings something.
        if writer.version.total.map({ writer.position < $0 }) ?? isPart {
            guard writer.position > haveBefore || narrowOverlap() else {
                // Nobody says how long it is, and nothing follows what is here.
                if writer.version.total == nil, transaction.bodyBegun { return finish() }
                return fail(TransferError(.truncated, "the server sends nothing after byte \(writer.position)"))
            }
            do throws(TransferError) { try writer.flush() } catch { return broke(error) }
            return ask()
        }
        finish()
    }

    /// An answer brought the overlap and no more: the end of the file, or of what the server sends at once.
    ///
    /// - Returns: whether to ask once more from nearer to the end, which tells the two apart.
    private func narrowOverlap() -> Bool {
        guard let askedFrom, askedFrom < haveBefore, overlap > Self.narrowOverlap else { return false }
        overlap = Self.narrowOverlap
        return true
    }

    // MARK: The end

    private func finish() {
        do throws(TransferError) {
            if destination == nil {
                try place(undecided ?? ResourceMetadata(nil, writer.version), total: nil)
            }
            let (part, size) = try writer.complete()
            guard let destination else { throw TransferError(.internal, "a file without a destination") }
            end()
            task.progress.setTotal(size)
            session.publish(task, part, size: size, destination: destination)
        } catch {
            broke(error)
        }
    }

    /// What is there is of no use any more, or nothing more can be done.
    private func broke(_ error: TransferError) {
        if error.code == .remoteChanged { go(.askAgain(reason: error.message)) } else { fail(error) }
    }

    private func fail(_ error: TransferError) {
        if case .ended = phase { return }
        // Bytes that are in memory still may spare fetching them again; if the disk does not want them, so be it.
        if error.code != .remoteChanged { try? writer.flush() }
        let part = error.code == .remoteChanged ? nil : writer.part
        let version = writer.version
        end()
        session.fail(task, error, part: part, version: version)
    }

    private func end() {
        phase = .ended
        writer.release()
        core.release(task.identifier)
    }
}
