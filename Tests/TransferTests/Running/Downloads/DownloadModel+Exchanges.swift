import Curl
import TestSupport

@testable import Transfer

/// The exchanges of a model: what `Transaction` and libcurl do with real ones.
extension DownloadModel {
    // MARK: Requests

    private mutating func send(_ request: TransferRequest, to url: CurlURL, _ number: Int) {
        var range = machine.requestRange(number, at: url.text, facts)
        if case .overlap(let overlap) = range { range = machine.overlapBegins(number, at: start(of: overlap)) }
        guard let index = index(of: number) else { return }
        connections[index].parser = ResponseHeadParser()
        connections[index].request = ModelRequest(url, range)
        connections[index].line = (network.take(to: url.origin), url.origin)
    }

    private func server(of number: Int) -> ModelServer? {
        let source = machine[number]?.source ?? 0
        return servers.indices.contains(source) ? servers[source] : servers.first
    }

    mutating func respond(_ number: Int) {
        guard let index = index(of: number), let request = connections[index].request,
            let (line, origin) = connections[index].line
        else { return }
        requests += 1
        let view = network.begin(line.number, at: now)
        let answer =
            allowance > 0 ? server(of: number)?.response(to: request, over: view) : .raw()
        guard let answer else { return endExchange(number, .failed(.couldntConnect)) }
        // A reset discards what is on its way, but brings something each time.
        let loss = Int64.random(in: 0...min(300_000, answer.length / 2), using: &generator)
        let response = ModelExchange(answer, loss: loss)
        if line.isReused, response.isSilentEnd {
            // libcurl repeats a request over another connection where a reused one turns out to be closed.
            network.end(line.number, keptFor: nil, at: now)
            connections[index].line = (network.take(to: origin), origin)
            return respond(number)
        }
        connections[index].request = nil
        connections[index].response = response
        connections[index].readAt = now
        while let index = self.index(of: number), connections[index].response?.hasHead == false {
            guard let step = connections[index].response?.next(upTo: 0), take(step, number) else { return }
        }
    }

    // MARK: Responses

    /// Reads on in a response up to the next bytes of the body, or to the end.
    mutating func read(_ number: Int) {
        guard let index = index(of: number) else { return }
        let elapsed = now - connections[index].readAt
        connections[index].readAt = now
        while let index = self.index(of: number),
            let step = connections[index].response?.next(upTo: min(settings.chunk, allowance), after: elapsed)
        {
            guard take(step, number) else { return }
            if case .body = step { return }
        }
    }

    /// - Returns: whether the exchange goes on.
    private mutating func take(_ step: ModelExchange.Step, _ number: Int) -> Bool {
        let goesOn: Bool
        switch step {
        case .line(let line): goesOn = line.withUnsafeBytes { receive($0, number) }
        case .body(let content):
            if allowance != .max { allowance -= content.count }
            goesOn = receive(content, number)
            if allowance == 0 {
                for index in connections.indices { connections[index].response?.close() }
            }
        case .end(let ending):
            if case .stalled = ending { now += Self.stallTimeout }
            endExchange(number, ending)
            return false
        }
        if !goesOn { endExchange(number, .failed(.abortedByCallback)) }
        return goesOn
    }

    private mutating func receive(_ line: UnsafeRawBufferPointer, _ number: Int) -> Bool {
        guard let index = index(of: number) else { return true }
        guard connections[index].transaction.awaitsHead else {
            return report(number) { $0.trailerReceived(line.count) }
        }
        switch connections[index].parser.add(line) {
        case .incomplete: return true
        case .tooLong: return report(number) { $0.refuse(TransferError(.tooLarge, "fields")) }
        case .complete(let head): return report(number) { $0.headReceived(head, asksAboutRedirects: false) }
        }
    }

    private mutating func receive(_ content: ModelContent, _ number: Int) -> Bool {
        guard let index = index(of: number) else { return false }
        let count = Int(content.count)
        switch connections[index].transaction.bytesReceived(count) {
        case .pass: break
        case .discard: return true
        case .pause, .refuse: return false
        }
        received += content.count
        let (position, isDecoding) = (connections[index].writer.position, connections[index].writer.decoder != nil)
        do throws(TransferError) {
            var action = machine.bytesReceived(count, on: number, at: position, isDecoding: isDecoding)
            if action == .claimReached { action = machine.claimReached(number, count, at: position, facts) }
            switch action {
            case .append: try append(content, number)
            case .fulfil(let count):
                try append(content.part(0, Int64(count)), number)
                return report(number) { $0.refuse(.cancelled) }
            case .ignore: break
            case .refuse, .claimReached: return false
            case .fail(let error): throw error
            }
            return true
        } catch {
            machine.bodyRefused(number, error)
            return report(number) { $0.refuse(error) }
        }
    }

    mutating func endExchange(_ number: Int, _ ending: ModelExchange.Ending, isCancelled: Bool = false) {
        guard let index = index(of: number), connections[index].isBusy else { return }
        release(number, isFinished: { if case .finished = ending { true } else { false } }())
        var end = TransactionStateMachine.ExchangeEnd(cause: .finished)
        let bodyBegun = connections[index].transaction.exchange.bodyBegun
        switch ending {
        case _ where isCancelled: (end.cause, end.error) = (.cancelled, .cancelled)
        case .finished: break
        case .stalled: (end.cause, end.error) = (.stalled, TransferError(.stalled, "no byte"))
        case .failed(let code):
            end.cause = .failed(code)
            end.error = .exchange(CurlError(code, message: "broken"), bodyBegun: bodyBegun, host: "own")
        }
        report(number) { $0.exchangeEnded(end) }
    }

    /// Ends the use of the connection under a request; a server sees a moment later that it was closed.
    mutating func release(_ number: Int, isFinished: Bool = false) {
        guard let index = index(of: number) else { return }
        if let (line, origin) = connections[index].line {
            let isKept = isFinished && connections[index].response?.isReusable ?? false
            let delay = isFinished ? 0 : Int64.random(in: 0...50, using: &generator)
            network.end(line.number, keptFor: isKept ? origin : nil, at: now + delay)
        }
        connections[index].line = nil
        connections[index].request = nil
        connections[index].response = nil
    }

    // MARK: Actions of a transaction

    /// Reports an event to a connection's transaction, and performs the action that comes back.
    ///
    /// - Returns: whether the exchange goes on.
    @discardableResult
    mutating func report(
        _ number: Int, _ event: (inout TransactionStateMachine) -> TransactionAction
    ) -> Bool {
        guard let index = index(of: number) else { return true }
        return perform(event(&connections[index].transaction), number)
    }

    private mutating func perform(_ action: TransactionAction, _ number: Int) -> Bool {
        switch action {
        case .proceed, .resume: return true
        case .refuse, .omitExpectation: return false
        case .cancelExchange:
            guard let index = index(of: number), connections[index].isBusy else {
                return report(number) { $0.exchangeWasAbsent() }
            }
            endExchange(number, .failed(.abortedByCallback), isCancelled: true)
        case .send(let request, let url): send(request, to: url, number)
        case .avoidHTTP2(_, let next): return perform(next, number)
        case .deliverHead(let head, let url):
            let disposition = headReceived(head, at: url, number)
            return report(number) { $0.headHandled(disposition) }
        case .end(let error): transactionEnded(number, error)
        case .ask, .evaluate, .deliverDecision: fault = "an action that the model does not know"
        }
        return true
    }

    private mutating func headReceived(_ head: ResponseHead, at url: CurlURL, _ number: Int) -> HeadDisposition {
        let context = DownloadStateMachine.HeadContext(
            statedDigest: stated?.digest, hasDestinationDigest: isPlaced && settings.digest != nil,
            wallTime: Self.wallTime + now)
        guard case .receive(let plan) = machine.headReceived(number, head, at: url, context, facts) else {
            return .discard
        }
        do throws(TransferError) {
            try begin(plan, head, at: url, number)
        } catch {
            machine.bodyRefused(number, error)
            return .refuse(error)
        }
        perform(machine.bodyBegan(number, plan, head, at: url, facts))
        return .receive
    }

    private mutating func transactionEnded(_ number: Int, _ error: TransferError?) {
        guard let index = index(of: number) else { return }
        let writer = connections[index].writer
        var end = DownloadStateMachine.ExchangeEnd(
            error: error, decodingError: writer.decoder?.failureAtEnd(),
            hasDigest: isPlaced && settings.digest != nil, position: writer.position)
        connections[index].writer.decoder = nil
        if writer.position < writer.overlapEnd {
            end.overlapError = TransferError(.remoteChanged, "the file is shorter")
        }
        perform(machine.ended(number, end, facts))
    }
}
