import Curl
import Glibc
import HTTPTypes

/// A client of a ``Transaction``. It contributes to the requests and receives the final response. Called on the loop's
/// thread.
protocol TransactionClient: AnyObject {
    /// Prepares an exchange with `url`: the first one, one after a redirect, or one with credentials.
    func prepare(
        _ request: TransferRequest, at url: CurlURL, of transaction: Transaction
    ) throws(TransferError) -> Transaction.Contribution
    /// Returns the stored response to use in place of a request, or `nil` to send the request. Called after
    /// ``prepare(_:at:of:)``, when all fields of the request are known.
    func stored(
        for request: TransferRequest, at url: CurlURL, isAuthorized: Bool,
        _ contribution: inout Transaction.Contribution
    ) throws(TransferError) -> CachedResponse?
    /// Observes the head of any response, including redirects and challenges.
    func hear(_ head: ResponseHead)
    /// Receives the head of the final response.
    func take(_ head: ResponseHead, at url: CurlURL, of transaction: Transaction) -> Transaction.HeadVerdict
    /// Receives bytes of the final response's body. Returns `.refused` after setting ``Transaction/failure``. Returns
    /// `.paused` after calling ``Transaction/pause(_:)``; the same bytes are then delivered again.
    func receive(_ bytes: UnsafeRawBufferPointer, of transaction: Transaction) -> BodyVerdict
    /// Writes bytes of the request's body to `space`.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict
    /// Prepares to send the request's body again from `offset`.
    func rewind(to offset: Int64) -> Bool
    /// Whether the response's body is discarded while the request's body is not completely sent. Received bytes are
    /// then no sign of progress.
    var awaitsReader: Bool { get }
    /// Returns whether the client will request the rest over its own connection after ``didEnd(_:of:)``. Called if the
    /// response is paused in a stream of a connection that is shared with other requests.
    func leavesSharedConnection(_ transaction: Transaction) -> Bool
    /// Handles the end of the transaction. `error` is `nil` if libcurl reports success; the client must check whether
    /// the body is complete.
    func didEnd(_ error: TransferError?, of transaction: Transaction)
}

extension TransactionClient {
    func stored(
        for request: TransferRequest, at url: CurlURL, isAuthorized: Bool,
        _ contribution: inout Transaction.Contribution
    ) throws(TransferError) -> CachedResponse? { nil }
    func hear(_ head: ResponseHead) {}
    func leavesSharedConnection(_ transaction: Transaction) -> Bool { false }
    var awaitsReader: Bool { false }
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict { .filled(0) }
    func rewind(to offset: Int64) -> Bool { true }
}

/// A request up to its final response, including redirects and challenges.
///
/// Used on the loop's thread only.
final class Transaction: ExchangeHandler {
    /// A client's additions to an exchange.
    struct Contribution {
        /// Header field lines in the form `Name: value`.
        var fields: [String] = []
        var configure: (Exchange) throws(CurlError) -> Void = { (_: Exchange) throws(CurlError) in }
    }

    enum HeadVerdict {
        case receive
        /// The body is not needed; the client is notified of its end as usual.
        case discard
        case refuse(TransferError)
    }

    /// The reasons for which no body bytes are received or sent at present.
    struct Pauses: OptionSet {
        let rawValue: UInt8
        static let suspended = Pauses(rawValue: 1)
        /// A delegate's decision about the response is pending.
        static let deciding = Pauses(rawValue: 2)
        /// The receiver of the bytes has no room for more.
        static let full = Pauses(rawValue: 4)
        /// A rate limit is exhausted.
        static let rate = Pauses(rawValue: 8)
        /// The source has no bytes to send yet.
        static let source = Pauses(rawValue: 16)
        /// A checkpoint has yet to be confirmed.
        static let checkpoint = Pauses(rawValue: 32)
        /// Too many blocks are queued for the disk.
        static let disk = Pauses(rawValue: 64)
    }

    enum Phase {
        /// The state before the first request.
        case idle
        /// The state before the head of the response is complete.
        case asking
        /// The state in which the body is delivered to the client.
        case receiving
        /// The state in which the body is discarded, with the action that follows.
        case discarding(Next)
        /// The state in which the head is complete and a delegate's decision is pending.
        case deciding
        case ended
    }

    enum Next {
        case ask(TransferRequest, CurlURL)
        case fail(TransferError)
        case tellClient
    }

    private(set) unowned var client: any TransactionClient
    private(set) var task: any LoopTask
    unowned let core: LoopCore
    let session: any TaskSession
    let launcher: ExchangeLauncher

    /// The number of the transaction within its run.
    let number: Int
    /// Whether another transaction reports the task's state because this one fetches only a part of the same file.
    var isQuiet = false

    private(set) var request: TransferRequest
    private(set) var url: CurlURL?
    /// Whether the request was sent directly to ``url``, to which an earlier exchange had been redirected.
    private(set) var isShortcut = false
    var phase = Phase.idle
    private var parser = ResponseHeadParser()
    /// Whether the final response was received over HTTP/1; `nil` before the first one.
    private var isHTTP1: Bool?
    /// Whether the transfer must not share a connection, because it may be paused. libcurl 7.88 buffers up to 32 MiB of
    /// a paused HTTP/2 stream in memory, and a paused stream starves the others on its connection.
    private var needsOwnConnection = false
    private var redirects = 0
    private var discarded = 0
    private var trailerBytes = 0
    private(set) var pauses: Pauses = []
    private(set) var begunAt = MonotonicTime.now()
    /// Whether bytes of a body were received or sent in this exchange.
    var bodyBegun = false
    /// The reason for aborting an exchange locally, set before the abort. It takes precedence over libcurl's error.
    var failure: TransferError?

    var authorization = Authorization()
    /// The trust options of the current exchange.
    private(set) var trust = TrustOptions(policy: .performDefaultEvaluation(validateHost: true))
    /// The chain that a delegate accepted for an origin after its exchange had been aborted.
    var accepted: (origin: String, chain: [String])?
    /// The origin at which the default evaluation failed, and the error. A delegate decides there.
    var lenientFor: (origin: String, error: TransferError?)?

    private var cookies: ExchangeCookies?
    /// The stored response that is delivered in place of a server's.
    var storedBody: StoredBody?

    /// The rate limit of the request itself.
    private let limits: ByteLimits
    private var incoming: RateLimitGate?
    private var outgoing: RateLimitGate?
    /// The timer that ends a pause for the rate limits.
    private var timer: Int?

    /// The pending question to a delegate, and the continuation of its reply.
    private var openQuestion: (number: Int, then: (Decision) -> Bool)?
    private var questions = 0
    /// The result of the exchange if it ended while a question was pending.
    private var heldEnding: TransferError??

    /// The number of bytes up to which a discarded body is read, so that its connection can be reused.
    private static let discardLimit = 64 * 1024

    /// Creates the transaction of a task.
    ///
    /// - Parameter request: the request; `nil` for the task's original request.
    init(
        _ task: any LoopTask, request: TransferRequest? = nil, client: any TransactionClient, core: LoopCore
    ) {
        self.task = task
        self.client = client
        self.core = core
        number = 0
        session = task.session
        self.request = request ?? task.originalRequest
        limits = ByteLimits(task.core)
        launcher = ExchangeLauncher(core: core, task: task, number: 0)
    }

    /// Creates a transaction that sends `request` in place of the task's own request.
    ///
    /// - Parameter number: a number that is unique within the run.
    init(
        _ request: TransferRequest, beside other: Transaction, number: Int, client: any TransactionClient
    ) {
        task = other.task
        self.client = client
        core = other.core
        self.number = number
        session = other.session
        self.request = request
        limits = other.limits
        launcher = ExchangeLauncher(core: core, task: task, number: number)
        isQuiet = true
    }

    /// Creates a transaction at the URL from which `other` got its response, with the same credentials and trust
    /// decisions.
    ///
    /// - Parameter number: a number that is unique within the run.
    convenience init(following other: Transaction, number: Int, client: any TransactionClient) {
        self.init(other.request, beside: other, number: number, client: client)
        url = other.url
        redirects = other.redirects
        authorization = other.authorization
        accepted = other.accepted
        lenientFor = other.lenientFor
        isHTTP1 = other.isHTTP1
    }

    /// Sends the current request. A client may call this again after it was notified of an end.
    func ask() {
        do throws(CurlError) {
            isShortcut = redirects > 0
            if let url { return ask(url) }
            ask(try CurlURL(request.url))
        } catch {
            end(TransferError(.invalidRequest, "the URL cannot be read"))
        }
    }

    /// Makes `request` the next request and forgets earlier redirects.
    func goBack(to request: TransferRequest) {
        self.request = request
        url = nil
        redirects = 0
    }

    /// Whether a request was sent and its end has not been reported.
    var isUnderWay: Bool {
        switch phase {
        case .idle, .ended: false
        case .asking, .receiving, .discarding, .deciding: true
        }
    }

    /// Resets the state of the previous exchange.
    func beginAnew() {
        parser = ResponseHeadParser()
        phase = .asking
        discarded = 0
        trailerBytes = 0
        failure = nil
        bodyBegun = false
        heldEnding = nil
        stopResting()
        pauses.formIntersection(.suspended)
        begunAt = MonotonicTime.now()
    }

    private func ask(_ url: CurlURL) {
        self.url = url
        beginAnew()
        if !isQuiet {
            task.core.setCurrentRequest(request)
            task.progress.setPhase(.connecting)
        }
        guard RequestOptions.protocols.split(separator: ",").contains(Substring(url.scheme)) else {
            return end(TransferError(.protocolNotAllowed, "this version does not speak \(url.scheme)"))
        }
        do throws(TransferError) {
            var contribution = try client.prepare(request, at: url, of: self)
            contribution.fields += authorization.fields(for: request, at: url)
            let isAuthorized = authorization.answers(url)
            if let stored = try client.stored(for: request, at: url, isAuthorized: isAuthorized, &contribution) {
                return answer(with: stored)
            }
            if url.scheme == "https" { trust = trustOptions(for: url) }
            cookies = ExchangeCookies(of: request, at: url, session.configuration)
            begunAt = MonotonicTime.now()
            let origin = (url.scheme, url.host, url.port)
            let wake = { [weak self] in self?.hurry() ?? () }
            incoming = RateLimitGate(.download, at: origin, limits: limits, session: session, wake: wake)
            outgoing = RateLimitGate(.upload, at: origin, limits: limits, session: session, wake: wake)
            if incoming?.rate() != nil || (![.get, .head].contains(request.method) && outgoing?.rate() != nil) {
                needsOwnConnection = true
            }
            let plan = ExchangeLauncher.Plan(
                request: request, url: url, contribution: contribution, usesHTTP1: usesHTTP1(at: url),
                hasOwnConnection: needsOwnConnection, receiveBuffer: incoming?.receiveBuffer(upTo: .max) ?? .max,
                isAuthorized: isAuthorized, trust: trust, cookies: cookies)
            launcher.launch(plan, handler: self) { [unowned self] error in end(error) }
        } catch {
            end(error)
        }
    }

    /// Transfers the response to another task and client.
    func hand(over task: any LoopTask, to client: any TransactionClient) {
        self.task = task
        self.client = client
        launcher.task = task
        limits.core = task.core
    }

    /// Discards the rest of the body.
    func discard() { phase = .discarding(.tellClient) }

    private func stopResting() {
        if let timer {
            core.cancelTimer(timer)
            task.progress.setHeldBack(false)
        }
        timer = nil
        incoming?.giveBack()
        outgoing?.giveBack()
    }

    /// Aborts the current exchange with `reason` and notifies the client.
    func cancel(_ reason: TransferError = .cancelled) {
        if case .ended = phase { return }
        failure = reason
        if !launcher.cancel() { end(reason) }
    }

    // MARK: Pauses

    func pause(_ reason: Pauses) { pauses.insert(reason) }

    /// Whether the transaction is paused for a rate limit, with a timer that ends the pause.
    var isResting: Bool { timer != nil }

    var holdsPause: Bool { !pauses.isEmpty }

    /// Removes a pause reason. Must not be called within libcurl's callbacks.
    func resume(_ reason: Pauses) {
        guard pauses.contains(reason) else { return }
        pauses.remove(reason)
        // libcurl delivers buffered data within this call.
        guard pauses.isEmpty else { return }
        if storedBody == nil { launcher.unpause() } else { handStored() }
    }

    // MARK: Calls from the exchange

    func receiveHeader(_ line: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool {
        guard case .asking = phase else { return takeTrailer(line) }
        cookies?.hear(line, on: exchange)
        switch parser.add(line) {
        case .incomplete: return true
        case .tooLong:
            failure = TransferError(.tooLarge, "the server's header fields are too long")
            return false
        case .complete(let head):
            exchange.noteHead()
            if let coding = head.unaskedTransferCoding {
                failure = TransferError(
                    .truncated, "the server sends its answer in a transfer coding that nobody asked for (\(coding))")
                return false
            }
            if url?.scheme == "https", head.isUnframed(after: request.method) { exchange.watchesEndOfTLS() }
            return take(head)
        }
    }

    /// Discards a trailer line, up to a total length: endless trailers would occupy the transfer for ever without
    /// counting as a stall.
    private func takeTrailer(_ line: UnsafeRawBufferPointer) -> Bool {
        trailerBytes += line.count
        guard trailerBytes > ResponseHeadParser.maximumLength else { return true }
        failure = failure ?? TransferError(.tooLarge, "the server's trailer fields do not end")
        return false
    }

    func receive(_ bytes: UnsafeRawBufferPointer, on exchange: Exchange) -> BodyVerdict {
        guard pauses.isEmpty else { return .paused }
        switch phase {
        case .receiving:
            bodyBegun = true
            exchange.isWaitingToSend = client.awaitsReader
            if mustRest(&incoming, toPass: bytes.count) { return standStill() }
            let verdict = client.receive(bytes, of: self)
            switch verdict {
            case .accepted: incoming?.pass(bytes.count)
            case .paused: return standStill()
            case .refused: break
            }
            return verdict
        case .discarding:
            discarded += bytes.count
            return discarded <= Self.discardLimit ? .accepted : .refused
        case .idle, .asking, .deciding, .ended: return .refused
        }
    }

    /// Pauses the response, or aborts it if the client requests the rest over its own connection.
    private func standStill() -> BodyVerdict {
        guard isHTTP1 == false, !needsOwnConnection, client.leavesSharedConnection(self) else { return .paused }
        needsOwnConnection = true
        failure = failure ?? .cancelled
        return .refused
    }

    func fill(_ space: UnsafeMutableRawBufferPointer, on exchange: Exchange) -> FillVerdict {
        guard pauses.isEmpty else { return .paused }
        let piece = outgoing?.piece(upTo: space.count) ?? space.count
        if mustRest(&outgoing, toPass: piece) { return .paused }
        let verdict = client.fill(UnsafeMutableRawBufferPointer(rebasing: space[..<piece]))
        if case .filled(let count) = verdict {
            outgoing?.pass(count)
            if count > 0, !bodyBegun {
                bodyBegun = true
                task.progress.setPhase(.transferring)
            }
        }
        return verdict
    }

    // MARK: Rates

    /// Returns whether a rate limit is exhausted. If so, the transfer is paused until the bytes may pass.
    private func mustRest(_ turn: inout RateLimitGate?, toPass bytes: Int) -> Bool {
        guard let wait = turn?.wait(toPass: bytes, now: core.now), wait > 0 else { return false }
        rest(wait)
        return true
    }

    /// Returns whether a local condition limits the throughput: an exhausted rate limit, a slow disk or reader, a
    /// pending decision, or a suspension.
    func isHeldBack(now: MonotonicTime) -> Bool {
        !pauses.subtracting(.rate).isEmpty || incoming?.isAtLimit(now: now) ?? false
    }

    private func rest(_ milliseconds: Int64) {
        pause(.rate)
        task.progress.setHeldBack(true)
        // The limit is checked again from time to time, because it may be raised.
        timer = core.after(milliseconds: min(milliseconds, ByteLimits.longestRest)) { [unowned self] in endRest() }
    }

    private func endRest() {
        timer = nil
        let now = MonotonicTime.now()
        let left = max(incoming?.wait(now: now) ?? 0, outgoing?.wait(now: now) ?? 0)
        if left > 0 { return rest(left) }
        task.progress.setHeldBack(false)
        resume(.rate)
    }

    /// Ends the pause at the loop's next turn, after another connection of the request has left the shared limits.
    private func hurry() {
        guard let timer else { return }
        core.cancelTimer(timer)
        self.timer = core.after(milliseconds: 0) { [unowned self] in endRest() }
    }

    // MARK: HTTP/2

    /// Whether the connection uses HTTP/1, as far as is known. A server that was offered HTTP/2 may not have agreed.
    var speaksHTTP1: Bool { isHTTP1 ?? url.map { usesHTTP1(at: $0) } ?? true }

    func usesHTTP1(at url: CurlURL) -> Bool {
        switch session.configuration.httpVersion(of: request, at: url) {
        case .http1: return true
        // The server may not support any other version.
        case .http2PriorKnowledge: break
        // The version is negotiated within TLS.
        case .http2, .http3: if url.scheme != "https" || needsOwnConnection { return true }
        }
        return session.resources.avoidsHTTP2(at: url.origin)
    }

    /// Returns whether an error is one of HTTP/2 or HTTP/3 itself rather than of the layers above or below.
    private func isBrokenHTTP2(_ ending: ExchangeEnding) -> Bool {
        // This libcurl loses wake-ups after HTTP/2 errors, so an apparent stall may be such an error.
        if case .stalled = ending, case .asking = phase, let url { return !usesHTTP1(at: url) }
        guard case .failed(let error) = ending else { return false }
        if error.isFlood, let url { return !usesHTTP1(at: url) }
        // Before a response: perhaps the server does not know HTTP/2, and was not asked whether it does.
        if [.gotNothing, .sendError, .recvError].contains(error.code), case .asking = phase, let url,
            !usesHTTP1(at: url)
        {
            return session.configuration.httpVersion(of: request, at: url) == .http2PriorKnowledge
        }
        // A stream that was ended before its body was, or a connection that went away.
        if error.code == .partialFile, isHTTP1 == false { return true }
        return [.http2, .http2Stream, .http3].contains(error.code)
    }

    func rewind(to offset: Int64) -> Bool { client.rewind(to: offset) }

    func judge(address: UnsafeRawBufferPointer, on exchange: Exchange) -> Bool { launcher.allows(address) }

    func exchangeDidEnd(_ exchange: Exchange, _ ending: ExchangeEnding) {
        cookies?.end(exchange)
        if case .ended = phase { return }
        task.core.add(
            ExchangeMetrics(
                exchange.easy.timing(), request: request, response: task.response, begunAt: begunAt,
                lookup: launcher.lookup))
        var error = launcher.error(for: ending, of: exchange, bodyBegun: bodyBegun)
        if case .finished = ending, exchange.lacksEndOfTLS { error = .incompleteClose(host: url?.host ?? "the server") }
        if failure == nil, isRefusedByDefault(ending), let url {
            // Repeat the request with lenient evaluation, so that a delegate can examine the certificates.
            lenientFor = (url.origin, error)
            return ask(url)
        }
        if failure == nil, isBrokenHTTP2(ending), let url {
            session.resources.avoidHTTP2(at: url.origin)
            // Before any response, repeating an idempotent request is safe.
            if case .asking = phase, request.method.isIdempotent { return ask(url) }
        }
        if openQuestion != nil, failure == nil {
            heldEnding = .some(error)
        } else {
            conclude(error)
        }
    }

    func conclude(_ error: TransferError?) {
        if let failure { return end(failure) }
        guard case .discarding(let next) = phase else { return end(error) }
        switch next {
        case .ask(let request, let url):
            self.request = request
            ask(url)
        case .fail(let error): end(error)
        case .tellClient: end(nil)
        }
    }

    private func end(_ error: TransferError?) {
        if case .ended = phase { return }
        stopResting()
        phase = .ended
        openQuestion = nil
        storedBody = nil
        client.didEnd(error?.named(by: url?.origin), of: self)
    }

    // MARK: The response

    private func take(_ head: ResponseHead) -> Bool {
        guard let url else { return false }
        if !isQuiet { task.core.setResponse(head) }
        client.hear(head)
        if RedirectRule.isRedirect(head.status), request.redirects.follows(head.status, method: request.method) {
            return redirect(head, url)
        }
        if let demand = authorization.demand(of: head, at: url, proxy: request.proxy ?? session.configuration.proxy) {
            return challenge(demand, head, url)
        }
        return handOver(head, url)
    }

    /// Delivers the head of the final response to the client.
    func handOver(_ head: ResponseHead, _ url: CurlURL) -> Bool {
        isHTTP1 = head.version.hasPrefix("1")
        // Set the phase before calling the client, which may ask a delegate itself.
        phase = .receiving
        task.progress.setPhase(.transferring)
        switch client.take(head, at: url, of: self) {
        case .receive: break
        case .discard: phase = .discarding(.tellClient)
        case .refuse(let error):
            failure = error
            return false
        }
        return true
    }

    private func redirect(_ head: ResponseHead, _ url: CurlURL) -> Bool {
        redirects += 1
        isShortcut = false
        guard redirects <= session.configuration.maximumRedirects else {
            let words = "more than \(session.configuration.maximumRedirects) redirects"
            phase = .discarding(.fail(TransferError(.tooManyRedirects, words)))
            return true
        }
        let next: (request: TransferRequest, url: CurlURL)
        do throws(TransferError) {
            next = try RedirectRule.follow(head, from: request, at: url, protocols: RequestOptions.protocols)
        } catch {
            phase = .discarding(.fail(error))
            return true
        }
        let (delegate, task) = (session.callbacks, task)
        guard delegate.decidesRedirects(of: task) else {
            phase = .discarding(.ask(next.request, next.url))
            return true
        }
        phase = .deciding
        return decide(otherwise: .redirect(next.request)) { reply in
            delegate.task(task, willPerformHTTPRedirection: head, newRequest: next.request) { reply(.redirect($0)) }
        } then: { [unowned self] decision in
            guard case .redirect(let request?) = decision else { return handOver(head, url) }
            phase = .discarding(go(to: request, next.url))
            return true
        }
    }

    private func go(to request: TransferRequest, _ expected: CurlURL) -> Next {
        do throws(CurlError) {
            return .ask(request, request.url == expected.text ? expected : try CurlURL(request.url))
        } catch {
            return .fail(TransferError(.invalidRequest, "the URL to go on with cannot be read"))
        }
    }

    // MARK: Delegate decisions

    /// Asks a delegate, and pauses if it does not reply immediately.
    ///
    /// - Parameters:
    ///   - otherwise: the decision if the reply is released without being given.
    ///   - atOnce: called before `then` if the reply was immediate.
    ///   - then: the continuation. It returns whether to continue, and sets ``failure`` if not.
    /// - Returns: whether to continue.
    func decide(
        otherwise: Decision, _ asking: (@escaping @Sendable (Decision) -> Void) -> Void,
        then: @escaping (Decision) -> Bool, atOnce: () -> Void = {}
    ) -> Bool {
        questions += 1
        let (session, task, own, number) = (session, task, self.number, questions)
        let reply = Reply(otherwise: otherwise) { decision in
            session.perform(task) { ($0 as? any TransactionRun)?.transaction(own)?.decided(decision, number) }
        }
        asking { reply.give($0) }
        if let decision = reply.takeAtOnce() {
            atOnce()
            return then(decision)
        }
        openQuestion = (number, then)
        pause(.deciding)
        return true
    }

    private func decided(_ decision: Decision, _ number: Int) {
        guard let question = openQuestion, question.number == number else { return }
        openQuestion = nil
        let goesOn = question.then(decision)
        if openQuestion != nil { return }
        if let error = heldEnding {
            heldEnding = nil
            return conclude(error)
        }
        guard goesOn else { return cancel(failure ?? .cancelled) }
        resume(.deciding)
    }
}
