import Curl
import Glibc
import HTTPTypes

/// An upload task at work on its loop.
///
/// The request either has the whole of one state of the file as its body, or it is broken off: a body that ends early
/// is no request for a server to act on (RFC 9112, section 8).
final class UploadRun: LoopRun {
    let launcher: ExchangeLauncher
    private let task: UploadTask
    private let session: Session
    private unowned let core: LoopCore

    private var request: TransferRequest
    private var url: CurlURL?
    private var parser = ResponseHeadParser()
    private var head: ResponseHead?
    private var sent: Int64 = 0
    private var redirects = 0
    private var answered = 0
    private var failure: TransferError?
    private var isEnded = false

    /// More of an answer's body than this is not waited for.
    private static let answerLimit = 16 << 20

    init(task: UploadTask, session: Session, core: LoopCore) {
        self.task = task
        self.session = session
        self.core = core
        request = task.originalRequest
        launcher = ExchangeLauncher(core: core, session: session, number: task.identifier)
    }

    private var size: Int64 { task.source.identity.size }

    func start() {
        task.progress.setTotal(size)
        do throws(CurlError) {
            let url = try CurlURL(request.url)
            send(to: url)
        } catch {
            fail(TransferError(.invalidRequest, "the URL cannot be read"))
        }
    }

    private func send(to url: CurlURL) {
        self.url = url
        parser = ResponseHeadParser()
        head = nil
        sent = 0
        answered = 0
        task.core.setCurrentRequest(request)
        task.progress.setPhase(.connecting)
        task.progress.setCompleted(0)
        guard RequestOptions.protocols.split(separator: ",").contains(Substring(url.scheme)) else {
            return fail(TransferError(.protocolNotAllowed, "this version does not upload by \(url.scheme)"))
        }
        guard task.source.isUnchanged() else { return fail(.sourceChanged) }
        let isPost = request.method == .post
        let size = size
        var fields: [String] = []
        if isPost, request.headerFields[.contentType] == nil {
            // Otherwise libcurl calls it a form.
            fields.append("Content-Type: application/octet-stream")
        }
        let method = request.method.rawValue
        let plan = ExchangeLauncher.Plan(request: request, url: url, engineFields: fields) {
            (exchange: Exchange) throws(CurlError) in
            if isPost {
                try exchange.easy.set(.post, to: true)
                try exchange.easy.set(.postSize, to: size)
            } else {
                try exchange.easy.set(.upload, to: true)
                try exchange.easy.set(.uploadSize, to: size)
                if method != "PUT" { try exchange.easy.set(.method, to: method) }
            }
            try exchange.easy.set(.uploadBufferSize, to: 256 * 1024)
        }
        launcher.launch(plan, handler: self) { [unowned self] error in fail(error) }
    }

    func cancel() {
        guard !isEnded else { return }
        failure = .cancelled
        if !launcher.cancel() { fail(.cancelled) }
    }

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> Int? {
        let wanted = Int(min(Int64(space.count), size - sent))
        guard wanted > 0 else { return 0 }
        if sent == 0 { task.progress.setPhase(.transferring) }
        do throws(TransferError) {
            let count = try task.source.descriptor.read(
                into: UnsafeMutableRawBufferPointer(rebasing: space[..<wanted]), at: sent)
            // Checked before the last byte goes out: a changed file must not make a complete request.
            let isLast = sent + Int64(count) == size
            guard count == wanted, !isLast || task.source.isUnchanged() else { throw .sourceChanged }
            sent += Int64(count)
            task.progress.transferred(count)
            task.progress.setCompleted(sent)
            session.delegate.task(task, didSend: Int64(count))
            return count
        } catch {
            failure = error
            return nil
        }
    }

    func rewind(to offset: Int64) -> Bool {
        sent = offset
        task.progress.setCompleted(offset)
        return true
    }

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        guard head == nil else { return true }
        switch parser.add(line) {
        case .incomplete: return true
        case .tooLong:
            failure = TransferError(.tooLarge, "the server's header fields are too long")
            return false
        case .complete(let head):
            self.head = head
            task.core.setResponse(head)
            return true
        }
    }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        answered += bytes.count
        return answered <= Self.answerLimit ? .accepted : .refused
    }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        guard !isEnded else { return }
        if let failure { return fail(failure) }
        // A server that refuses need not read the body first; its answer counts even if the sending broke.
        if let head, head.status >= 300 || sent == size { return judge(head) }
        fail(
            launcher.error(for: ending, of: exchange, bodyBegun: sent > 0)
                ?? TransferError(.truncated, "the server answered before it had the whole file"))
    }

    private func judge(_ head: ResponseHead) {
        switch head.status {
        case 200...299: succeed(head)
        // The request has been acted on; what it shows afterwards is for a person to look at.
        case 303: succeed(head)
        case 301 where request.method == .post, 302 where request.method == .post: succeed(head)
        case 301, 302, 307, 308: follow(head)
        default: fail(AnswerJudgement.failure(head, now: Int64(time(nil))))
        }
    }

    private func follow(_ head: ResponseHead) {
        redirects += 1
        guard let url, redirects <= session.configuration.maximumRedirects else {
            return fail(
                TransferError(.tooManyRedirects, "more than \(session.configuration.maximumRedirects) redirects"))
        }
        do throws(TransferError) {
            let next = try RedirectRule.follow(head, from: request, at: url, protocols: RequestOptions.protocols)
            guard let allowed = session.delegate.task(task, willRedirectTo: next.request, after: head) else {
                throw TransferError(.httpStatus, "a redirect that was not to be followed", httpStatus: head.status)
            }
            request = allowed
            send(to: next.url)
        } catch {
            fail(error)
        }
    }

    private func succeed(_ head: ResponseHead) {
        end()
        session.networkEnded()
        session.complete(task, .finished(head))
    }

    private func fail(_ error: TransferError) {
        guard !isEnded else { return }
        end()
        session.networkEnded()
        session.complete(task, .failed(error))
    }

    private func end() {
        isEnded = true
        core.release(task.identifier)
    }
}

extension TransferError {
    static let sourceChanged = TransferError(.sourceChanged, "the file changed while it was being sent")
}
