import Curl

/// The calls from the exchange.
extension Transaction: ExchangeHandler {
    var holdsPause: Bool { !machine.pauses.isEmpty }

    // MARK: The response

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        guard machine.awaitsHead else { return perform(machine.trailerReceived(line.count)) }
        switch parser.add(line) {
        case .incomplete: return true
        case .tooLong:
            return perform(machine.refuse(TransferError(.tooLarge, "the server's header fields are too long")))
        case .complete(let head):
            exchange.recordHead()
            cookies?.receive(head)
            if let coding = head.unaskedTransferCoding {
                let words = "the server sent its response in a transfer coding that was not requested (\(coding))"
                return perform(machine.refuse(TransferError(.truncated, words)))
            }
            if url?.scheme == "https", head.isUnframed(after: request.method) { exchange.watchesEndOfTLS() }
            if head.delimitsItself(after: request.method) { exchange.closesAfterExcess() }
            return receive(head)
        }
    }

    /// Receives a complete head.
    ///
    /// - Returns: whether the exchange goes on.
    func receive(_ head: ResponseHead) -> Bool {
        if !isQuiet {
            task.core.setResponse(head, to: sentCredential(for: head))
            session.delegate.task(task, didReceive: head)
        }
        client.didReceiveHead(head)
        let asksAboutRedirects =
            RedirectRule.isRedirect(head.status) && session.delegate.decidesRedirects(of: task)
        return perform(machine.headReceived(head, asksAboutRedirects: asksAboutRedirects))
    }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        receive(bytes, activity: exchange)
    }

    /// Receives bytes of the response's body.
    ///
    /// - Parameter exchange: libcurl's exchange, whose stalls are observed; `nil` for one with a stub.
    func receive(_ bytes: UnsafeRawBufferPointer, activity exchange: Exchange?) -> BodyVerdict {
        switch machine.bytesReceived(bytes.count) {
        case .pass: break
        case .discard: return .accepted
        case .pause: return .paused
        case .refuse: return .refused
        }
        // One load of the unowned reference, which counts references, serves both calls.
        let client = client
        exchange?.activity.isWaitingToSend = client.isWaitingToSend
        if mustPauseForRate(&incoming, toPass: bytes.count) {
            return leavesForRate(exchange) && !perform(machine.leaveSharedConnection(inCallback: true))
                ? .refused : .paused
        }
        switch client.didReceiveBody(bytes, of: self) {
        case .accepted:
            incoming?.pass(bytes.count)
            return .accepted
        case .paused(let reason):
            machine.pause(reason)
            return .paused
        case .refused(let error):
            if let error { perform(machine.refuse(error)) }
            return .refused
        }
    }

    /// Whether the client requests the rest over its own connection because a rate limit pauses the response again and
    /// again, beside other requests on the connection.
    private func leavesForRate(_ exchange: Exchange?) -> Bool {
        guard machine.connection.isShared, let exchange, !exchange.staysOnConnection, core.sharesConnection(exchange)
        else { return false }
        let leaves = client.leavesSharedConnection(self)
        exchange.staysOnConnection = !leaves
        return leaves
    }

    func leavesSharedConnection(_ exchange: Exchange) -> Bool {
        guard machine.connection.isShared, client.leavesSharedConnection(self) else { return false }
        perform(machine.leaveSharedConnection(inCallback: false))
        return true
    }

    // MARK: The request's body

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict { fill(space) }

    /// Writes bytes of the request's body to `space`.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict {
        switch machine.bytesRequested() {
        case .pass: break
        case .pause: return .paused
        case .discard, .refuse: return .failed
        }
        let piece = outgoing?.piece(upTo: space.count) ?? space.count
        if mustPauseForRate(&outgoing, toPass: piece) { return .paused }
        switch client.writeBody(to: UnsafeMutableRawBufferPointer(rebasing: space[..<piece])) {
        case .written(let count):
            outgoing?.pass(count)
            if machine.bytesSent(count) { task.progress.setPhase(.transferring) }
            return .filled(count)
        case .paused(let reason):
            machine.pause(reason)
            return .paused
        case .failed(let error):
            perform(machine.refuse(error))
            return .failed
        }
    }

    func rewind(to offset: Int64) -> Bool { client.rewindBody(to: offset) }

    // MARK: The connection

    func evaluate(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { launcher.allows(address) }

    func evaluate(connectedAddress address: String, on exchange: Exchange) -> Bool {
        launcher.allowsConnection(to: address)
    }

    func evaluate(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool {
        // libcurl provides no certificates for a reused connection, which was evaluated when it was made. If the trust
        // options forbid reuse, a missing chain is rejected.
        if certificates.chain.isEmpty, !trust.needsOwnConnection { return true }
        guard let url else { return false }
        let shown = ServerTrust(
            host: url.host, certificates: certificates.chain, isChainValid: !trust.isLenient,
            chain: trust.chain(of: exchange.easy), isPinnedByHost: trust.isPinnedByHost)
        let action = machine.certificatesReceived(shown, asksDelegate: trust.asksDelegate)
        return perform(action) && machine.awaitsHead
    }

    // MARK: The end

    /// The measurements of the exchange under way; `nil` where there is none.
    var exchangeUnderWay: ExchangeMetrics? {
        guard isUnderWay, let exchange = launcher.exchange else { return nil }
        return metrics(of: exchange)
    }

    private func metrics(of exchange: Exchange) -> ExchangeMetrics {
        ExchangeMetrics(
            exchange.easy.timing(), request: request, response: task.response, begunAt: begunAt,
            lookup: launcher.lookup, turnWait: launcher.turnWait)
    }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        guard isUnderWay else { return }
        var end = TransactionStateMachine.ExchangeEnd(
            cause: TransactionStateMachine.ExchangeEnd.Cause(ending),
            error: launcher.error(for: ending, of: exchange, bodyBegun: bodyBegun))
        if case .finished = ending {
            if exchange.lacksEndOfTLS { end.error = .incompleteClose(host: url?.host ?? "the server") }
        } else if let url {
            end.offersHTTP2 = !usesHTTP1(at: url)
            end.hasPriorKnowledge = session.configuration.httpVersion(of: request, at: url) == .http2PriorKnowledge
        }
        end.refusedConnection = launcher.refusedConnection
        if exchange.hasUnaskedInput {
            end.hasUnaskedInput = true
            end.error = .unaskedInput(from: url?.host ?? "the server")
        }
        end.mayForgive = trust.mayForgive && !trust.isLenient
        // A connection that was refused carried nothing of the request.
        if !end.refusedConnection, !end.hasUnaskedInput {
            var metrics = metrics(of: exchange)
            metrics.departure = machine.departure(at: end)
            task.core.add(metrics)
        }
        checkInvariants()
        perform(machine.exchangeEnded(end))
    }
}
