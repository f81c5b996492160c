import Curl
import HTTPTypes

/// An exchange with a ``StubResponder`` in place of a server.
///
/// Used on the loop's thread only. Its transaction holds it until the exchange ends, so a late result is dropped.
final class StubbedExchange {
    /// The step of the exchange.
    enum Phase {
        /// The client writes the body of the request.
        case collecting
        /// The stub has the request.
        case sent
        /// The head of the response has arrived; the body follows.
        case delivering
    }

    let options: RequestOptions
    let stub: any StubResponder
    unowned let transaction: Transaction
    var phase = Phase.collecting
    /// The bytes of the request's body so far.
    var body: [UInt8] = []
    var head: ResponseHead?
    /// The bytes of the response's body that have not been delivered.
    var rest: ArraySlice<UInt8> = []
    /// The error with which the exchange ends after the body.
    var failure: TransferError?
    /// The timer of a delayed response.
    var timer: Int?

    init(_ options: RequestOptions, stub: any StubResponder, of transaction: Transaction) {
        self.options = options
        self.stub = stub
        self.transaction = transaction
    }

    /// Records a response, as it comes over a connection: without bytes that belong to no body, cut or found incomplete
    /// by its length, and decoded.
    func take(_ response: StubbedResponse) {
        head = response.head
        rest = response.body[...]
        failure = response.failure
        if options.request.method == .head || [204, 304].contains(response.head.status) { rest = [] } else { frame() }
        guard options.decodes else { return }
        if let decoder = BodyDecoder(BodyDecoder.undone(response.head.contentCodings, ofFile: [])) {
            decode(by: decoder)
        }
    }

    private func frame() {
        guard let length = head?.contentLength, head?.value(of: "transfer-encoding") == nil else { return }
        if rest.count > length { rest = rest.prefix(Int(length)) }
        guard rest.count < length, failure == nil else { return }
        failure = TransferError(.truncated, "the connection was closed before the end of the body")
    }

    private func decode(by decoder: BodyDecoder) {
        var decoded: [UInt8] = []
        do throws(TransferError) {
            let result = rest.withUnsafeBytes { bytes in
                Result { () throws(TransferError) in
                    try decoder.decode(bytes) { (piece: UnsafeRawBufferPointer) in decoded += piece }
                }
            }
            try result.get()
            if failure == nil { failure = decoder.failureAtEnd() }
        } catch {
            failure = error
        }
        rest = decoded[...]
    }
}

/// Exchanges with a stub. The state machine sees the events of any exchange.
extension Transaction {
    /// The number of bytes that move at once.
    private static let pieceSize = 64 * 1024

    func beginStubbedExchange(_ options: RequestOptions, with stub: any StubResponder) {
        let exchange = StubbedExchange(options, stub: stub, of: self)
        stubbed = exchange
        if options.sendsBody { collectBody(of: exchange) } else { send(exchange) }
    }

    /// Releases the exchange. Its result is then ignored.
    func dropStubbedExchange() {
        if let timer = stubbed?.timer { core.cancelTimer(timer) }
        stubbed = nil
    }

    /// Continues after a pause.
    func continueStubbedExchange() {
        guard let exchange = stubbed else { return }
        switch exchange.phase {
        case .collecting: collectBody(of: exchange)
        case .sent: break
        case .delivering: deliverBody(of: exchange)
        }
    }

    // MARK: The request

    private func collectBody(of exchange: StubbedExchange) {
        let verdict = withUnsafeTemporaryAllocation(byteCount: Self.pieceSize, alignment: 1) { space in
            while true {
                let verdict = fill(space)
                guard case .filled(let count) = verdict, count > 0, stubbed === exchange else { return verdict }
                exchange.body += UnsafeRawBufferPointer(rebasing: space[..<count])
            }
        }
        guard stubbed === exchange else { return }
        switch verdict {
        case .filled: send(exchange)
        case .paused: break
        case .failed: end(exchange, .refused)
        }
    }

    private func send(_ exchange: StubbedExchange) {
        exchange.phase = .sent
        let options = exchange.options
        let lines = SentFields.lines(
            of: options.request, session.configuration, engineFields: options.engineFields,
            isAuthorized: options.isAuthorized, sendsBody: options.sendsBody)
        let request = SentRequest(
            method: options.request.method, url: options.url.text, headerFields: SentFields.fields(lines),
            body: exchange.body)
        exchange.body = []
        let (stub, reference) = (exchange.stub, LoopReference(exchange, on: core))
        Task {
            let result = await stub.result(of: request)
            reference.perform { $0.transaction.received(result, on: $0) }
        }
    }

    private func received(_ result: StubResult, on exchange: StubbedExchange) {
        guard stubbed === exchange else { return }
        checkInvariants()
        switch result {
        case .network: passToNetwork(exchange.options)
        case .failure(let error): end(exchange, error)
        case .response(let response):
            guard (200...999).contains(response.head.status) else {
                return end(exchange, TransferError(.internal, "the status of a stubbed response is 200 or more"))
            }
            exchange.take(response)
            guard response.delay > 0 else { return deliverHead(of: exchange) }
            exchange.timer = core.after(milliseconds: response.delay) { [weak exchange] in
                guard let exchange else { return }
                exchange.timer = nil
                exchange.transaction.deliverHead(of: exchange)
            }
        }
    }

    private func passToNetwork(_ options: RequestOptions) {
        dropStubbedExchange()
        guard !options.sendsBody || client.rewindBody(to: 0) else {
            perform(machine.sendingFailed(.sourceChanged))
            return
        }
        machine.passedToNetwork()
        launch(options)
    }

    // MARK: The response

    private func deliverHead(of exchange: StubbedExchange) {
        guard stubbed === exchange, let head = exchange.head else { return }
        exchange.phase = .delivering
        cookies?.receive(head)
        let goesOn = receive(head)
        guard stubbed === exchange else { return }
        if goesOn { deliverBody(of: exchange) } else { end(exchange, .refused) }
    }

    private func deliverBody(of exchange: StubbedExchange) {
        while machine.pauses.isEmpty {
            guard !exchange.rest.isEmpty else { return end(exchange, exchange.failure) }
            let piece = exchange.rest.prefix(Self.pieceSize)
            let verdict = piece.withUnsafeBytes { receive($0, activity: nil) }
            guard stubbed === exchange else { return }
            switch verdict {
            case .accepted: exchange.rest = exchange.rest[piece.endIndex...]
            case .paused: return
            case .refused: return end(exchange, .refused)
            }
        }
    }

    /// Ends the exchange.
    ///
    /// - Parameter error: the error of the exchange. The state machine prefers its own where it ended the exchange.
    private func end(_ exchange: StubbedExchange, _ error: TransferError?) {
        let head = exchange.phase == .delivering ? exchange.head : nil
        task.core.add(ExchangeMetrics(stubbed: head, to: request, begunAt: begunAt))
        dropStubbedExchange()
        perform(machine.exchangeEnded(TransactionStateMachine.ExchangeEnd(cause: .finished, error: error)))
    }
}

extension TransferError {
    /// The error of a stub's response that its receiver ended; the reason takes its place.
    fileprivate static let refused = TransferError(.truncated, "the response was not received completely")
}
