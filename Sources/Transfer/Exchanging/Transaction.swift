import Curl

/// A request up to its final response, including redirects and challenges.
///
/// The performer of ``TransactionStateMachine``: it reports each event and performs the actions. Used on the loop's
/// thread only.
final class Transaction {
    /// A client's additions to an exchange.
    struct Contribution {
        /// Header field lines in the form `Name: value`.
        var fields: [String] = []
        /// Whether the request has a body, which the client writes.
        var sendsBody = false
        /// The expectation of the request; `nil` if it has none.
        var expectation: TransactionStateMachine.Expectation?
        /// Whether libcurl decodes the body of the response.
        var decodes = false
        var configure: (Exchange) throws(CurlError) -> Void = { (_: Exchange) throws(CurlError) in }
    }

    /// The substitutes for a server, at most one at a time.
    private struct Substitute {
        var stored: StoredBody?
        var stubbed: StubbedExchange?
    }

    // Read for each chunk of a body.
    @exclusivity(unchecked) private(set) unowned var client: any TransactionClient
    private(set) var task: any LoopTask
    unowned let core: LoopCore
    /// The loop's time, which each chunk of a body needs.
    let clock: LoopClock
    let session: Session
    let launcher: ExchangeLauncher

    /// The number of the transaction within its run.
    let number: Int
    /// Whether another transaction reports the task's state because this one fetches only a part of the same file.
    var isQuiet = false

    /// The state. Clients read it through the transaction and change it by their calls and results.
    // Used for each line of a head. The methods of both only change the value itself.
    @exclusivity(unchecked) var machine: TransactionStateMachine
    @exclusivity(unchecked) var parser = ResponseHeadParser()
    private(set) var begunAt = MonotonicTime.now()
    /// The trust options of the current exchange.
    private(set) var trust = TrustOptions(policy: .performDefaultEvaluation(validateHost: true))
    /// The cookies of the current exchange.
    private(set) var cookies: ExchangeCookies?
    /// The substitute for a server in the current exchange.
    private var substitute = Substitute()

    /// The rate limit of the request itself.
    let limits: ByteLimits
    // Used for each chunk of a body. No method of a gate calls code that leads back to the same gate.
    @exclusivity(unchecked) var incoming: RateLimitGate?
    @exclusivity(unchecked) var outgoing: RateLimitGate?
    /// The timer that ends a pause for the rate limits.
    var timer: Int?

    /// Creates the transaction of a task.
    ///
    /// - Parameter request: the request; `nil` for the task's original request.
    init(
        _ task: any LoopTask, request: TransferRequest? = nil, client: any TransactionClient, core: LoopCore
    ) {
        self.task = task
        self.client = client
        self.core = core
        clock = core.clock
        number = 0
        session = task.session
        machine = TransactionStateMachine(
            request ?? task.originalRequest,
            TransactionStateMachine.Configuration(
                maximumRedirects: session.configuration.maximumRedirects, proxies: session.configuration.proxyRules))
        limits = ByteLimits(task.core)
        launcher = ExchangeLauncher(core: core, task: task)
    }

    private init(
        _ machine: TransactionStateMachine, beside other: Transaction, number: Int, client: any TransactionClient
    ) {
        task = other.task
        self.client = client
        core = other.core
        clock = other.clock
        self.number = number
        session = other.session
        self.machine = machine
        limits = other.limits
        launcher = ExchangeLauncher(core: core, task: task)
        isQuiet = true
    }

    /// Creates a transaction that sends `request` in place of the task's own request.
    ///
    /// - Parameter number: a number that is unique within the run.
    convenience init(
        _ request: TransferRequest, beside other: Transaction, number: Int, client: any TransactionClient
    ) {
        let machine = TransactionStateMachine(request, other.machine.configuration)
        self.init(machine, beside: other, number: number, client: client)
    }

    /// Creates a transaction at the URL from which `other` got its response, with the same credentials and trust
    /// decisions.
    ///
    /// - Parameter number: a number that is unique within the run.
    convenience init(following other: Transaction, number: Int, client: any TransactionClient) {
        let machine = TransactionStateMachine(following: other.machine)
        self.init(machine, beside: other, number: number, client: client)
    }

    // MARK: State

    /// The stored response that is delivered in place of a server's.
    var stored: StoredBody? {
        get { substitute.stored }
        _modify { yield &substitute.stored }
    }

    /// The exchange with the session's stub in place of a server.
    var stubbed: StubbedExchange? {
        get { substitute.stubbed }
        _modify { yield &substitute.stubbed }
    }

    var request: TransferRequest { machine.request }
    var url: CurlURL? { machine.url }
    var isShortcut: Bool { machine.isShortcut }
    /// Whether bytes of a body were received or sent in this exchange.
    var bodyBegun: Bool { machine.exchange.bodyBegun }
    var isUnderWay: Bool { machine.isUnderWay }
    var pauses: PauseReasons { machine.pauses }

    // MARK: Orders of the client

    /// Sends the current request. A client may call this again after it was notified of an end.
    func start() { perform(machine.start(parsing: core.urls.url)) }

    /// Makes `request` the next request and forgets earlier redirects.
    func restart(from request: TransferRequest) { machine.restart(from: request) }

    /// Delivers a stored response in place of a server's.
    func deliver(_ response: CachedResponse) {
        beginExchange()
        stored = StoredBody(head: response.head, bytes: response.body)
        task.core.setResponse(response.head)
        session.delegate.task(task, didReceive: response.head)
        perform(machine.storedResponseFound(response.head))
    }

    /// Transfers the response to another task and client.
    func transfer(to task: any LoopTask, _ client: any TransactionClient) {
        self.task = task
        self.client = client
        launcher.task = task
        limits.core = task.core
    }

    /// Aborts the current exchange with `reason` and notifies the client.
    func cancel(_ reason: TransferError = .cancelled) { perform(machine.cancel(reason)) }

    func pause(_ reason: PauseReasons) { machine.pause(reason) }

    /// Removes a pause reason. Must not be called within libcurl's callbacks.
    func resume(_ reason: PauseReasons) { perform(machine.resume(reason)) }

    // MARK: Actions

    /// Performs an action.
    ///
    /// - Returns: whether the exchange whose callback is running goes on.
    @discardableResult
    func perform(_ action: TransactionAction) -> Bool {
        switch action {
        case .proceed: return true
        case .refuse: return false
        case .cancelExchange: if !launcher.cancel() { return perform(machine.exchangeWasAbsent()) }
        case .resume: resumeExchange()
        case .send(let request, let url): send(request, to: url)
        case .avoidHTTP2(let origin, let next):
            session.resources.avoidHTTP2(at: origin)
            return perform(next)
        case .omitExpectation(let origin):
            session.resources.omitExpectation(at: origin)
            return false
        case .ask(let pending): return ask(pending)
        case .evaluate(let shown): return perform(machine.trustEvaluated(shown, isTrusted: trust.accepts(shown)))
        case .deliverHead(let head, let url):
            task.progress.setPhase(.transferring)
            return perform(machine.headHandled(client.didReceiveFinalHead(head, at: url, of: self)))
        case .deliverDecision(let disposition, let head, let url):
            return perform(machine.headHandled(client.didDecide(disposition, about: head, at: url, of: self)))
        case .end(let error): end(error)
        }
        return true
    }

    /// Resumes libcurl's transfer, or continues a stored response. libcurl delivers
    /// buffered data within this call.
    private func resumeExchange() {
        if stored != nil { return deliverStoredBody() }
        if stubbed != nil { return continueStubbedExchange() }
        launcher.unpause()
    }

    private func beginExchange() {
        parser = ResponseHeadParser()
        stored = nil
        dropStubbedExchange()
        stopRatePause()
        begunAt = MonotonicTime.now()
    }

    private func send(_ request: TransferRequest, to url: CurlURL) {
        beginExchange()
        if !isQuiet {
            task.core.setCurrentRequest(request)
            task.progress.setPhase(.connecting)
        }
        do throws(TransferError) {
            guard RequestOptions.protocols.contains(url.scheme) else {
                throw TransferError(.protocolNotAllowed, "this version does not support \(url.scheme)")
            }
            try request.checkHeaders()
            var contribution = try client.prepare(request, at: url, of: self)
            machine.prepared(expecting: contribution.expectation)
            let proxy = ProxyOptions(configuration: session.configuration, request: request, to: url)
            contribution.fields += machine.authorization.fields(for: request, at: url, proxy: proxy.url)
            cookies = ExchangeCookies(of: request, at: url, session.configuration)
            if let line = cookies?.fieldLine() { contribution.fields.append(line) }
            let isAuthorized = machine.authorization.answers(url)
            if let response = try client.storedResponse(
                for: request, at: url, isAuthorized: isAuthorized, &contribution)
            {
                return deliver(response)
            }
            // The client may have cancelled the transaction.
            guard machine.awaitsHead else { return }
            if url.scheme == "https" { trust = trustOptions(for: url) }
            begunAt = MonotonicTime.now()
            limitRates(of: request, at: url)
            let options = RequestOptions(
                configuration: session.configuration, request: request, url: url, engineFields: contribution.fields,
                usesHTTP1: usesHTTP1(at: url), hasOwnConnection: machine.connection.needsOwn,
                avoidsReuse: machine.connection.avoidsReuse(at: url), isAuthorized: isAuthorized,
                sendsProxyPasswordUnasked: proxy.hasLogin
                    && proxy.origin.map(session.resources.isImpatient(proxy:)) ?? false,
                sendsBody: contribution.sendsBody, decodes: contribution.decodes, trust: trust,
                receiveBuffer: incoming?.receiveBuffer(upTo: .max) ?? .max, configure: contribution.configure)
            guard let stub = session.configuration.transportStub else { return launch(options) }
            beginStubbedExchange(options, with: stub)
        } catch {
            perform(machine.sendingFailed(error))
        }
    }

    func launch(_ options: RequestOptions) {
        launcher.launch(options, isFurther: isQuiet, handler: self) { [unowned self] error in
            perform(machine.sendingFailed(error))
        }
    }

    private func end(_ error: TransferError?) {
        stopRatePause()
        stored = nil
        dropStubbedExchange()
        // The client may release the transaction.
        client.didEnd(error?.named(by: url?.origin), of: self)
    }

    // MARK: HTTP/2

    /// Whether the connection uses HTTP/1, as far as is known. A server that was offered HTTP/2 may not have agreed.
    var speaksHTTP1: Bool { machine.connection.isHTTP1 ?? url.map { usesHTTP1(at: $0) } ?? true }

    func usesHTTP1(at url: CurlURL) -> Bool {
        switch session.configuration.httpVersion(of: request, at: url) {
        case .http1: return true
        // The server may not support any other version.
        case .http2PriorKnowledge: break
        // The version is negotiated within TLS.
        case .http2, .http3: if url.scheme != "https" || machine.connection.needsOwn { return true }
        }
        return session.resources.avoidsHTTP2(at: url.origin)
    }

    // MARK: Invariants

    /// Checks the invariants of ``TransactionStateMachine`` in debug builds, between two events.
    func checkInvariants(_ event: StaticString = #function) {
        assert(machine.violation == nil, "\(event): \(machine.violation ?? "")")
    }
}
