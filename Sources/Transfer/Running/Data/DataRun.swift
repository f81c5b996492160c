import Curl
import FoundationEssentials
import HTTPTypes

/// The execution of a data or upload task on its loop.
final class DataRun: PeerRun, TransactionClient {
    private(set) lazy var transaction = Transaction(task, client: self, core: core)
    private let task: DataTask
    private let session: Session
    private unowned let core: LoopCore
    private let outgoing: OutgoingBody

    private var head: ResponseHead?
    private var collected = Data()
    private var received: Int64 = 0
    /// Whether the session's delegate has seen the piece of the body that is about to be kept.
    private var hasShown = false

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
        outgoing = OutgoingBody(task.body, of: task, on: core)
    }

    func start() {
        if case .channel(let channel) = task.sink {
            let run = RunReference(self, of: task, on: core)
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
        collected = Data()
        received = 0
        hasShown = false
        stopDiscardTimer()
        discarded = request.ignoresAnswerBody && task is UploadTask ? DiscardedBody() : nil
        var contribution = Transaction.Contribution()
        let decodes = CachedExchange.decodes(request)
        // No minimum throughput applies to a body that is delivered to a reader, who sets its pace.
        contribution.decodes = decodes
        let least = task is UploadTask || isCollected ? LeastPace(session.configuration, request).bytes : 0
        let receiveBuffer = min(session.resources.receiveBuffer(on: core), Self.largestDecodingBuffer)
        contribution.configure = { (exchange: Exchange) throws(CurlError) in
            exchange.activity.leastBytes = least
            guard decodes else { return }
            // Request all codings that this libcurl can decode.
            try exchange.easy.set(.acceptEncoding, to: "")
            // libcurl decodes all data of one read even if the transfer was paused in the meantime, and fails if more
            // than 64 MiB must then be buffered. gzip expands data at most about a thousandfold.
            try exchange.easy.set(.bufferSize, to: receiveBuffer)
        }
        try outgoing.prepare(request, of: transaction, &contribution)
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
            of: request, configuration, engineFields: contribution.fields, isAuthorized: isAuthorized,
            sendsBody: outgoing.isPresent)
        caching = CachedExchange(
            of: request, at: url, lines: lines, sendsBody: outgoing.isPresent, reloads: reloads, configuration)
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

    private var isCollected: Bool { task.isCollected && !session.delegate.receivesData }

    /// Stores a complete response if permitted, and completes the task.
    private func keep(_ head: ResponseHead, _ caching: CachedExchange) {
        let proposal = isCollected ? caching.proposal(for: head, body: Array(collected)) : nil
        let (delegate, task) = (session.delegate, task)
        guard let proposal, delegate.decidesCaching(of: task) else {
            caching.keep(proposal, of: head)
            return complete(nil)
        }
        storing = (head, caching)
        let run = RunReference(self, of: task, on: core)
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

    var peerAddress: String? { transaction.launcher.peerAddress }

    func suspend() { transaction.pause(.suspended) }

    func resume() { transaction.resume(.suspended) }

    func cancel() {
        if storing != nil { complete(.cancelled) } else { transaction.cancel() }
    }

    func writeBody(to space: UnsafeMutableRawBufferPointer) -> BodySupply { outgoing.write(to: space) }

    func rewindBody(to offset: Int64) -> Bool { outgoing.rewind(to: offset) }

    // MARK: The response

    func didReceiveFinalHead(
        _ head: ResponseHead, at url: CurlURL, of transaction: Transaction
    ) -> HeadDisposition {
        finding = caching?.didReceiveFinalHead(head) ?? .new
        guard case .new = finding else { return .discard }
        self.head = head
        let length = head.contentLength
        if length == nil, head.hasInvalidContentLength { return .refuse(.invalidContentLength) }
        if let error = outgoing.didReceiveFinalHead(head, of: transaction) { return .refuse(error) }
        task.responseProgress.setTotal(head.contentCoding == nil ? length : nil)
        task.responseProgress.setCompleted(0)
        if case .collect = task.sink, let length {
            collected.reserveCapacity(Int(min(length, Self.largestReserve)))
        }
        if discarded != nil, !isWaitingToSend { startDiscardTimer() }
        return session.delegate.decidesResponses(of: task) ? .ask : .receive
    }

    func askDelegate(about head: ResponseHead, _ answer: @escaping @Sendable (ResponseDisposition) -> Void) {
        session.delegate.dataTask(task, didReceive: head, completion: answer)
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
        let run = DownloadRun(task: download, core: core, takingOver: transaction, outgoing: outgoing)
        download.setRun(run, on: core)
        task.endRun(on: core)
        session.delegate.dataTask(task, didBecome: download)
        return run.didReceiveFinalHead(head, at: url, of: transaction)
    }

    func didReceiveBody(_ bytes: UnsafeRawBufferPointer, of transaction: Transaction) -> BodyDisposition {
        if discarded != nil { return discard(bytes.count) }
        let limit = transaction.request.maximumBodySize ?? .max
        guard received + Int64(bytes.count) <= limit else {
            return .refused(TransferError(.tooLarge, "the body grew past the \(limit) bytes allowed"))
        }
        if received == 0, let error = refusal() { return .refused(error) }
        if isKept(bytes) {
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
        hasShown = false
        if received == 0 { task.handOut() }
        received += Int64(bytes.count)
        if let error = outgoing.earlyEnd(received: received, of: transaction) { return .refused(error) }
        task.responseProgress.transferred(bytes.count)
        task.responseProgress.setCompleted(received)
        return .accepted
    }

    /// Validates the head when the first bytes of the body arrive, unless the body is collected. A reader must not get
    /// bytes of a response that is invalid: the request could not be tried again after that.
    private func refusal() -> TransferError? {
        if case .collect = task.sink { return nil }
        return head.flatMap { session.delegate.task(task, validate: $0, isEmpty: false) }
    }

    /// Shows a piece of the body to the session's delegate, unless it has seen it before a pause.
    ///
    /// - Returns: whether the piece is kept or passed on as the request says.
    private func isKept(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let isClosure = session.delegate.receivesData
        guard isClosure || session.delegate.observesData, !hasShown else { return true }
        session.delegate.dataTask(task, didReceive: Array(bytes))
        hasShown = task.takesPiece()
        return hasShown
    }

    var isWaitingToSend: Bool { discarded != nil && outgoing.isIncomplete }

    private func discard(_ count: Int) -> BodyDisposition {
        received += Int64(count)
        if let error = outgoing.earlyEnd(received: received, of: transaction) { return .refused(error) }
        if !isWaitingToSend, discardTimer == nil { startDiscardTimer() }
        let sent = isWaitingToSend ? outgoing.sent : nil
        switch discarded?.pass(count, sent: sent) {
        case .goesOn, nil: return .accepted
        case .isEnough: return .refused(.cancelled)
        case .isTooMuch:
            return .refused(TransferError(.truncated, "the server sent a long response before it had the whole body"))
        }
    }

    private func startDiscardTimer() {
        let time = session.configuration.stallTimeout(of: task.originalRequest)
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
        outgoing.stop()
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
        session.resources.networkEnded(task.core)
        task.setData(collected)
        session.complete(task, error)
    }

    private func evaluate(_ error: TransferError?) -> TransferError? {
        guard head != nil else {
            return error ?? TransferError(.truncated, "the connection was closed before a response")
        }
        // The response's status has been received; an upload needs nothing after it, so an incomplete close is no
        // error.
        if let error, error.isIncompleteClose, task is UploadTask, !outgoing.isIncomplete { return nil }
        return outgoing.evaluate(error, of: transaction)
    }
}
