import Curl
import Glibc
import HTTPTypes

/// Who asks through a ``Transaction``: says what goes along, and takes the final answer. Called on the loop's thread.
protocol TransactionClient: AnyObject {
    /// An exchange with `url` is about to begin: the first, one after a redirect, or one with credentials.
    func prepare(
        _ request: TransferRequest, at url: CurlURL, of transaction: Transaction
    ) throws(TransferError) -> Transaction.Contribution
    /// What answers in the place of a server, `nil` where one is to be asked. Comes after
    /// ``prepare(_:at:of:)``, when all else that goes along is known.
    func stored(
        for request: TransferRequest, at url: CurlURL, isAuthorized: Bool,
        _ contribution: inout Transaction.Contribution
    ) throws(TransferError) -> CachedResponse?
    /// The head of an answer, whatever becomes of it: redirects and challenges too.
    func hear(_ head: ResponseHead)
    /// The head of the final answer.
    func take(_ head: ResponseHead, at url: CurlURL, of transaction: Transaction) -> Transaction.HeadVerdict
    /// Bytes of its body. `.refused` after ``Transaction/failure`` was set; `.paused` after
    /// ``Transaction/pause(_:)``, and then the same bytes come again.
    func receive(_ bytes: UnsafeRawBufferPointer, of transaction: Transaction) -> BodyVerdict
    /// Puts bytes of the request's body into `space`.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> FillVerdict
    /// The request's body is to be sent again from `offset`.
    func rewind(to offset: Int64) -> Bool
    /// The answer's body is passed over, and the request's is not sent yet: bytes of the former are no sign of life.
    var awaitsReader: Bool { get }
    /// The answer stands still in a stream of a connection that others use too. Says whether the client asks for the rest
    /// over a connection of its own, once ``didEnd(_:of:)`` has been called.
    func leavesSharedConnection(_ transaction: Transaction) -> Bool
    /// Nothing more comes; `nil` where libcurl is content with the body: whether it is whole is for the client to judge.
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

/// One request until its final answer: the redirects and challenges on the way there are met here.
///
/// Lives on its loop's thread.
final class Transaction: ExchangeHandler {
    /// What a client adds to an exchange.
    struct Contribution {
        /// Field lines, `Name: value`.
        var fields: [String] = []
        var configure: (Exchange) throws(CurlError) -> Void = { (_: Exchange) throws(CurlError) in }
    }

    enum HeadVerdict {
        case receive
        /// The body is of no use; the client is told of its end as of any other.
        case discard
        case refuse(TransferError)
    }

    /// Why no byte of a body is taken or given for now.
    struct Pauses: OptionSet {
        let rawValue: UInt8
        static let suspended = Pauses(rawValue: 1)
        /// A delegate has yet to say what is to become of the answer.
        static let deciding = Pauses(rawValue: 2)
        /// Whoever takes the bytes has no room for more.
        static let full = Pauses(rawValue: 4)
        /// The rate limit is used up.
        static let rate = Pauses(rawValue: 8)
        /// The bytes to send are yet to be made.
        static let source = Pauses(rawValue: 16)
        /// A checkpoint is yet to be confirmed.
        static let checkpoint = Pauses(rawValue: 32)
        /// The disk has more to write than it should.
        static let disk = Pauses(rawValue: 64)
    }

    enum Phase {
        /// Nothing was asked for yet.
        case idle
        /// Before the head of the answer is whole.
        case asking
        /// The body is the client's.
        case receiving
        /// The body is of no use; what follows it is known.
        case discarding(Next)
        /// The head is whole, and a delegate has yet to say what is to become of it.
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
    let session: Session
    let launcher: ExchangeLauncher

    /// Tells it from the others of its run.
    let number: Int
    /// It brings a share of what another one brings too: what the task says of itself is the other's to say.
    var isQuiet = false

    private(set) var request: TransferRequest
    private(set) var url: CurlURL?
    /// A redirect of an earlier exchange led to ``url``, which was asked at once this time.
    private(set) var isShortcut = false
    var phase = Phase.idle
    private var parser = ResponseHeadParser()
    /// Whether the final answer came in HTTP/1.1, once there was one.
    private var isHTTP1: Bool?
    /// Bytes of it have to wait, so that it shares no connection: libcurl 7.88 keeps up to 32 MiB of a paused HTTP/2
    /// stream in memory, and one paused stream starves the others of its connection.
    private var needsOwnConnection = false
    private var redirects = 0
    private var discarded = 0
    private var trailerBytes = 0
    private(set) var pauses: Pauses = []
    private(set) var begunAt = MonotonicTime.now()
    /// Bytes of a body came or went in this exchange.
    var bodyBegun = false
    /// Set before we break an exchange off ourselves: the reason outranks libcurl's.
    var failure: TransferError?

    var authorization = Authorization()
    /// What the server of the exchange under way has to show.
    private(set) var trust = TrustOptions(policy: .performDefaultEvaluation(validateHost: true))
    /// A chain that a delegate accepted for an origin while its exchange had to be broken off.
    var accepted: (origin: String, chain: [String])?
    /// Where the default evaluation failed, and how: a delegate decides there.
    var lenientFor: (origin: String, error: TransferError?)?

    private var cookies: ExchangeCookies?
    /// What answers in the place of a server.
    var storedBody: StoredBody?

    /// The request's own limit.
    private let limits: ByteLimits
    private var incoming: RateTurn?
    private var outgoing: RateTurn?
    /// Ends a rest that the rate asks for.
    private var timer: Int?

    /// What a delegate has been asked and has not answered.
    private var openQuestion: (number: Int, then: (Decision) -> Bool)?
    private var questions = 0
    /// How the exchange ended while a question was open.
    private var heldEnding: TransferError??

    /// A body of no use is read up to here, so that its connection can serve again.
    private static let discardLimit = 64 * 1024

    /// - Parameter request: absent: the task's own.
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

    /// Asks for `request` in place of the task's own.
    ///
    /// - Parameter number: no other's of the run.
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

    /// Asks where `other` got its answer from, with what that needed.
    ///
    /// - Parameter number: no other's of the run.
    convenience init(following other: Transaction, number: Int, client: any TransactionClient) {
        self.init(other.request, beside: other, number: number, client: client)
        url = other.url
        redirects = other.redirects
        authorization = other.authorization
        accepted = other.accepted
        lenientFor = other.lenientFor
        isHTTP1 = other.isHTTP1
    }

    /// Asks for what is to be asked for now; a client may do so again once it has been told of an end.
    func ask() {
        do throws(CurlError) {
            isShortcut = redirects > 0
            if let url { return ask(url) }
            ask(try CurlURL(request.url))
        } catch {
            end(TransferError(.invalidRequest, "the URL cannot be read"))
        }
    }

    /// What is asked for next is `request`, wherever redirects led to before.
    func goBack(to request: TransferRequest) {
        self.request = request
        url = nil
        redirects = 0
    }

    /// Whether something was asked for, and its end has not been told.
    var isUnderWay: Bool {
        switch phase {
        case .idle, .ended: false
        case .asking, .receiving, .discarding, .deciding: true
        }
    }

    /// Forgets the exchange before.
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
            incoming = RateTurn(.download, at: origin, limits: limits, session: session, wake: wake)
            outgoing = RateTurn(.upload, at: origin, limits: limits, session: session, wake: wake)
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

    /// The answer is another task's from here on.
    func hand(over task: any LoopTask, to client: any TransactionClient) {
        self.task = task
        self.client = client
        launcher.task = task
        limits.core = task.core
    }

    /// The rest of the body is of no use.
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

    /// Ends what is under way with `reason`; the client is told.
    func cancel(_ reason: TransferError = .cancelled) {
        if case .ended = phase { return }
        failure = reason
        if !launcher.cancel() { end(reason) }
    }

    // MARK: Standing still

    func pause(_ reason: Pauses) { pauses.insert(reason) }

    /// Whether a timer will end the rest that a rate asks for.
    var isResting: Bool { timer != nil }

    var holdsPause: Bool { !pauses.isEmpty }

    /// To be called from outside libcurl's callbacks.
    func resume(_ reason: Pauses) {
        guard pauses.contains(reason) else { return }
        pauses.remove(reason)
        // libcurl hands over what it kept back within this call.
        guard pauses.isEmpty else { return }
        if storedBody == nil { launcher.unpause() } else { handStored() }
    }

    // MARK: From the exchange

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

    /// Trailers are passed over, but not without an end: they would hold the transfer for ever, and are no stall.
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

    /// Pauses the answer, or breaks it off where its client asks for the rest over a connection of its own.
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

    /// Whether a limit is used up; then nothing more passes until the bytes may.
    private func mustRest(_ turn: inout RateTurn?, toPass bytes: Int) -> Bool {
        guard let wait = turn?.wait(toPass: bytes, now: core.now), wait > 0 else { return false }
        rest(wait)
        return true
    }

    /// Whether something of this machine holds its bytes back: a rate limit that all is made use of, a disk or a
    /// suspension.
    func isHeldBack(now: MonotonicTime) -> Bool {
        !pauses.subtracting(.rate).isEmpty || incoming?.isAtLimit(now: now) ?? false
    }

    private func rest(_ milliseconds: Int64) {
        pause(.rate)
        task.progress.setHeldBack(true)
        // Looked at again now and then, since a limit may be raised.
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

    /// Another connection of the request has made way: looks again at the next turn of the loop.
    private func hurry() {
        guard let timer else { return }
        core.cancelTimer(timer)
        self.timer = core.after(milliseconds: 0) { [unowned self] in endRest() }
    }

    // MARK: HTTP/2

    /// Whether the server is spoken to in HTTP/1.1, as far as is known: asked for HTTP/2, it may not have agreed.
    var speaksHTTP1: Bool { isHTTP1 ?? url.map { usesHTTP1(at: $0) } ?? true }

    func usesHTTP1(at url: CurlURL) -> Bool {
        switch session.configuration.httpVersion(of: request, at: url) {
        case .http1: return true
        // Such a server may speak nothing else.
        case .http2PriorKnowledge: break
        // Which version it is, is agreed upon within TLS.
        case .http2, .http3: if url.scheme != "https" || needsOwnConnection { return true }
        }
        return session.avoidsHTTP2(at: url.origin)
    }

    /// An error of HTTP/2 or HTTP/3 itself, not of what is below or above.
    private func isBrokenHTTP2(_ ending: ExchangeEnding) -> Bool {
        // This libcurl loses wake-ups after errors of HTTP/2: what then looks like a stall may be one of those.
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
            // Once more, so that a delegate can see whom it is about.
            lenientFor = (url.origin, error)
            return ask(url)
        }
        if failure == nil, isBrokenHTTP2(ending), let url {
            session.avoidHTTP2(at: url.origin)
            // Where nothing of an answer came, asking again is safe for whoever may be asked twice.
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

    // MARK: The answer

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

    /// This is the final answer.
    func handOver(_ head: ResponseHead, _ url: CurlURL) -> Bool {
        isHTTP1 = head.version.hasPrefix("1")
        // Before the client speaks: it may ask a delegate itself.
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
        let (delegate, task) = (session.delegate, task)
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

    // MARK: What delegates decide

    /// Asks a delegate, and stands still where it does not answer at once.
    ///
    /// - Parameters:
    ///   - otherwise: what counts where whoever was asked lets go of the question without an answer.
    ///   - atOnce: called before `then` where the answer came at once.
    ///   - then: what follows; says whether to go on, having set ``failure`` otherwise.
    /// - Returns: whether to go on.
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
