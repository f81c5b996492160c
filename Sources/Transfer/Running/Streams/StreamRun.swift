import Curl
import Glibc

/// The performer of ``StreamStateMachine``: the execution of a stream task on its loop. It resolves names, connects,
/// and performs the operations of its channel.
final class StreamRun: LoopRun, StreamHandler {
    let task: StreamTask
    private let channel: any StreamLink
    let session: Session
    unowned let core: LoopCore
    private var machine: StreamStateMachine
    private var steps: StreamSteps
    private(set) var peer: StreamPeer?
    private var resolution: RouteResolution?
    private var stream: StreamConnection?
    private var evaluator: AddressEvaluator
    private var trust: TrustOptions?
    /// The handler of the delegate's pending reply about the peer's certificates.
    var question: ((Decision) -> Void)?
    private var timer: Int?

    init(task: StreamTask, core: LoopCore) {
        self.task = task
        self.core = core
        channel = task.link
        session = task.session
        machine = StreamStateMachine(
            stallTimeout: session.configuration.stallTimeout(of: task.originalRequest), now: .now())
        evaluator = AddressEvaluator(session.configuration, task.originalRequest)
        steps = StreamSteps(request: task.originalRequest)
        let run = RunReference(self, of: task, on: core)
        channel.attach {
            run.perform { $0.advance() }
        } breakOff: {
            task.cancel()
        }
    }

    private var request: TransferRequest { task.originalRequest }
    private var configuration: SessionConfiguration { session.configuration }

    private func proxy(to peer: StreamPeer) -> ProxyOptions {
        let host = peer.host.utf8.contains(UInt8(ascii: ":")) ? "[\(peer.host)]" : peer.host
        return ProxyOptions(configuration: configuration, request: request, host: host, port: peer.port)
    }

    // MARK: Life cycle

    func start() {
        // The processing of completed files waits for running downloads. It must not wait for a stream, which may never
        // end.
        session.resources.networkEnded(task.core)
        task.progress.setPhase(.connecting)
        steps.begin()
        do throws(TransferError) {
            let peer = try channel.peer(of: request, configuration)
            self.peer = peer
            let proxy = proxy(to: peer)
            evaluator = AddressEvaluator(configuration, request, proxy: proxy)
            let route = try RouteLookup(to: (peer.host, peer.port), proxy: proxy.url, evaluator: evaluator)
            advance()
            resolve(route, to: peer)
        } catch {
            perform(machine.failed(error))
        }
    }

    func cancel() { perform(machine.failed(.cancelled)) }

    func suspend() {
        channel.suspend(.now())
        machine.suspended()
    }

    func resume() {
        channel.resume()
        advance()
    }

    // MARK: Actions

    private func perform(_ action: StreamAction) {
        switch action {
        case .none: break
        case .connect: connect()
        case .abort: stream?.cancel()
        case .evaluateCertificates: evaluateCertificates()
        case .completeHandshake(let number):
            channel.secured(number)
            advance()
        case .reportReadClose: session.delegate.streamTask(readClosedFor: task)
        case .reportBetterRoute: session.delegate.streamTask(betterRouteDiscoveredFor: task)
        case .performOperations: advance()
        case .startTimer(let deadline): startTimer(until: deadline)
        case .end(let error): end(error)
        }
    }

    private func end(_ error: TransferError?) {
        if let timer { core.cancelTimer(timer) }
        resolution?.stop()
        stream = nil
        question = nil
        channel.detach()
        if let metrics = steps.metrics() { task.core.add(metrics) }
        task.endRun(on: core)
        session.complete(task, channel.conclusion(error))
    }

    /// Performs the channel's pending operations and schedules the next deadline.
    private func advance() {
        if machine.isEnded { return }
        let due = channel.beginTurn(.now())
        if let stream, machine.isConnected {
            while !machine.isEnded, let work = channel.nextWork() { perform(work, on: stream) }
        }
        if machine.isEnded { return }
        assert(machine.violation == nil, machine.violation ?? "")
        perform(machine.operationsPerformed(due: due, isAwaited: channel.isAwaited, .now()))
    }

    private func startTimer(until deadline: MonotonicTime) {
        if let timer { core.cancelTimer(timer) }
        timer = core.after(milliseconds: deadline.milliseconds(since: .now()) + 1) { [weak self] in
            guard let self else { return }
            timer = nil
            if machine.isEnded { return }
            let now = MonotonicTime.now()
            let expired = channel.expire(at: now)
            perform(machine.timerFired(expired, isAwaited: channel.isAwaited, now))
        }
    }

    // MARK: Connecting

    private func resolve(_ route: RouteLookup, to peer: StreamPeer) {
        let plan = RouteResolution.Plan(
            route: route, request: request, server: peer.host, begunAt: steps.begunAt)
        resolution = RouteResolution(plan, number: 0, task: task, core: core) { [unowned self] result in
            switch result {
            case .success:
                if resolution?.duration != nil { steps.lookedUp() }
                perform(machine.routeResolved())
            case .failure(let error): perform(machine.failed(error))
            }
        }
        resolution?.advance()
    }

    private func connect() {
        guard let peer, let route = resolution?.route else { return }
        let proxy = proxy(to: peer)
        // The connect timeout covers name resolution, connection and TLS together.
        let limit = max(1, Int(configuration.connectTimeout(of: request) - steps.elapsed / 1000))
        steps.connecting()
        do throws(CurlError) {
            stream = try core.openStream(to: peer, evaluatesAddresses: evaluator.evaluatesSockets, handler: self) {
                (easy: inout EasyHandle) throws(CurlError) in
                try Self.configure(easy, limit: limit)
                try proxy.apply(to: easy)
                try route.apply(to: &easy)
            }
        } catch {
            let words = "libcurl rejected the connection: \(error.message)"
            perform(machine.connectionEnded(TransferError(.invalidRequest, words)))
        }
    }

    private static func configure(_ easy: borrowing EasyHandle, limit: Int) throws(CurlError) {
        try easy.set(.connectTimeout, to: limit)
        try easy.set(.tcpKeepAlive, to: true)
        try easy.set(.netrc, to: false)
        try easy.set(.http09, to: false)
        try easy.set(.suppressConnectHeaders, to: true)
    }

    func evaluate(address: UnsafeRawBufferPointer) -> Bool { evaluator.allows(address) }

    func streamDidConnect(_ stream: StreamConnection) {
        steps.connected(stream.easy.timing())
        task.progress.setPhase(.transferring)
        channel.connected()
        perform(machine.connected(core.now))
    }

    // MARK: Operation

    private func perform(_ work: StreamOperationQueue.Work, on stream: StreamConnection) {
        switch work {
        case .write(_, let bytes, let offset):
            let taken = bytes.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            channel.accepted(taken, of: bytes.count - offset)
        case .resumeReading: stream.resumeReading()
        case .closeRead:
            stream.closeRead()
            perform(machine.readClosed())
        case .closeWrite:
            stream.closeWrite()
            session.delegate.streamTask(writeClosedFor: task)
        case .capture(let number):
            let (reader, writer) = (StreamReader(channel: task.channel), StreamWriter(channel: task.channel))
            session.delegate.streamTask(task, didBecome: reader, writer)
            channel.captured(number)
        case .secure(let number): startTLS(number, on: stream)
        }
    }

    private func startTLS(_ number: Int, on stream: StreamConnection) {
        let (trust, limit) = (trustOptions(), Int(configuration.connectTimeout(of: request)))
        do throws(StartTLSRefusal) {
            try stream.startTLS { (easy: inout EasyHandle) throws(CurlError) in
                try Self.configure(easy, limit: limit)
                try setSecurity(of: trust, on: easy)
            }
            self.trust = trust
            machine.handshakeBegan(number)
            steps.securing()
        } catch {
            channel.refused(number, TransferError(error))
        }
    }

    private func evaluateCertificates() {
        guard let stream, let trust else { return }
        let (certificates, chain) = (stream.easy.serverCertificates(), trust.chain(of: stream.easy))
        evaluate(certificates, chain, under: trust, port: stream.peer.port) { [weak self] error in
            guard let self else { return }
            perform(machine.certificatesEvaluated(error))
        }
    }

    func stream(_ stream: StreamConnection, didReceive bytes: UnsafeRawBufferPointer) -> Bool {
        machine.bytesMoved(core.now)
        steps.received()
        channel.received(bytes)
        task.progress.transferred(bytes.count)
        task.progress.setCompleted(channel.bytesReceived)
        advance()
        // This call must come last: a reader that makes room afterwards finds reading stopped and resumes it.
        return channel.wantsMore()
    }

    func stream(_ stream: StreamConnection, didWrite count: Int) {
        machine.bytesMoved(core.now)
        channel.sent(count)
        advance()
    }

    func streamCanWrite(_ stream: StreamConnection) {
        channel.hasRoom()
        advance()
    }

    func streamDidCloseRead(_ stream: StreamConnection) {
        machine.bytesMoved(core.now)
        channel.peerClosed()
        perform(machine.readClosed())
        advance()
    }

    func streamDidSecure(_ stream: StreamConnection) {
        steps.secured(stream.easy.timing())
        perform(machine.handshakeEnded(core.now))
    }

    /// Handles a change of the system's routes or addresses.
    func routesDidChange() {
        guard machine.awaitsBetterRoute, let stream, stream.hasBetterRoute() else { return }
        perform(machine.betterRouteFound())
    }

    // MARK: The end

    func streamDidEnd(_ stream: StreamConnection, _ ending: StreamEnding) {
        if !machine.isConnected { steps.connected(stream.easy.timing()) }
        let error: TransferError? =
            switch ending {
            case .finished: nil
            case .cancelled: .cancelled
            case .failed(let error, let systemError): self.error(error, systemError, of: stream.peer)
            }
        perform(machine.connectionEnded(error))
    }

    private func error(_ error: CurlError, _ systemError: Int32, of peer: StreamPeer) -> TransferError {
        let isConnected = machine.isConnected
        // CURLE_COULDNT_CONNECT and CURLE_PROXY: the next attempt resolves the names again.
        if !isConnected, error.code == .couldntConnect || error.code == .proxy {
            resolution?.route.forget(in: session.resolver)
        }
        if let refusal = evaluator.error(resolution?.route.peer.host ?? peer.host) { return refusal }
        var told = TransferError.exchange(error, bodyBegun: isConnected, host: peer.host)
        if !isConnected, systemError == ENETUNREACH || systemError == EHOSTUNREACH {
            told = TransferError(.unreachable, "no route to \(peer.host) from this machine")
        }
        if systemError != 0 { told.systemError = systemError }
        return told
    }
}

extension TransferError {
    /// Creates the error of a call that could not start TLS.
    fileprivate init(_ refusal: StartTLSRefusal) {
        switch refusal {
        case .unreadBytes: self = .unreadPlaintext
        case .notOpen:
            self.init(.secureRefused, "TLS was not started: a side of the connection is closed")
        case .alreadySecure: self.init(.secureRefused, "TLS was not started: it is already in use")
        case .unsentBytes: self.init(.secureRefused, "TLS was not started: bytes are waiting to be sent")
        case .failed(let error): self.init(.secureRefused, "TLS was not started: \(error.message)")
        }
    }
}
