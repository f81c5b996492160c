import Curl
import Glibc

/// A sequence of steps with a file server, each over its own connection.
///
/// Used on the loop's thread only.
final class RemoteExchange: ExchangeHandler {
    private unowned var client: any RemoteExchangeClient
    private let task: any LoopTask
    private unowned let core: LoopCore
    private let session: any TaskSession
    let file: RemoteFile

    private var step: RemoteStep?
    /// The number of steps so far, by which timers of earlier steps are recognised and ignored.
    private var number = 0
    private var incoming: RateLimitGate
    private var outgoing: RateLimitGate
    private var hasBegun = false
    private var check: HostKeyCheck?
    private var wish: MemoryFile?
    private var exchangeID: Int?
    private var pauses: Transaction.Pauses = []
    private var begunAt = MonotonicTime.now()
    private var lastReply: FTPReply?
    /// The file size that an FTP server reported, in bytes.
    private var toldSize: Int64?
    /// Whether an FTP server has refused logins without TLS.
    private var needsTLS = false
    /// Whether bytes of the file were received or sent in this step.
    private(set) var bodyBegun = false
    /// Whether this step was paused at any time.
    private(set) var hasPaused = false
    /// The reason for aborting a step locally, set before the abort. It takes precedence over libcurl's error.
    var failure: TransferError?
    /// Whether this is a clean-up after the end of the task, which cannot be cancelled.
    var isTidyingUp = false

    /// The number of launches and cancellations, by which late replies of the resolver are recognised and ignored.
    private var attempt = 0
    private var timer: Int?
    private var proceed: ((Resolver.Answer?) -> Void)?
    /// The pending query to the resolver.
    private var question: Resolver.Question?
    private var lookup: Int64?
    private var route: RouteLookup?
    private var judge: AddressJudge
    /// The time at which opening of a data connection began.
    private var dataConnectionSince: MonotonicTime?

    init(_ file: RemoteFile, task: any LoopTask, client: any RemoteExchangeClient, core: LoopCore) {
        self.file = file
        self.task = task
        self.client = client
        self.core = core
        session = task.session
        judge = AddressJudge(session.configuration, task.originalRequest)
        let limits = ByteLimits(task.core)
        let origin = (file.scheme.rawValue, file.host, file.port)
        incoming = RateLimitGate(.download, at: origin, limits: limits, session: session)
        outgoing = RateLimitGate(.upload, at: origin, limits: limits, session: session)
    }

    /// The time since the step began, in milliseconds.
    var duration: Int64 { MonotonicTime.now().milliseconds(since: begunAt) }

    private var request: TransferRequest { task.originalRequest }

    // MARK: Beginning

    func begin(_ step: RemoteStep) {
        self.step = step
        number += 1
        hasBegun = true
        failure = nil
        bodyBegun = false
        hasPaused = pauses.contains(.suspended)
        lastReply = nil
        toldSize = nil
        check = nil
        stopResting()
        pauses.formIntersection(.suspended)
        if !isTidyingUp { task.progress.setPhase(.connecting) }
        do throws(TransferError) {
            if file.scheme == .sftp { check = try makeCheck() }
            try connect()
        } catch {
            end(error)
        }
    }

    private func makeCheck() throws(TransferError) -> HostKeyCheck {
        guard CurlLibrary.judgesHostKeys else {
            throw TransferError(
                .protocolNotAllowed, "this machine's libcurl has no SSH in which the server's key can be judged")
        }
        let policy = request.hostKeys ?? session.configuration.hostKeys
        var known: [[UInt8]] = []
        for path in policy?.files ?? [] { known.append(try KnownHosts.read(path)) }
        return try HostKeyCheck(policy, files: known, host: file.plainHost, port: file.port)
    }

    private func connect() throws(TransferError) {
        attempt += 1
        begunAt = MonotonicTime.now()
        lookup = nil
        wish = nil
        if let next = check?.next(), case .type(let type) = next {
            wish = try MemoryFile(HostKeyCheck.wish(for: type, host: file.plainHost))
        }
        judge = AddressJudge(session.configuration, request)
        let route = try RouteLookup(
            to: (file.host, file.port), proxy: request.proxy ?? session.configuration.proxy, judge: judge)
        if file.scheme.isFTP { try checkDataConnections(route) }
        try lookUp(route)
    }

    /// Refuses FTP behind a proxy that is given addresses: libcurl resolves the server's name again for each data
    /// connection, and that address would not be checked.
    private func checkDataConnections(_ route: RouteLookup) throws(TransferError) {
        guard route.tellsJudgedAddress, !Resolver.isAddress(file.host) else { return }
        let words = "what \(file.host) leads to cannot be judged for FTP through such a proxy; one of socks5h:// judges"
        throw TransferError(.addressNotAllowed, "\(words) it itself")
    }

    /// Resolves the next name without addresses, or connects if there is none.
    private func lookUp(_ route: RouteLookup) throws(TransferError) {
        var route = route
        while let host = route.next {
            guard let known = session.resolver.cached(host) else { return ask(for: host, on: route) }
            try route.found(known)
        }
        try start(route)
    }

    private func ask(for host: String, on route: RouteLookup) {
        // The run holds this exchange, and the exchange holds the closure. It is released when the reply arrives or the
        // run ends.
        proceed = { [unowned self] answer in
            do throws(TransferError) {
                switch answer {
                case .success(let addresses):
                    var route = route
                    try route.found(addresses)
                    try lookUp(route)
                case .failure(let failure): throw ExchangeLauncher.error(failure, host: host, for: file.host)
                case nil: throw TransferError(.timedOut, "looking up \(host) took too long")
                }
            } catch {
                end(error)
            }
        }
        let attempt = attempt
        let limit = session.configuration.connectTimeout - MonotonicTime.now().milliseconds(since: begunAt)
        timer = core.after(milliseconds: limit) { [weak self] in self?.resolved(nil, attempt: attempt) }
        question = session.resolver.resolve(host, for: Resolver.Asker(request, of: task)) { [session, task] answer in
            session.perform(task) { run in
                (run as? any RemoteRun)?.exchange.resolved(answer, attempt: attempt)
            }
        }
    }

    /// Continues after the resolver's reply.
    ///
    /// - Parameter answer: the reply; `nil` after the time-out.
    private func resolved(_ answer: Resolver.Answer?, attempt: Int) {
        guard attempt == self.attempt, let proceed else { return }
        lookup = Int64((MonotonicTime.now().nanoseconds - begunAt.nanoseconds) / 1000)
        self.proceed = nil
        question = nil
        if let timer { core.cancelTimer(timer) }
        timer = nil
        proceed(answer)
    }

    private func start(_ route: RouteLookup) throws(TransferError) {
        guard let step else { return }
        self.route = route
        var configuration = session.configuration
        if isTidyingUp {
            configuration.connectTimeout = min(configuration.connectTimeout, Self.tidyingTimeout)
            configuration.stallTimeout = min(configuration.stallTimeout, Self.tidyingTimeout)
        }
        var request = request
        if needsTLS { request.transportSecurity = .required }
        let options = RemoteOptions(
            configuration: configuration, request: request, file: file, route: route, wish: wish,
            receiveBuffer: incoming.receiveBuffer(upTo: session.resources.receiveBuffer(on: core)))
        try options.checkLogin()
        try options.checkTrust()
        let judgesAddresses = judge.judgesSockets
        do throws(CurlError) {
            exchangeID = try core.start(handler: self) { (exchange: Exchange) throws(CurlError) in
                try options.apply(step, to: exchange)
                if judgesAddresses { try exchange.judgesAddresses() }
            }
        } catch {
            throw TransferError(.invalidRequest, "libcurl refuses the request: \(error.message)")
        }
    }

    /// The connect and stall timeout, in milliseconds, for the removal of a failed upload's remains.
    private static let tidyingTimeout: Int64 = 10_000

    // MARK: Calls from outside

    /// Whether a step has begun and its end has not been reported.
    var isUnderWay: Bool { step != nil }

    /// Aborts the current step with `reason` and notifies the client.
    func cancel(_ reason: TransferError = .cancelled) {
        guard !isTidyingUp, step != nil || !hasBegun else { return }
        failure = reason
        attempt += 1
        proceed = nil
        question = nil
        if let timer { core.cancelTimer(timer) }
        timer = nil
        if let id = exchangeID, core.exchange(id) != nil { core.cancel(id) } else { end(reason) }
    }

    var holdsPause: Bool { !pauses.isEmpty }

    /// Whether the task is suspended.
    var isSuspended: Bool { pauses.contains(.suspended) }

    func pause(_ reason: Transaction.Pauses) {
        pauses.insert(reason)
        hasPaused = true
    }

    /// Removes a pause reason. Must not be called within libcurl's callbacks.
    func resume(_ reason: Transaction.Pauses) {
        guard pauses.contains(reason) else { return }
        pauses.remove(reason)
        // libcurl delivers buffered data within this call.
        if pauses.isEmpty, let id = exchangeID { core.exchange(id)?.unpause() }
    }

    // MARK: Calls from the exchange

    private func facts(_ exchange: Exchange) -> RemoteFacts {
        guard let step else { return RemoteFacts() }
        var facts = RemoteFacts(size: exchange.easy.expectedBodySize(), time: exchange.easy.fileTime())
        guard case .fetch(let offset) = step.work else { return facts }
        facts.size = file.scheme.isFTP ? toldSize : facts.size.flatMap { Self.sum($0, offset) }
        return facts
    }

    /// Returns the sum, or `nil` on overflow: a server may report any number of remaining bytes.
    private static func sum(_ rest: Int64, _ offset: Int64) -> Int64? {
        let (size, isNone) = rest.addingReportingOverflow(offset)
        return isNone ? nil : size
    }

    private var isBody: Bool {
        switch step?.work {
        case .fetch, .store: true
        // libcurl delivers the size and time of an FTP file like a body.
        case .look, .command, nil: false
        }
    }

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        guard let reply = FTPReply(line) else { return true }
        // The reply to QUIT does not explain a failure.
        if reply.code != 221 { lastReply = reply }
        if case .fetch(let offset) = step?.work { noteSize(reply, offset) }
        followDataConnection(reply)
        guard case .store = step?.work, let size = reply.size else { return true }
        return client.judge(storedSize: size)
    }

    /// Records the file size in a reply. The replies to MDTM and SIZE have the same code, but the reply to MDTM
    /// precedes the data connection.
    private func noteSize(_ reply: FTPReply, _ offset: Int64) {
        if dataConnectionSince != nil, let size = reply.size { toldSize = size }
        if toldSize ?? 0 == 0, let rest = reply.announcedSize { toldSize = Self.sum(rest, offset) }
    }

    /// Tracks the opening of a data connection. Between the reply with the server's port and the reply that starts the
    /// transfer, libcurl must be woken up; see ``Exchange/nudge()``.
    private func followDataConnection(_ reply: FTPReply) {
        switch reply.code {
        case 227, 229:
            let isNudging = dataConnectionSince != nil
            dataConnectionSince = .now()
            if !isNudging { scheduleNudge() }
        case 100..<200: dataConnectionSince = nil
        default: break
        }
    }

    /// Schedules the next wake-up. The interval grows, because a distant server does not justify a wake-up every few
    /// milliseconds.
    private func scheduleNudge() {
        guard let since = dataConnectionSince else { return }
        let number = attempt
        let wait = min(100, 5 + MonotonicTime.now().milliseconds(since: since) / 8)
        _ = core.after(milliseconds: wait) { [weak self] in
            guard let self, number == attempt, dataConnectionSince != nil, let id = exchangeID else { return }
            core.exchange(id)?.nudge()
            scheduleNudge()
        }
    }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        guard isBody else { return .accepted }
        guard pauses.isEmpty else { return .paused }
        begins()
        if mustRest(&incoming, toPass: bytes.count) { return .paused }
        let verdict = client.receive(bytes, of: facts(exchange))
        if case .accepted = verdict { incoming.pass(bytes.count) }
        return verdict
    }

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict {
        // The server has accepted the file name.
        begins()
        guard pauses.isEmpty else { return .paused }
        let piece = outgoing.piece(upTo: space.count)
        if mustRest(&outgoing, toPass: piece) { return .paused }
        let verdict = client.fill(UnsafeMutableRawBufferPointer(rebasing: space[..<piece]))
        if case .filled(let count) = verdict { outgoing.pass(count) }
        return verdict
    }

    /// Returns whether a rate limit is exhausted. If so, the transfer is paused until the bytes may pass.
    private func mustRest(_ turn: inout RateLimitGate, toPass bytes: Int) -> Bool {
        let wait = turn.wait(toPass: bytes, now: core.now)
        if wait > 0 { rest(wait) }
        return wait > 0
    }

    private func stopResting() {
        if pauses.contains(.rate) { task.progress.setHeldBack(false) }
        incoming.giveBack()
        outgoing.giveBack()
    }

    private func rest(_ milliseconds: Int64) {
        pauses.insert(.rate)
        task.progress.setHeldBack(true)
        let step = number
        // The limit is checked again from time to time, because it may be raised.
        _ = core.after(milliseconds: min(milliseconds, ByteLimits.longestRest)) { [weak self] in
            guard let self, step == number, self.step != nil else { return }
            let now = MonotonicTime.now()
            let left = max(incoming.wait(now: now), outgoing.wait(now: now))
            if left > 0 { return rest(left) }
            task.progress.setHeldBack(false)
            resume(.rate)
        }
    }

    private func begins() {
        guard !bodyBegun else { return }
        bodyBegun = true
        task.progress.setPhase(.transferring)
    }

    func rewind(to offset: Int64) -> Bool { client.rewind(to: offset) }

    func judge(_ certificates: ServerCertificates, on exchange: Exchange) -> Bool { true }

    func judge(hostKey: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        check?.judge(Array(hostKey)) ?? false
    }

    func judge(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { judge.allows(address) }

    func goesOn(_ exchange: Exchange) -> Bool { isTidyingUp || task.state != .canceling }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        guard step != nil else { return }
        exchangeID = nil
        dataConnectionSince = nil
        task.core.add(
            ExchangeMetrics(
                exchange.easy.timing(), request: request, response: nil, begunAt: begunAt, lookup: lookup))
        if case .failed(let error) = ending, failure == nil, asksForAnotherKey(error) || asksForTLS(error) {
            do throws(TransferError) { return try connect() } catch { return end(error) }
        }
        var result = RemoteEnding(error: nil, facts: facts(exchange))
        switch ending {
        case .finished: break
        case .cancelled: result.error = .cancelled
        case .stalled: result.error = stalled
        case .failed(let error):
            // CURLE_QUOTE_ERROR; CURLE_REMOTE_ACCESS_DENIED, CURLE_UPLOAD_FAILED
            result.isCommandRefused = error.code == .quoteError && !isTransient
            result.isNameRefused =
                !bodyBegun && [.remoteAccessDenied, .uploadFailed].contains(error.code) && !isTransient
            // CURLE_SSH
            result.isOfDirectory = error.code == .ssh && !bodyBegun && result.facts.size != nil
            result.error = self.error(error, exchange)
        }
        end(result)
    }

    private var isTransient: Bool { lastReply.map { (400...499).contains($0.code) } ?? false }

    /// Returns whether to retry with another host key type. The key was not a known one, or no common type was found
    /// (CURLE_PEER_FAILED_VERIFICATION, CURLE_FAILED_INIT); the server may have another key.
    private func asksForAnotherKey(_ error: CurlError) -> Bool {
        [.peerFailedVerification, .failedInit].contains(error.code) && check?.hasNext ?? false
    }

    /// Returns whether to retry with TLS, because the server refuses logins without it (CURLE_LOGIN_DENIED,
    /// CURLE_FTP_WEIRD_PASS_REPLY).
    private func asksForTLS(_ error: CurlError) -> Bool {
        guard file.scheme == .ftp, request.transportSecurity == .none, !needsTLS,
            [.loginDenied, .ftpWeirdPassReply].contains(error.code),
            let reply = lastReply, reply.demandsTLS
        else { return false }
        needsTLS = true
        return true
    }

    private func error(_ error: CurlError, _ exchange: Exchange) -> TransferError {
        // CURLE_ABORTED_BY_CALLBACK
        if error.code == .abortedByCallback {
            guard exchange.hasExpired else { return .cancelled }
            return TransferError(.stalled, "\(file.host) did not say in time whether all went well")
        }
        // CURLE_QUOTE_ERROR. Of the commands sent before a download, only REST is required to succeed.
        if error.code == .quoteError, !isTransient, case .fetch = step?.work {
            return TransferError(.remoteChanged, "\(file.host) sends files from their first byte on alone")
        }
        if [.peerFailedVerification, .failedInit].contains(error.code), let refusal = check?.refusal { return refusal }
        let peer = route?.peer
        // CURLE_COULDNT_CONNECT and CURLE_PROXY: no address responded.
        if error.code == .couldntConnect || error.code == .proxy { route?.forget(in: session.resolver) }
        if let refusal = judge.error(peer?.host ?? file.host) { return refusal }
        let words = exchange.failureText.map { CurlError(error, message: $0) } ?? error
        if !bodyBegun, let peer,
            let error = TransferError.connecting(words, exchange, to: peer, for: (file.host, file.port))
        {
            return error
        }
        // LIBSSH2_ERROR_KEX_FAILURE
        if error.code == .failedInit, words.message.firstRange(of: " -5,") != nil, let refusal = check?.unmet {
            return refusal
        }
        var (isStoring, isOpened) = (false, false)
        if case .store = step?.work { isStoring = true }
        if case .fetch = step?.work { isOpened = file.scheme == .sftp && facts(exchange).size != nil }
        return .remote(
            words, file: file, reply: lastReply, bodyBegun: bodyBegun, isOpened: isOpened, isStoring: isStoring)
    }

    private var stalled: TransferError {
        TransferError(.stalled, "no byte for \(session.configuration.stallTimeout / 1000) seconds")
    }

    private func end(_ error: TransferError) { end(RemoteEnding(error: error, facts: RemoteFacts())) }

    private func end(_ ending: RemoteEnding) {
        stopResting()
        step = nil
        hasBegun = true
        var ending = ending
        if let failure {
            ending = RemoteEnding(error: failure, facts: ending.facts)
        }
        client.didEnd(ending)
    }
}
