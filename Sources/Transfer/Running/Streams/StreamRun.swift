import Curl
import Glibc

/// The execution of a stream task on its loop: it resolves names, connects, and performs the operations of its channel.
final class StreamRun: RoutedRun, LoopRun, StreamHandler {
    let task: StreamTask
    private let channel: StreamChannel
    let session: any TaskSession
    private let request: TransferRequest
    private let configuration: SessionConfiguration
    private unowned let core: LoopCore

    private var lookup: RouteLookup?
    /// The pending query to the resolver.
    private var lookupQuestion: Resolver.Question?
    /// The time-out of the current name resolution.
    private var lookupTimer: Int?
    private var stream: StreamConnection?
    private var isConnected = false
    private var isEnded = false
    /// The reason for aborting the connection locally, set before the abort.
    private var failure: TransferError?
    private var saidReadClosed = false
    private var saidBetterRoute = false
    /// The number of the TLS handshake in progress.
    private var handshake: Int?

    /// The handler of the delegate's pending reply about the peer's certificates.
    var question: ((Decision) -> Void)?
    private(set) var peerHost = ""
    private var trust: TrustOptions?
    private var judge: AddressJudge

    private var steps: StreamSteps
    private var lastActivity = MonotonicTime.now()
    /// The time since which calls without their own time limit have been waiting without interruption.
    private var awaitedSince: MonotonicTime?
    private var timer: (number: Int, deadline: MonotonicTime)?

    init(task: StreamTask, core: LoopCore) {
        self.task = task
        self.core = core
        channel = task.channel
        session = task.session
        request = task.originalRequest
        configuration = task.session.configuration
        judge = AddressJudge(configuration, request)
        steps = StreamSteps(request: task.originalRequest)
        let session = session
        channel.attach {
            session.perform(task) { ($0 as? StreamRun)?.advance() }
        } breakOff: {
            task.cancel()
        }
    }

    // MARK: Life cycle

    func start() {
        // The processing of completed files waits for running downloads. It must not wait for a stream, which may never
        // end.
        session.resources.networkEnded()
        task.progress.setPhase(.connecting)
        steps.begin()
        do throws(TransferError) {
            let peer = try StreamAddress.peer(of: request.url)
            peerHost = peer.host
            let route = try RouteLookup(
                to: (peer.host, peer.port), proxy: request.proxy ?? configuration.proxy, judge: judge)
            advance()
            try lookUp(peer, by: route)
        } catch {
            end(error)
        }
    }

    func cancel() { fail(.cancelled) }

    func suspend() {
        channel.suspend(.now())
        awaitedSince = nil
    }

    func goOn() {
        channel.goOn()
        advance()
    }

    private func fail(_ error: TransferError) {
        guard let stream else { return end(error) }
        failure = failure ?? error
        stream.cancel()
    }

    private func end(_ error: TransferError?) {
        guard !isEnded else { return }
        isEnded = true
        if let timer { core.cancelTimer(timer.number) }
        if let number = lookupTimer { core.cancelTimer(number) }
        lookupQuestion = nil
        stream = nil
        question = nil
        channel.detach()
        if let metrics = steps.metrics() { task.core.add(metrics) }
        core.release(task.identifier)
        session.complete(task, error)
    }

    // MARK: Connecting

    /// Resolves the next name without addresses, or connects if there is none.
    private func lookUp(_ peer: StreamPeer, by route: RouteLookup) throws(TransferError) {
        var route = route
        while let host = route.next {
            if let known = session.resolver.cached(host) {
                try route.found(known)
                continue
            }
            lookup = route
            let limit = configuration.connectTimeout - steps.elapsed / 1000
            lookupTimer = core.after(milliseconds: limit) { [weak self] in
                self?.end(TransferError(.timedOut, "looking up \(host) took too long"))
            }
            let (session, task) = (session, task)
            lookupQuestion = session.resolver.resolve(host, for: Resolver.Asker(request, of: task)) { answer in
                session.perform(task) { ($0 as? StreamRun)?.take(answer, for: host, peer) }
            }
            return
        }
        lookup = route
        connect(to: peer, by: route)
    }

    private func take(_ answer: Resolver.Answer, for host: String, _ peer: StreamPeer) {
        guard !isEnded, var route = lookup else { return }
        if let number = lookupTimer { core.cancelTimer(number) }
        lookupTimer = nil
        lookupQuestion = nil
        do throws(TransferError) {
            switch answer {
            case .failure(let failure): throw ExchangeLauncher.error(failure, host: host, for: peer.host)
            case .success(let addresses):
                steps.lookedUp()
                try route.found(addresses)
                try lookUp(peer, by: route)
            }
        } catch {
            end(error)
        }
    }

    private func connect(to peer: StreamPeer, by route: RouteLookup) {
        let (request, configuration) = (request, configuration)
        // The connect timeout covers name resolution, connection and TLS together.
        let limit = max(1, Int(configuration.connectTimeout - steps.elapsed / 1000))
        steps.connecting()
        do throws(CurlError) {
            stream = try core.openStream(to: peer, judgesAddresses: judge.judgesSockets, handler: self) {
                (easy: inout EasyHandle) throws(CurlError) in
                try Self.configure(easy, limit: limit)
                try ProxyOptions(configuration: configuration, request: request).apply(to: easy)
                try route.apply(to: &easy)
            }
        } catch {
            end(TransferError(.invalidRequest, "libcurl refuses the connection: \(error.message)"))
        }
    }

    private static func configure(_ easy: borrowing EasyHandle, limit: Int) throws(CurlError) {
        try easy.set(.connectTimeout, to: limit)
        try easy.set(.tcpKeepAlive, to: true)
        try easy.set(.netrc, to: false)
        try easy.set(.http09, to: false)
        try easy.set(.suppressConnectHeaders, to: true)
    }

    func judge(address: UnsafeRawBufferPointer) -> Bool { judge.allows(address) }

    func streamDidConnect(_ stream: StreamConnection) {
        isConnected = true
        lastActivity = core.now
        steps.connected(stream.easy.timing())
        task.progress.setPhase(.transferring)
        channel.connected()
        advance()
    }

    // MARK: Operation

    /// Performs the channel's pending operations and schedules the next deadline.
    private func advance() {
        guard !isEnded else { return }
        let due = channel.beginTurn(.now())
        if let stream, isConnected {
            while !isEnded, let work = channel.nextWork() { perform(work, on: stream) }
        }
        guard !isEnded else { return }
        let stall = stallDeadline()
        guard let next = [due, stall].compactMap({ $0 }).min() else { return }
        // A timer that fires too early schedules itself again.
        if let timer, timer.deadline <= next { return }
        if let timer { core.cancelTimer(timer.number) }
        let number = core.after(milliseconds: next.milliseconds(since: .now()) + 1) { [weak self] in self?.timeIsUp() }
        timer = (number, next)
    }

    private func perform(_ work: StreamOperationQueue.Work, on stream: StreamConnection) {
        switch work {
        case .write(_, let bytes, let offset):
            let taken = bytes.withUnsafeBytes { stream.write(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
            channel.handed(taken, of: bytes.count - offset)
        case .resumeReading: stream.resumeReading()
        case .closeRead:
            stream.closeRead()
            sayReadClosed()
        case .closeWrite:
            stream.closeWrite()
            session.callbacks.streamTask(writeClosedFor: task)
        case .capture(let number):
            let (reader, writer) = (StreamReader(channel: channel), StreamWriter(channel: channel))
            session.callbacks.streamTask(task, didBecome: reader, writer)
            channel.captured(number)
        case .secure(let number): startTLS(number, on: stream)
        }
    }

    private func startTLS(_ number: Int, on stream: StreamConnection) {
        let (trust, limit) = (trustOptions(), Int(configuration.connectTimeout))
        do throws(StartTLSRefusal) {
            try stream.startTLS { (easy: inout EasyHandle) throws(CurlError) in
                try Self.configure(easy, limit: limit)
                try setSecurity(of: trust, on: easy)
            }
            self.trust = trust
            handshake = number
            steps.securing()
        } catch {
            channel.refused(number, Self.error(for: error))
        }
    }

    func stream(_ stream: StreamConnection, didReceive bytes: UnsafeRawBufferPointer) -> Bool {
        lastActivity = core.now
        steps.received()
        channel.received(bytes)
        task.progress.transferred(bytes.count)
        task.progress.setCompleted(channel.bytesReceived)
        advance()
        // This call must come last: a reader that makes room afterwards finds reading stopped and resumes it.
        return channel.wantsMore()
    }

    func stream(_ stream: StreamConnection, didWrite count: Int) {
        lastActivity = core.now
        channel.sent(count)
        advance()
    }

    func streamCanWrite(_ stream: StreamConnection) {
        channel.hasRoom()
        advance()
    }

    func streamDidCloseRead(_ stream: StreamConnection) {
        lastActivity = core.now
        channel.peerClosed()
        sayReadClosed()
        advance()
    }

    func streamDidSecure(_ stream: StreamConnection) {
        lastActivity = core.now
        steps.secured(stream.easy.timing())
        guard let number = handshake, let trust else { return }
        judge(stream.easy.serverCertificates(), under: trust, port: stream.peer.port) { [weak self] error in
            guard let self, !isEnded else { return }
            if let error { return fail(error) }
            handshake = nil
            channel.secured(number)
            advance()
        }
    }

    private func sayReadClosed() {
        guard !saidReadClosed else { return }
        saidReadClosed = true
        session.callbacks.streamTask(readClosedFor: task)
    }

    /// Handles a change of the system's routes or addresses.
    func routesDidChange() {
        guard let stream, isConnected, !saidBetterRoute, stream.hasBetterRoute() else { return }
        saidBetterRoute = true
        session.callbacks.streamTask(betterRouteDiscoveredFor: task)
    }

    // MARK: Time

    private func stallDeadline() -> MonotonicTime? {
        guard configuration.stallTimeout > 0, isConnected, handshake == nil, channel.isAwaited else {
            awaitedSince = nil
            return nil
        }
        let since = awaitedSince ?? .now()
        awaitedSince = since
        return max(lastActivity, since).advanced(milliseconds: configuration.stallTimeout)
    }

    private func timeIsUp() {
        timer = nil
        guard !isEnded else { return }
        let now = MonotonicTime.now()
        if let error = channel.expire(at: now) { return fail(error) }
        if let stall = stallDeadline(), stall <= now {
            return fail(TransferError(.stalled, "no byte for \(configuration.stallTimeout / 1000) seconds"))
        }
        advance()
    }

    // MARK: The end

    func streamDidEnd(_ stream: StreamConnection, _ ending: StreamEnding) {
        if !isConnected { steps.connected(stream.easy.timing()) }
        switch ending {
        case .finished: end(failure)
        case .cancelled: end(failure ?? .cancelled)
        case .failed(let error, let systemError): end(failure ?? self.error(error, systemError, of: stream.peer))
        }
    }

    private func error(_ error: CurlError, _ systemError: Int32, of peer: StreamPeer) -> TransferError {
        // CURLE_COULDNT_CONNECT and CURLE_PROXY: the next attempt resolves the names again.
        if !isConnected, error.code == .couldntConnect || error.code == .proxy { lookup?.forget(in: session.resolver) }
        if let refusal = judge.error(lookup?.peer.host ?? peer.host) { return refusal }
        var told = TransferError.exchange(error, bodyBegun: isConnected, host: peer.host)
        if !isConnected, systemError == ENETUNREACH || systemError == EHOSTUNREACH {
            told = TransferError(.unreachable, "no way to \(peer.host) from this machine")
        }
        if systemError != 0 { told.systemError = systemError }
        return told
    }

    private static func error(for refusal: StartTLSRefusal) -> TransferError {
        switch refusal {
        case .unreadBytes: .unreadPlaintext
        case .notOpen: TransferError(.secureRefused, "TLS was not started: a side of the connection is closed")
        case .alreadySecure: TransferError(.secureRefused, "TLS was not started: it is spoken already")
        case .unsentBytes: TransferError(.secureRefused, "TLS was not started: bytes wait to be sent")
        case .failed(let error): TransferError(.secureRefused, "TLS was not started: \(error.message)")
        }
    }
}
