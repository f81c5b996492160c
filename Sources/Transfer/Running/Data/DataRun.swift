import Curl
import HTTPTypes

/// The execution of a data or upload task on its loop.
///
/// A request is either sent with its complete body or aborted. A server must not act on a request whose body ends early
/// (RFC 9112, section 8).
final class DataRun: LoopRun, TransactionClient {
    private(set) lazy var transaction = Transaction(task, client: self, core: core)
    private let task: DataTask
    private let session: any TaskSession
    private unowned let core: LoopCore
    private let sender: BodySender

    private var head: ResponseHead?
    private var collected: [UInt8] = []
    private var received: Int64 = 0
    /// The number of times that sending of the body was started.
    private var sendings = 0
    /// Whether the current exchange has a body to send.
    private var sendsBody = false
    /// Whether a delegate has yet to supply the body stream.
    private var awaitsStream = false

    /// The cache state of the current exchange.
    private var caching: CachedExchange?
    private var finding = CachedExchange.Finding.new
    /// The complete response that is stored or not once a delegate has decided, and its cache state.
    private var storing: (head: ResponseHead, caching: CachedExchange)?

    private var discarded: DiscardedBody?
    /// The timer that ends a response whose body is discarded.
    private var discardTimer: Int?

    /// The largest capacity, in bytes, reserved in advance for a body of known length.
    private static let largestReserve: Int64 = 16 << 10

    /// The largest size, in bytes, of one read whose data may have to be decoded.
    private static let largestDecodingBuffer = 16 * 1024

    init(task: DataTask, core: LoopCore) {
        self.task = task
        self.core = core
        session = task.session
        sender = BodySender(task.body)
        let run = RunReference(self, of: task)
        sender.moreToSend = { run.perform { $0.transaction.resume(.source) } }
    }

    func start() {
        if case .channel(let channel) = task.sink {
            let run = RunReference(self, of: task)
            channel.begin {
                run.perform { $0.transaction.resume(.full) }
            }
        }
        transaction.start()
    }

    // MARK: The request

    func prepare(
        _ request: TransferRequest, at url: CurlURL, of transaction: Transaction
    ) throws(TransferError) -> Transaction.Contribution {
        head = nil
        collected = []
        received = 0
        stopDiscardTimer()
        discarded = request.ignoresAnswerBody && task is UploadTask ? DiscardedBody() : nil
        var contribution = Transaction.Contribution()
        let method = request.method.rawValue
        sendsBody = carriesBody(request)
        let sendsBody = sendsBody
        if sendsBody { try beginSending() }
        if sendsBody, request.method == .post, !SentFields.names(.contentType, request, session.configuration) {
            contribution.fields.append("Content-Type: application/octet-stream")
        }
        let length = sendsBody ? sender.length : 0
        let decodes = CachedExchange.decodes(request)
        // No minimum throughput applies to a body that is delivered to a reader, who sets its pace.
        let least = task is UploadTask || isCollected ? LeastPace(session.configuration).bytes : 0
        let receiveBuffer = min(session.resources.receiveBuffer(on: core), Self.largestDecodingBuffer)
        contribution.configure = { (exchange: Exchange) throws(CurlError) in
            exchange.activity.leastBytes = least
            if sendsBody {
                try exchange.easy.set(.upload, to: true)
                try exchange.easy.set(.uploadSize, to: length ?? -1)
                try exchange.easy.set(.uploadBufferSize, to: 256 * 1024)
                if method != "PUT" { try exchange.easy.set(.method, to: method) }
            } else if method == "HEAD" {
                try exchange.easy.set(.noBody, to: true)
            } else if method != "GET" {
                try exchange.easy.set(.method, to: method)
            }
            guard decodes else { return }
            // Request all codings that this libcurl can decode.
            try exchange.easy.set(.acceptEncoding, to: "")
            // libcurl decodes all data of one read even if the transfer was paused in the meantime, and fails if more
            // than 64 MiB must then be buffered. gzip expands data at most about a thousandfold.
            try exchange.easy.set(.bufferSize, to: receiveBuffer)
        }
        return contribution
    }

    // MARK: The cache

    func storedResponse(
        for request: TransferRequest, at url: CurlURL, isAuthorized: Bool,
        _ contribution: inout Transaction.Contribution
    ) throws(TransferError) -> CachedResponse? {
        let configuration = session.configuration
        var reloads = false
        if case .mistaken = finding { reloads = true }
        finding = .new
        guard configuration.responseCache != nil else {
            if CachedExchange.policy(of: request, configuration) == .returnCacheDataDontLoad { throw .notCached }
            return nil
        }
        let lines = SentFields.lines(
            of: request, configuration, engineFields: contribution.fields, isAuthorized: isAuthorized)
        caching = CachedExchange(
            of: request, at: url, lines: lines, sendsBody: sendsBody, reloads: reloads, configuration)
        switch caching?.answer {
        case .stored(let response):
            // The response must not be stored again.
            caching = nil
            return response
        case .server(let conditions):
            contribution.fields += conditions.map { "\($0.name): \($0.value)" }
            return nil
        case .some(.none): throw .notCached
        case nil: return nil
        }
    }

    func didReceiveHead(_ head: ResponseHead) { caching?.didReceiveHead(head) }

    /// Handles a response that confirms the stored response or does not match it.
    ///
    /// - Returns: whether the task continues, with the stored response or with another request.
    private func goesOn(after error: TransferError?) -> Bool {
        guard error == nil else { return false }
        switch finding {
        case .new: return false
        case .renewed(let response):
            finding = .new
            caching = nil
            transaction.deliver(response)
        case .mistaken: transaction.start()
        }
        return true
    }

    private var isCollected: Bool {
        if case .collect = task.sink { !session.callbacks.receivesData } else { false }
    }

    /// Stores a complete response if permitted, and completes the task.
    private func keep(_ head: ResponseHead, _ caching: CachedExchange) {
        let proposal = isCollected ? caching.proposal(for: head, body: collected) : nil
        let (delegate, task) = (session.callbacks, task)
        guard let proposal, delegate.decidesCaching(of: task) else {
            caching.keep(proposal, of: head)
            return complete(nil)
        }
        storing = (head, caching)
        let run = RunReference(self, of: task)
        let reply = Reply(otherwise: .cache(proposal)) { decision in
            run.perform { $0.storingDecided(decision) }
        }
        delegate.dataTask(task, willCache: proposal) { reply.give(.cache($0)) }
        if let decision = reply.immediateDecision() { storingDecided(decision) }
    }

    private func storingDecided(_ decision: Decision) {
        guard let (head, caching) = storing else { return }
        storing = nil
        if case .cache(let response) = decision { caching.keep(response, of: head) }
        complete(nil)
    }

    func suspend() { transaction.pause(.suspended) }

    func resume() { transaction.resume(.suspended) }

    func cancel() {
        if storing != nil { complete(.cancelled) } else { transaction.cancel() }
    }

    /// Returns whether the request has a body. A redirect that changed the method to GET dropped it (RFC 9110, section
    /// 15.4).
    private func carriesBody(_ request: TransferRequest) -> Bool {
        guard request.method == task.originalRequest.method, request.method != .head else { return false }
        if case .none = task.body { return [.post, .put, .patch].contains(request.method) }
        return true
    }

    private func beginSending() throws(TransferError) {
        sendings += 1
        task.progress.setTotal(sender.length)
        task.progress.setCompleted(0)
        guard sendings > 1, sender.isStream, session.callbacks.decidesBodyStreams(of: task) else {
            return try sender.begin()
        }
        awaitsStream = true
        sender.stop()
        let (run, number) = (RunReference(self, of: task), sendings)
        session.callbacks.task(
            task,
            needNewBodyStream: { stream in
                run.perform { $0.send(stream, for: number) }
            })
    }

    private func send(_ stream: BodyStream?, for sending: Int) {
        guard awaitsStream, sending == sendings else { return }
        awaitsStream = false
        do throws(TransferError) {
            try sender.begin(with: stream)
            transaction.resume(.source)
        } catch {
            transaction.cancel(error)
        }
    }

    func writeBody(to space: UnsafeMutableRawBufferPointer) -> BodySupply {
        if awaitsStream { return .paused(.source) }
        do throws(TransferError) {
            return try sender.fill(space, of: task).map { .written($0) } ?? .paused(.source)
        } catch {
            return .failed(error)
        }
    }

    func rewindBody(to offset: Int64) -> Bool { sender.rewind(to: offset, of: task) }

    // MARK: The response

    func didReceiveFinalHead(
        _ head: ResponseHead, at url: CurlURL, of transaction: Transaction
    ) -> HeadDisposition {
        finding = caching?.didReceiveFinalHead(head) ?? .new
        guard case .new = finding else { return .discard }
        self.head = head
        if hasEndedEarly(head) { return .refuse(answeredEarly(head)) }
        if !(task is UploadTask) { task.progress.setTotal(head.contentCoding == nil ? head.contentLength : nil) }
        if case .collect = task.sink, let length = head.contentLength {
            collected.reserveCapacity(Int(min(length, Self.largestReserve)))
        }
        if discarded != nil, !isWaitingToSend { startDiscardTimer() }
        return session.callbacks.decidesResponses(of: task) ? .ask : .receive
    }

    func askDelegate(about head: ResponseHead, _ answer: @escaping @Sendable (ResponseDisposition) -> Void) {
        session.callbacks.dataTask(task, didReceive: head, completion: answer)
    }

    func didDecide(
        _ disposition: ResponseDisposition, about head: ResponseHead, at url: CurlURL, of transaction: Transaction
    ) -> HeadDisposition {
        switch disposition {
        case .allow: .receive
        case .cancel: .refuse(.cancelled)
        case .becomeDownload(let target): becomeDownload(.fixed(target), head, at: url)
        case .download(to: let destination): becomeDownload(.decided(by: destination), head, at: url)
        }
    }

    private func becomeDownload(
        _ placement: DownloadPlacement, _ head: ResponseHead, at url: CurlURL
    ) -> HeadDisposition {
        let download = DownloadTask(succeeding: task, placement: placement)
        guard session.replace(task, by: download) else { return .refuse(.cancelled) }
        // The loop is about to release this run, and no other reference to it remains.
        defer { withExtendedLifetime(self) {} }
        let run = DownloadRun(task: download, core: core, takingOver: transaction)
        download.setRun(run, on: core)
        task.endRun(on: core)
        session.callbacks.dataTask(task, didBecome: download)
        return run.didReceiveFinalHead(head, at: url, of: transaction)
    }

    func didReceiveBody(_ bytes: UnsafeRawBufferPointer, of transaction: Transaction) -> BodyDisposition {
        if discarded != nil { return discard(bytes.count) }
        let limit = transaction.request.maximumBodySize ?? .max
        guard received + Int64(bytes.count) <= limit else {
            return .refused(TransferError(.tooLarge, "the body grew past the \(limit) bytes allowed"))
        }
        if session.callbacks.receivesData {
            session.callbacks.dataTask(task, didReceive: Array(bytes))
        } else {
            switch task.sink {
            case .collect:
                let most = session.configuration.maximumCollectedBytes
                guard collected.count + bytes.count <= most else {
                    return .refused(
                        TransferError(.tooLarge, "the body grew past the \(most) bytes that are kept in memory"))
                }
                collected.append(contentsOf: bytes)
            case .hand(let take): take(Array(bytes))
            case .channel(let channel):
                guard channel.put(Array(bytes)) else { return .paused(.full) }
            }
        }
        if received == 0 { task.handOut() }
        received += Int64(bytes.count)
        if let head, hasEndedEarly(head) { return .refused(answeredEarly(head)) }
        if !(task is UploadTask) {
            task.progress.transferred(bytes.count)
            task.progress.setCompleted(received)
        }
        return .accepted
    }

    var isWaitingToSend: Bool { discarded != nil && sendsBody && !sender.isComplete }

    private func discard(_ count: Int) -> BodyDisposition {
        received += Int64(count)
        if let head, hasEndedEarly(head) { return .refused(answeredEarly(head)) }
        if !isWaitingToSend, discardTimer == nil { startDiscardTimer() }
        let sent = isWaitingToSend ? sender.sent : nil
        switch discarded?.pass(count, sent: sent) {
        case .goesOn, nil: return .accepted
        case .isEnough: return .refused(.cancelled)
        case .isTooMuch:
            return .refused(TransferError(.truncated, "the server sent a long response before it had the whole body"))
        }
    }

    private func startDiscardTimer() {
        let time = session.configuration.stallTimeout
        discardTimer = core.after(milliseconds: time > 0 ? time : DiscardedBody.longestDuration) { [weak self] in
            guard let self else { return }
            discardTimer = nil
            discarded?.end()
            transaction.cancel()
        }
    }

    private func stopDiscardTimer() {
        if let discardTimer { core.cancelTimer(discardTimer) }
        discardTimer = nil
    }

    // MARK: The end

    func didEnd(_ failure: TransferError?, of transaction: Transaction) {
        stopDiscardTimer()
        let error = isSettled(in: failure) ? nil : failure
        if goesOn(after: error) { return }
        sender.stop()
        if error == nil, let head, let caching, evaluate(nil) == nil { return keep(head, caching) }
        complete(evaluate(error))
    }

    /// Whether the failure can be ignored: the response's head was received, the request was sent completely, and only
    /// the discarded body is incomplete.
    private func isSettled(in failure: TransferError?) -> Bool {
        guard let discarded, let failure, head != nil, !isWaitingToSend else { return false }
        return discarded.isOver || failure.code.isBrokenConnection
    }

    private func complete(_ error: TransferError?) {
        task.endRun(on: core)
        session.resources.networkEnded()
        task.setData(collected)
        session.complete(task, error)
    }

    private func evaluate(_ error: TransferError?) -> TransferError? {
        guard let head else {
            return error ?? TransferError(.truncated, "the connection was closed before a response")
        }
        let hasSentAll = !sendsBody || sender.isComplete
        // The response's status has been received; an upload needs nothing after it, so an incomplete close is no
        // error.
        if let error, error.isIncompleteClose, task is UploadTask, hasSentAll { return nil }
        guard let error else { return hasSentAll || needsNoBody(head) ? nil : answeredEarly(head) }
        // A server that rejects a request need not read its body first. The response is valid even if sending failed.
        return !hasSentAll && needsNoBody(head) && error.code.isBrokenConnection ? nil : error
    }

    // MARK: Responses received before the request was complete

    /// Whether a response is valid although the server has not received the whole body: it rejects the request, or
    /// redirects it with the same method. A redirect to be followed by GET states that the server has processed the
    /// request, which is impossible without its body.
    private func needsNoBody(_ head: ResponseHead) -> Bool {
        guard head.status >= 300 else { return false }
        let method = transaction.request.method
        return !RedirectRule.isRedirect(head.status) || RedirectRule.method(after: head.status, of: method) == method
    }

    /// Whether an HTTP/2 server completed its response before it received the whole body, which means that it does not
    /// need the rest (RFC 9113, section 8.1). libcurl 7.88 would keep trying to send the rest and use 100 % of a
    /// processor.
    private func hasEndedEarly(_ head: ResponseHead) -> Bool {
        guard sendsBody, !sender.isComplete, !transaction.speaksHTTP1, !needsNoBody(head) else { return false }
        return received >= (head.status == 204 ? 0 : head.contentLength ?? .max)
    }

    private func answeredEarly(_ head: ResponseHead) -> TransferError {
        TransferError(.truncated, "the server responded (\(head.status)) before it had the whole body")
    }
}
