import Curl
import Glibc

/// A download task at work on its loop: one exchange after another until the file is whole or nothing more can be
/// done.
///
/// Lives on its loop's thread. What the head of an answer means is ``AnswerJudgement``'s to say; where bytes go is
/// ``BodyWriter``'s.
final class DownloadRun: LoopRun {
    private enum Phase {
        /// Before the head of the answer is whole.
        case asking
        /// The body is the file's.
        case receiving(end: Int64?)
        /// The body is of no use; what follows it is decided.
        case discarding(Next)
        case ended
    }

    private enum Next {
        case redirect(TransferRequest, CurlURL)
        case askAgain(reason: String)
        case askUnconditionally
        case finish
        case fail(TransferError)
    }

    let launcher: ExchangeLauncher
    private let task: DownloadTask
    private let session: Session
    private unowned let core: LoopCore
    private let writer: BodyWriter

    private var phase = Phase.asking
    private var request: TransferRequest
    private var url: CurlURL?
    private var parser = ResponseHeadParser()
    private var redirects = 0
    private var restarts = 0
    private var askedFrom: Int64?
    /// It was asked with `If-Range`.
    private var isConditional = false
    /// Bytes that were there when it was asked.
    private var haveBefore: Int64 = 0
    private var discarded = 0
    private var bodyBegun = false
    /// It waits for a checkpoint to be confirmed.
    private var isHeld = false
    /// The body is a part of the resource and not the whole.
    private var isPart = false
    /// Set before we break an exchange off ourselves: the reason outranks libcurl's.
    private var failure: TransferError?
    private var destination: FileDestination?

    /// A body of no use is read up to here, so that its connection can serve again.
    private static let discardLimit = 64 * 1024
    /// Without a strong validator so many bytes are fetched again and compared before new ones are joined to them.
    private var overlap: Int64 = 256 * 1024
    /// What a server that never sends more than the overlap is asked with.
    private static let narrowOverlap: Int64 = 64 * 1024
    /// The server does not honour its own tag in `If-Range`.
    private var isConditionUseless = false
    private static let restartLimit = 2

    init(task: DownloadTask, session: Session, core: LoopCore) {
        self.task = task
        self.session = session
        self.core = core
        request = task.originalRequest
        launcher = ExchangeLauncher(core: core, session: session, number: task.identifier)
        writer = BodyWriter(task: task, core: core, configuration: session.configuration)
    }

    func start() {
        if let resumeData = task.resumeData { writer.reopen(resumeData) }
        // Every byte came in an earlier life.
        if let total = writer.version.total, writer.have == total, total > 0 { return finish() }
        do throws(CurlError) {
            let url = try CurlURL(request.url)
            ask(url)
        } catch {
            fail(TransferError(.invalidRequest, "the URL cannot be read"))
        }
    }

    private func ask(_ url: CurlURL) {
        self.url = url
        parser = ResponseHeadParser()
        phase = .asking
        discarded = 0
        failure = nil
        bodyBegun = false
        isHeld = false
        task.core.setCurrentRequest(request)
        task.progress.setPhase(.connecting)
        guard RequestOptions.protocols.split(separator: ",").contains(Substring(url.scheme)) else {
            return fail(TransferError(.protocolNotAllowed, "this version does not speak \(url.scheme)"))
        }
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
        let plan = ExchangeLauncher.Plan(request: request, url: url, engineFields: fields)
        launcher.launch(plan, handler: self) { [unowned self] error in fail(error) }
    }

    /// A checkpoint that covers `count` bytes at the front has been written down.
    func confirm(_ count: Int64) {
        writer.confirm(count)
        guard isHeld, !writer.isAhead else { return }
        isHeld = false
        launcher.unpause()
    }

    /// Whether the validator is one that this very URL sent, so that the server can be asked by it.
    private var isVouched: Bool {
        guard let url, let origin = writer.version.origin else { return false }
        return origin == ResumeData.resource(of: url.text)
    }

    func cancel() {
        if case .ended = phase { return }
        failure = .cancelled
        if !launcher.cancel() { fail(.cancelled) }
    }

    // MARK: The answer

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        guard case .asking = phase else { return true }  // Trailers.
        switch parser.add(line) {
        case .incomplete: return true
        case .tooLong:
            failure = TransferError(.tooLarge, "the server's header fields are too long")
            return false
        case .complete(let head): return take(head)
        }
    }

    private func take(_ head: ResponseHead) -> Bool {
        guard let url else { return false }
        task.core.setResponse(head)
        if RedirectRule.isRedirect(head.status) {
            phase = .discarding(redirect(head, url))
            return true
        }
        let judgement = AnswerJudgement(
            askedFrom: askedFrom, have: writer.have, validator: writer.have > 0 ? writer.version.validator : nil,
            isVouched: isVouched, isConditional: isConditional, total: writer.version.total, pathSuffix: url.path)
        switch judgement.judge(head, now: Int64(time(nil))) {
        case .accept(let offset, let length, let total):
            isPart = true
            return receive(head, from: offset, end: length.map { offset + $0 }, total: total)
        case .restart(let length):
            if writer.have > 0 {
                session.delegate.downloadTask(task, didRestartBecause: "the server sent the whole file")
            }
            writer.startOver()
            isPart = false
            return receive(head, from: 0, end: length, total: length)
        case .complete: phase = .discarding(.finish)
        case .askAgain(let reason): phase = .discarding(.askAgain(reason: reason))
        case .askUnconditionally: phase = .discarding(.askUnconditionally)
        case .fail(let error): phase = .discarding(.fail(error))
        }
        return true
    }

    private func redirect(_ head: ResponseHead, _ url: CurlURL) -> Next {
        redirects += 1
        guard redirects <= session.configuration.maximumRedirects else {
            return .fail(
                TransferError(.tooManyRedirects, "more than \(session.configuration.maximumRedirects) redirects"))
        }
        do throws(TransferError) {
            let next = try RedirectRule.follow(head, from: request, at: url, protocols: RequestOptions.protocols)
            guard let allowed = session.delegate.task(task, willRedirectTo: next.request, after: head) else {
                return .fail(
                    TransferError(.httpStatus, "a redirect that was not to be followed", httpStatus: head.status))
            }
            return .redirect(allowed, next.url)
        } catch {
            return .fail(error)
        }
    }

    private func receive(_ head: ResponseHead, from offset: Int64, end: Int64?, total: Int64?) -> Bool {
        let claimed = ResourceVersion(
            validator: head.validator, origin: url.map { ResumeData.resource(of: $0.text) }, total: total,
            suggestedFileName: head.suggestedFileName)
        do throws(TransferError) {
            if let maximum = request.maximumBodySize, let total, total > maximum {
                throw TransferError(.tooLarge, "the file has \(total) bytes, more than the \(maximum) allowed")
            }
            if let total, let free = task.target.directory.freeSpace(),
                total - writer.have > free - task.target.reservedSpace
            {
                throw TransferError(
                    .diskFull, "\(task.target.directory.path) has no room for \(total - writer.have) bytes more")
            }
            destination = try task.target.destination(
                ResourceMetadata(head, offset == 0 ? claimed : writer.version.continued(by: claimed)))
        } catch {
            failure = error
            return false
        }
        writer.begin(at: offset, of: claimed)
        if writer.have > 0 { session.delegate.downloadTask(task, didResumeAt: writer.have) }
        task.progress.setPhase(.transferring)
        phase = .receiving(end: end)
        return true
    }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        switch phase {
        case .receiving(let end):
            bodyBegun = true
            if writer.isAhead {
                isHeld = true
                return .paused
            }
            do throws(TransferError) {
                if let end, writer.position + Int64(bytes.count) > end {
                    throw TransferError(.remoteChanged, "the server sends more than the \(end) bytes it spoke of")
                }
                try writer.append(bytes)
                if let maximum = request.maximumBodySize, writer.position > maximum {
                    throw TransferError(.tooLarge, "the file grew past the \(maximum) bytes allowed")
                }
                return .accepted
            } catch {
                failure = error
                return .refused
            }
        case .discarding:
            discarded += bytes.count
            return discarded <= Self.discardLimit ? .accepted : .refused
        case .asking, .ended: return .refused
        }
    }

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> Int? { 0 }

    func rewind(to offset: Int64) -> Bool { true }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        if case .ended = phase { return }
        if case .discarding(let next) = phase, failure == nil { return go(next) }
        if let failure {
            return broke(failure)
        }
        if let error = launcher.error(for: ending, of: exchange, bodyBegun: bodyBegun) {
            fail(error)
        } else {
            bodyEnded()
        }
    }

    private func go(_ next: Next) {
        switch next {
        case .redirect(let request, let url):
            self.request = request
            ask(url)
        case .askAgain(let reason):
            restarts += 1
            guard restarts <= Self.restartLimit, let url else {
                return fail(TransferError(.remoteChanged, reason))
            }
            session.delegate.downloadTask(task, didRestartBecause: reason)
            writer.startOver()
            ask(url)
        case .askUnconditionally:
            isConditionUseless = true
            if let url { ask(url) }
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
            guard let url, writer.position > haveBefore || narrowOverlap() else {
                // Nobody says how long it is, and nothing follows what is here.
                if writer.version.total == nil, bodyBegun { return finish() }
                return fail(TransferError(.truncated, "the server sends nothing after byte \(writer.position)"))
            }
            do throws(TransferError) { try writer.flush() } catch { return broke(error) }
            return ask(url)
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
            let (part, size) = try writer.complete()
            if destination == nil {
                destination = try task.target.destination(ResourceMetadata(nil, writer.version))
            }
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
