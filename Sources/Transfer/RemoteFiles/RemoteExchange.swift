import Curl

/// The performer of ``RemoteExchangeStateMachine``: a sequence of steps with a file server, each over its own
/// connection.
///
/// Used on the loop's thread only.
final class RemoteExchange: ExchangeHandler {
    /// The resources of one connection.
    private struct Connection {
        var begunAt = MonotonicTime.now()
        var evaluator: AddressEvaluator
        var route: RouteLookup?
        /// A known_hosts file that makes libssh2 request one type of host key.
        var wish: MemoryFile?
        /// The file of a private key that is kept in memory.
        var key: MemoryFile?
        var exchangeID: Int?
    }

    private unowned var client: any RemoteExchangeClient
    private let task: any LoopTask
    private unowned let core: LoopCore
    private let session: Session
    private var machine: RemoteExchangeStateMachine
    private var connection: Connection
    private var resolution: RouteResolution?
    /// The wait of the next connection for its turn at its host.
    private var turn: RequestTurn?
    private var incoming: RateLimitGate
    private var outgoing: RateLimitGate

    /// The connect and stall timeout, in milliseconds, for the removal of a failed upload's remains.
    private static let cleanUpTimeout: Int64 = 10_000

    init(_ file: RemoteFile, task: any LoopTask, client: any RemoteExchangeClient, core: LoopCore) {
        self.task = task
        self.client = client
        self.core = core
        session = task.session
        machine = RemoteExchangeStateMachine(
            RemoteExchangeStateMachine.Configuration(
                file: file, transportSecurity: task.originalRequest.transportSecurity,
                stallTimeout: session.configuration.stallTimeout(of: task.originalRequest),
                hasLogin: task.originalRequest.credential != nil || file.user != nil))
        connection = Connection(evaluator: AddressEvaluator(session.configuration, task.originalRequest))
        let limits = ByteLimits(task.core)
        let origin = (file.scheme.rawValue, file.host, file.port)
        incoming = RateLimitGate(.download, at: origin, limits: limits, session: session)
        outgoing = RateLimitGate(.upload, at: origin, limits: limits, session: session)
    }

    private var file: RemoteFile { machine.file }
    private var request: TransferRequest { task.originalRequest }

    // MARK: Calls from the run

    func begin(_ step: RemoteStep) {
        if !step.isCleanUp { task.progress.setPhase(.connecting) }
        perform(machine.begin(step))
    }

    /// Aborts the current step with `reason`, which the client gets as its error.
    func cancel(_ reason: TransferError = .cancelled) { perform(machine.cancel(reason)) }

    func suspend() { machine.pause(for: .suspended) }

    func isPaused(for reason: RemotePause) -> Bool { machine.pauses.contains(reason) }

    /// Ends a pause. Must not be called within libcurl's callbacks.
    func resume(after reason: RemotePause) { perform(machine.resume(after: reason)) }

    /// The address and port of the current connection; `nil` where there is none.
    var peerAddress: String? {
        guard let id = connection.exchangeID, let exchange = core.exchange(id) else { return nil }
        return exchange.easy.peerAddress()
    }

    // MARK: Actions

    private func perform(_ action: RemoteExchangeAction) {
        switch action {
        case .none, .evaluateStoredSize: break
        case .readHostKeys:
            do throws(TransferError) {
                perform(machine.hostKeysRead(try readHostKeys()))
            } catch {
                perform(machine.failed(error))
            }
        case .resolve(let attempt): takeTurn(attempt)
        case .start(let attempt):
            do throws(TransferError) {
                try start(attempt)
            } catch {
                perform(machine.failed(error))
            }
        case .abort:
            guard let id = connection.exchangeID, core.exchange(id) != nil else {
                return perform(machine.failed(.cancelled))
            }
            core.cancel(id)
        // libcurl delivers buffered data within this call.
        case .unpause: if let id = connection.exchangeID { core.exchange(id)?.unpause() }
        case .rest(let attempt, let milliseconds): rest(attempt, milliseconds)
        case .checkLimits:
            let now = MonotonicTime.now()
            let action = machine.limitsChecked(max(incoming.wait(now: now), outgoing.wait(now: now)))
            task.progress.setHeldBack(machine.isResting)
            perform(action)
        case .scheduleNudge(let attempt, let milliseconds): scheduleNudge(attempt, milliseconds)
        case .nudge(let attempt, let milliseconds):
            if let id = connection.exchangeID { core.exchange(id)?.nudge() }
            scheduleNudge(attempt, milliseconds)
        case .finish(let ending, let forgetsAddresses):
            if forgetsAddresses { connection.route?.forget(in: session.resolver) }
            resolution?.stop()
            resolution = nil
            turn?.stop()
            turn = nil
            task.progress.setHeldBack(false)
            incoming.giveBack()
            outgoing.giveBack()
            checkInvariants()
            client.didEnd(ending)
        }
    }

    private func readHostKeys() throws(TransferError) -> HostKeyCheck {
        guard CurlLibrary.evaluatesHostKeys else {
            throw TransferError(
                .protocolNotAllowed, "this machine's libcurl has no SSH library that can verify the server's key")
        }
        let policy = request.hostKeys ?? session.configuration.hostKeys
        var known: [[UInt8]] = []
        for path in policy?.files ?? [] { known.append(try KnownHosts.read(path)) }
        return try HostKeyCheck(policy, files: known, host: file.plainHost, port: file.port)
    }

    /// Connects once it is the turn of the connection at its host. Each connection counts as one request.
    private func takeTurn(_ attempt: RemoteAttempt) {
        resolution = nil
        // What an ended task leaves at the server is removed at once: no one waits for it, so it could not be stopped.
        if attempt.step.isCleanUp { return resolve(attempt) }
        turn = RequestTurn.wait(
            at: "\(file.scheme.rawValue)://\(file.host):\(file.port)", isFurther: false, of: task, on: core
        ) { [unowned self] in
            turn = nil
            resolve(attempt)
        }
        if turn == nil { resolve(attempt) }
    }

    private func resolve(_ attempt: RemoteAttempt) {
        let proxy = ProxyOptions(
            configuration: session.configuration, request: request, host: file.host, port: file.port)
        connection = Connection(evaluator: AddressEvaluator(session.configuration, request, proxy: proxy))
        resolution = nil
        do throws(TransferError) {
            if let type = attempt.hostKeyType {
                connection.wish = try MemoryFile(HostKeyCheck.wish(for: type, host: file.plainHost))
            }
            if case .privateKeyText(let text, _)? = request.credential?.kind {
                connection.key = try MemoryFile(Array(text.utf8))
            }
            let route = try RouteLookup(
                to: (file.host, file.port), proxy: proxy.url, evaluator: connection.evaluator)
            if file.scheme.isFTP { try checkDataConnections(route) }
            let plan = RouteResolution.Plan(
                route: route, request: request, server: file.host, begunAt: connection.begunAt)
            resolution = RouteResolution(plan, number: attempt.number, task: task, core: core) {
                [unowned self] result in
                switch result {
                case .success(let route):
                    connection.route = route
                    perform(machine.routeResolved(attempt.number))
                case .failure(let error): perform(machine.failed(error))
                }
            }
        } catch {
            return perform(machine.failed(error))
        }
        resolution?.advance()
    }

    /// Refuses FTP behind a proxy that is given addresses: libcurl resolves the server's name again for each data
    /// connection, and that address would not be checked.
    private func checkDataConnections(_ route: RouteLookup) throws(TransferError) {
        guard route.tellsJudgedAddress, !Resolver.isAddress(file.host) else { return }
        let words = "what \(file.host) leads to cannot be judged for FTP through such a proxy; one of socks5h:// judges"
        throw TransferError(.addressNotAllowed, "\(words) it itself")
    }

    private func start(_ attempt: RemoteAttempt) throws(TransferError) {
        guard let route = connection.route else { throw TransferError(.internal, "a connection without a route") }
        var configuration = session.configuration
        configuration.trustPolicies = session.serverTrustPolicyManager
        configuration.connectTimeout = configuration.connectTimeout(of: request)
        configuration.stallTimeout = configuration.stallTimeout(of: request)
        if attempt.step.isCleanUp {
            configuration.connectTimeout = min(configuration.connectTimeout, Self.cleanUpTimeout)
            configuration.stallTimeout = min(configuration.stallTimeout, Self.cleanUpTimeout)
        }
        var request = request
        if attempt.requiresTLS { request.transportSecurity = .required }
        let options = RemoteOptions(
            configuration: configuration, request: request, file: file, route: route, wish: connection.wish,
            key: connection.key, receiveBuffer: incoming.receiveBuffer(upTo: session.resources.receiveBuffer(on: core)))
        try options.checkLogin()
        try options.checkTrust()
        let evaluatesAddresses = connection.evaluator.evaluatesSockets
        do throws(CurlError) {
            connection.exchangeID = try core.start(handler: self) { (exchange: Exchange) throws(CurlError) in
                try options.apply(attempt.step, to: exchange)
                if evaluatesAddresses { try exchange.evaluatesAddresses() }
            }
        } catch {
            throw TransferError(.invalidRequest, "libcurl rejected the request: \(error.message)")
        }
    }

    private func rest(_ attempt: Int, _ milliseconds: Int64) {
        task.progress.setHeldBack(true)
        // The limit is checked again from time to time, because it may be raised.
        _ = core.after(milliseconds: min(milliseconds, ByteLimits.longestRest)) { [weak self] in
            guard let self else { return }
            perform(machine.delayEnded(attempt))
            checkInvariants()
        }
    }

    private func scheduleNudge(_ attempt: Int, _ milliseconds: Int64) {
        _ = core.after(milliseconds: milliseconds) { [weak self] in
            guard let self else { return }
            perform(machine.nudgeDue(attempt, now: MonotonicTime.now().milliseconds))
        }
    }

    /// Checks the invariants of ``RemoteExchangeStateMachine`` in debug builds. Called between two events.
    private func checkInvariants(_ event: StaticString = #function) {
        assert(machine.violation == nil, "\(event): \(machine.violation ?? "")")
    }

    // MARK: Calls from the exchange

    var holdsPause: Bool { !machine.pauses.isEmpty }

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        guard let reply = FTPReply(line) else { return true }
        let action = machine.replyReceived(reply, now: MonotonicTime.now().milliseconds)
        if case .evaluateStoredSize(let size) = action, let error = client.evaluate(storedSize: size) {
            machine.clientFailed(error)
            return false
        }
        perform(action)
        return true
    }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        switch machine.bytesReceived() {
        case .ignore: return .accepted
        case .pause: return .paused
        case .pass(let begins): if begins { task.progress.setPhase(.transferring) }
        }
        if mustPauseForRate(&incoming, toPass: bytes.count) { return .paused }
        switch client.receive(bytes, of: machine.facts(stated(exchange))) {
        case .accepted:
            incoming.pass(bytes.count)
            return .accepted
        case .paused(let reason):
            machine.pause(for: reason)
            return .paused
        case .refused(let error):
            machine.clientFailed(error)
            return .refused
        }
    }

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict {
        switch machine.bytesWanted() {
        case .ignore: return .filled(0)
        case .pause(let begins):
            if begins { task.progress.setPhase(.transferring) }
            return .paused
        case .pass(let begins): if begins { task.progress.setPhase(.transferring) }
        }
        let piece = outgoing.piece(upTo: space.count)
        if mustPauseForRate(&outgoing, toPass: piece) { return .paused }
        switch client.fill(UnsafeMutableRawBufferPointer(rebasing: space[..<piece])) {
        case .filled(let count):
            outgoing.pass(count)
            return .filled(count)
        case .paused(let reason):
            machine.pause(for: reason)
            return .paused
        case .failed(let error):
            machine.clientFailed(error)
            return .failed
        }
    }

    /// Returns whether a rate limit is exhausted. If so, the transfer is paused until the bytes may pass.
    private func mustPauseForRate(_ gate: inout RateLimitGate, toPass bytes: Int) -> Bool {
        let wait = gate.wait(toPass: bytes, now: core.now)
        if wait > 0 { perform(machine.limitReached(wait)) }
        return wait > 0
    }

    func rewind(to offset: Int64) -> Bool { client.rewind(to: offset) }

    func evaluate(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool { true }

    func evaluate(hostKey: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        machine.hostKeyReceived(Array(hostKey))
    }

    func evaluate(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        connection.evaluator.allows(address)
    }

    func goesOn(_ exchange: Exchange) -> Bool { machine.continues(isCancelling: task.state == .canceling) }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        connection.exchangeID = nil
        task.core.add(
            ExchangeMetrics(
                exchange.easy.timing(), request: request, response: nil, begunAt: connection.begunAt,
                lookup: resolution?.duration))
        var end = RemoteExchangeEnd(ending: ending, stated: stated(exchange))
        end.duration = MonotonicTime.now().milliseconds(since: connection.begunAt)
        if case .failed(let error) = ending {
            let words = exchange.failureText.map { CurlError(error, message: $0) } ?? error
            end.ending = .failed(words)
            end.hasExpired = exchange.hasExpired
            let peer = connection.route?.peer
            end.addressError = connection.evaluator.error(peer?.host ?? file.host)
            let proxy = ProxyOptions(
                configuration: session.configuration, request: request, host: file.host, port: file.port)
            let server = (host: file.host, port: file.port)
            end.connectError = peer.flatMap { peer in
                TransferError.connecting(words, exchange, to: peer, for: server, by: proxy)?
                    .blamed(on: proxy.url, exchange, peer: peer, server: server)
            }
            if exchange.hasUnaskedInput { end.connectError = .unaskedInput(from: file.host) }
        }
        perform(machine.ended(end))
    }

    private func stated(_ exchange: Exchange) -> RemoteFacts {
        RemoteFacts(size: exchange.easy.expectedBodySize(), time: exchange.easy.fileTime())
    }
}
