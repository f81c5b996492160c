import Curl
import HTTPTypes

/// The request side of a run's exchanges: the method, and the body if there is one.
///
/// A request is either sent with its complete body or aborted. A server must not act on a request whose body ends early
/// (RFC 9112, section 8).
///
/// Used on the loop's thread only.
final class OutgoingBody {
    /// The task whose body is sent; replaced if a download takes over its response.
    var task: any LoopTask
    /// The progress of the sent body; `nil` for a body that no one observes.
    private let progress: TransferProgress?
    private let body: RequestBody
    private let sender: BodySender
    private unowned let core: LoopCore
    /// The length in bytes up to which a body is sent without asking the server first (RFC 9110, section 10.1.1).
    private static let smallBody: Int64 = 1 << 20
    /// The length in bytes up to which a body is sent through the small buffer. The allocator returns a larger one to the
    /// system after each request, which costs more than the further calls.
    private static let shortBody: Int64 = 256 << 10
    /// The sizes of libcurl's send buffer in bytes.
    private static let (smallBuffer, largeBuffer) = (32 << 10, 256 << 10)
    /// The transaction that sends the body; paused while a stream has no bytes.
    private var transaction: Transaction?
    /// The number of times that sending of the body was started.
    private var sendings = 0
    /// Whether the current exchange has a body.
    private(set) var isPresent = false
    /// The head of the current exchange's final response.
    private var head: ResponseHead?
    /// Whether a delegate has yet to supply the body stream.
    private var awaitsStream = false

    init(_ body: RequestBody, of task: any LoopTask, on core: LoopCore) {
        self.body = body
        self.task = task
        self.core = core
        progress = (task as? UploadTask)?.progress
        sender = BodySender(body)
        // Only a stream runs out of bytes for a while. A weak reference slows down every later use of its object.
        guard sender.isStream else { return }
        let reference = LoopReference(self, on: core)
        sender.moreToSend = { reference.perform { $0.transaction?.resume(.source) } }
    }

    /// Whether the body is not completely sent.
    var isIncomplete: Bool { isPresent && !sender.isComplete }

    /// Ends the sending.
    func stop() {
        transaction = nil
        awaitsStream = false
        sender.stop()
    }

    // MARK: The request

    /// Adds the method and the body of `request` to an exchange.
    func prepare(
        _ request: TransferRequest, of transaction: Transaction, _ contribution: inout Transaction.Contribution
    ) throws(TransferError) {
        head = nil
        isPresent = carriesBody(request)
        if isPresent {
            self.transaction = transaction
            try begin()
        }
        contribution.sendsBody = isPresent
        if isPresent, request.method == .post, !SentFields.names(.contentType, request, task.session.configuration) {
            contribution.fields.append("Content-Type: application/octet-stream")
        }
        let (method, isPresent) = (request.method.rawValue, isPresent)
        let length = isPresent ? sender.length : 0
        if isPresent {
            contribution.expectation = expectation(of: request, at: transaction.url)
            // A line without a value removes the field.
            if contribution.expectation == nil { contribution.fields.append("Expect:") }
        }
        let configure = contribution.configure
        contribution.configure = { (exchange: Exchange) throws(CurlError) in
            try configure(exchange)
            if isPresent {
                try exchange.easy.set(.upload, to: true)
                try exchange.easy.set(.uploadSize, to: length ?? -1)
                let isShort = length.map { $0 <= Self.shortBody } ?? false
                try exchange.easy.set(.uploadBufferSize, to: isShort ? Self.smallBuffer : Self.largeBuffer)
                if method != "PUT" { try exchange.easy.set(.method, to: method) }
            } else if method == "HEAD" {
                try exchange.easy.set(.noBody, to: true)
            } else if method != "GET" {
                try exchange.easy.set(.method, to: method)
            }
        }
    }

    /// Returns how the server is asked before the body is sent; `nil` if it is not. libcurl would wait a second for a
    /// server that ignores `Expect: 100-continue`, which a small body is not worth.
    private func expectation(
        of request: TransferRequest, at url: CurlURL?
    ) -> TransactionStateMachine.Expectation? {
        if let url, task.session.resources.omitsExpectation(at: url.origin) { return nil }
        if SentFields.names(.expect, request, task.session.configuration) { return .named }
        return sender.length.map { $0 <= Self.smallBody } ?? false ? nil : .overHTTP1
    }

    /// Returns whether the request has a body. A redirect that changed the method to GET dropped it (RFC 9110, section
    /// 15.4).
    private func carriesBody(_ request: TransferRequest) -> Bool {
        guard request.method == task.originalRequest.method, request.method != .head else { return false }
        if case .none = body { return [.post, .put, .patch].contains(request.method) }
        return true
    }

    private func begin() throws(TransferError) {
        sendings += 1
        progress?.setTotal(sender.length)
        progress?.setCompleted(0)
        guard sendings > 1, sender.isStream, task.session.delegate.decidesBodyStreams(of: task) else {
            return try sender.begin()
        }
        awaitsStream = true
        sender.stop()
        let (reference, number) = (LoopReference(self, on: core), sendings)
        task.session.delegate.task(
            task,
            needNewBodyStream: { stream in
                reference.perform { $0.send(stream, for: number) }
            })
    }

    private func send(_ stream: BodyStream?, for sending: Int) {
        guard awaitsStream, sending == sendings else { return }
        awaitsStream = false
        do throws(TransferError) {
            try sender.begin(with: stream)
            transaction?.resume(.source)
        } catch {
            transaction?.cancel(error)
        }
    }

    func write(to space: UnsafeMutableRawBufferPointer) -> BodySupply {
        if awaitsStream { return .paused(.source) }
        do throws(TransferError) {
            return try sender.fill(space, of: task, progress: progress).map { .written($0) } ?? .paused(.source)
        } catch {
            return .failed(error)
        }
    }

    /// Prepares to send the body again from `offset`.
    ///
    /// - Returns: whether that is possible.
    func rewind(to offset: Int64) -> Bool {
        progress?.setCompleted(offset)
        return sender.rewind(to: offset)
    }

    /// The number of bytes sent in this exchange.
    var sent: Int64 { sender.sent }

    // MARK: Responses received before the request was complete

    /// Records the head of the final response.
    ///
    /// - Returns: an error as from ``earlyEnd(received:of:)``.
    func didReceiveFinalHead(_ head: ResponseHead, of transaction: Transaction) -> TransferError? {
        self.head = head
        return earlyEnd(received: 0, of: transaction)
    }

    /// Returns the error of an exchange, or `nil` if its response is valid.
    ///
    /// - Parameter error: the error that the exchange ended with.
    func evaluate(_ error: TransferError?, of transaction: Transaction) -> TransferError? {
        guard let head, isIncomplete else { return error }
        let isValid = needsNoBody(head, transaction)
        guard let error else { return isValid ? nil : answeredEarly(head) }
        // A server that rejects a request need not read its body first. The response is valid even if sending failed.
        return isValid && error.code.isBrokenConnection ? nil : error
    }

    /// Returns the error if an HTTP/2 server completed its response before it received the whole body, which means that
    /// it does not need the rest (RFC 9113, section 8.1). libcurl 7.88 would keep trying to send the rest and use 100 %
    /// of a processor.
    ///
    /// - Parameter received: the number of body bytes received.
    func earlyEnd(received: Int64, of transaction: Transaction) -> TransferError? {
        guard let head, isIncomplete, !transaction.speaksHTTP1, !needsNoBody(head, transaction) else { return nil }
        return received >= (head.status == 204 ? 0 : head.contentLength ?? .max) ? answeredEarly(head) : nil
    }

    /// Whether a response is valid although the server has not received the whole body: it rejects the request, or
    /// redirects it with the same method. A redirect to be followed by GET states that the server has processed the
    /// request, which is impossible without its body.
    private func needsNoBody(_ head: ResponseHead, _ transaction: Transaction) -> Bool {
        guard head.status >= 300 else { return false }
        let method = transaction.request.method
        return !RedirectRule.isRedirect(head.status) || RedirectRule.method(after: head.status, of: method) == method
    }

    private func answeredEarly(_ head: ResponseHead) -> TransferError {
        TransferError(.truncated, "the server responded (\(head.status)) before it had the whole body")
    }
}
