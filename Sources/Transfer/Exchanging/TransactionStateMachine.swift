import Curl

/// The state of a request up to its final response, and every decision about it: redirects, challenges, trust, the use
/// of a body, pauses, and what follows the end of an exchange.
///
/// A value without I/O, clock and closures. ``Transaction`` reports each event and performs the ``TransactionAction``
/// that comes back. The extensions group the events:
///
/// | Event | Extension |
/// |---|---|
/// | start, stored response found, passed to the network, sending failed, cancelled | `+Requests` |
/// | head received, head handled, trailer received, body bytes, paused, resumed | `+Responses` |
/// | certificates received, trust evaluated, question answered | `+Questions` |
/// | exchange ended | `+Endings` |
struct TransactionStateMachine {
    /// The settings of the session that decisions depend on.
    struct Configuration {
        var maximumRedirects = 20
        /// The session's proxies. A request may have its own.
        var proxies = ProxyRules()
    }

    indirect enum State {
        /// The state before the first request.
        case idle
        /// The state before the head of the response is complete.
        case requested
        /// The state in which a delegate's decision is pending.
        case deciding(PendingQuestion, ExchangeState)
        /// The state in which the client handles the head of the final response, or a decision about it.
        case delivering(ResponseHead, ExchangeState)
        /// The state in which the body is delivered to the client.
        case receiving
        /// The state in which the body is discarded.
        case discarding(then: Continuation)
        /// The state in which the exchange is being aborted for a local reason. The reason takes precedence over the
        /// error of the exchange.
        case failing(TransferError)
        /// The state in which the client has been notified of the end. It may send another request.
        case ended
    }

    /// The state of the exchange while a decision about it is made.
    enum ExchangeState {
        /// A callback of libcurl waits for the decision. A stored response waits in the same way.
        case inCallback
        /// The exchange is paused or, if its server is not trusted yet, being aborted.
        case waiting
        /// The exchange has ended with this error, or successfully.
        case ended(TransferError?)
    }

    /// The action that follows a discarded body.
    enum Continuation {
        case send(TransferRequest, CurlURL)
        case fail(TransferError)
        /// Notifies the client of a successful end.
        case end
    }

    /// A request's expectation that the server answers before the body is sent (RFC 9110, section 10.1.1).
    enum Expectation {
        /// libcurl adds `Expect: 100-continue`, over HTTP/1 only.
        case overHTTP1
        /// The request or the session names the field.
        case named
    }

    /// The properties of one exchange.
    struct ExchangeProgress {
        /// The expectation of the request; `nil` if it has none.
        var expectation: Expectation?
        /// Whether a stored response takes the place of a server's.
        var isStored = false
        /// Whether bytes of a body were received or sent.
        var bodyBegun = false
        var discarded = 0
        var trailerBytes = 0
    }

    /// Decisions about the server's certificates that outlast an exchange.
    struct TrustDecisions {
        /// The chain that a delegate accepted for an origin after its exchange had been aborted.
        var accepted: (origin: String, chain: [String])?
        /// The origin at which the default evaluation failed, and the error. A delegate or a custom evaluation decides
        /// there.
        var lenient: (origin: String, error: TransferError?)?
    }

    /// Observations about the connections.
    struct ConnectionTraits {
        /// Whether the final response was received over HTTP/1; `nil` before the first one.
        var isHTTP1: Bool?
        /// Whether the transfer must not share a connection, because a rate limit pauses it. libcurl 7.88 buffers up to
        /// 32 MiB of a paused HTTP/2 stream in memory, and a paused stream starves the others on its connection.
        var needsOwn = false
        /// The reason for which the current exchange leaves its connection; `nil` if it does not.
        var departure: String?

        /// The origin to which a connection of another request was refused; `nil` before that.
        var refusedOrigin: String?

        /// Whether a kept connection was refused because of the input on it, and no response has come since.
        var isStale = false

        /// Returns whether the request must open its own connection instead of using one that another request opened.
        func avoidsReuse(at url: CurlURL) -> Bool { isStale || refusedOrigin == url.origin }

        /// Whether other requests use the connection.
        var isShared: Bool { isHTTP1 == false && !needsOwn }
    }

    let configuration: Configuration
    var state = State.idle
    var request: TransferRequest
    /// The URL of the current or next exchange; `nil` before the first one.
    var url: CurlURL?
    /// The number of redirects that led to ``url``.
    var redirects = 0
    /// Whether the request was sent directly to ``url``, to which an earlier exchange had been redirected.
    var isShortcut = false
    var authorization = Authorization()
    var trust = TrustDecisions()
    var connection = ConnectionTraits()
    var exchange = ExchangeProgress()
    /// The reasons of a pause except for a pending decision, which is part of the state.
    var reasons: PauseReasons = []
    /// The number of questions asked so far.
    var questions = 0

    /// The number of bytes up to which a discarded body is read, so that its connection can be reused.
    static let discardLimit = 64 * 1024

    init(_ request: TransferRequest, _ configuration: Configuration) {
        self.request = request
        self.configuration = configuration
    }

    /// Creates the machine of a transaction at the URL from which `other` got its response, with the same credentials
    /// and trust decisions.
    init(following other: TransactionStateMachine) {
        self.init(other.request, other.configuration)
        url = other.url
        redirects = other.redirects
        authorization = other.authorization
        trust = other.trust
        connection.isHTTP1 = other.connection.isHTTP1
    }

    // MARK: State

    /// Whether a request was sent and its end has not been reported.
    var isUnderWay: Bool {
        switch state {
        case .idle, .ended: false
        case .requested, .deciding, .delivering, .receiving, .discarding, .failing: true
        }
    }

    /// Whether the head of the response is not complete.
    var awaitsHead: Bool { if case .requested = state { true } else { false } }

    /// Whether body bytes go to the client.
    var isReceiving: Bool { if case .receiving = state { true } else { false } }

    /// The pending question; `nil` if there is none.
    var pendingQuestion: PendingQuestion? { if case .deciding(let pending, _) = state { pending } else { nil } }

    /// The reasons for which no body bytes move at present.
    var pauses: PauseReasons { pendingQuestion == nil ? reasons : reasons.union(.deciding) }

    // MARK: Transitions

    mutating func end(_ error: TransferError?) -> TransactionAction {
        state = .ended
        return .end(error)
    }

    /// Aborts the exchange for a local reason.
    mutating func abort(_ error: TransferError, _ standing: ExchangeState) -> TransactionAction {
        if case .ended = standing { return end(error) }
        if exchange.isStored { return end(error) }
        state = .failing(error)
        if case .waiting = standing { return .cancelExchange }
        return .refuse
    }

    /// Discards the rest of the body.
    mutating func discard(then continuation: Continuation, _ standing: ExchangeState) -> TransactionAction {
        if case .ended = standing { return follow(continuation) }
        state = .discarding(then: continuation)
        return resumption(after: standing)
    }

    mutating func follow(_ continuation: Continuation) -> TransactionAction {
        switch continuation {
        case .send(let request, let url):
            self.request = request
            return send(to: url)
        case .fail(let error): return end(error)
        case .end: return end(nil)
        }
    }

    /// Lets body bytes move again after a decision, unless there is another reason for the pause.
    func resumption(after standing: ExchangeState) -> TransactionAction {
        if case .inCallback = standing, !exchange.isStored { return .proceed }
        return reasons.isEmpty ? .resume : .proceed
    }
}

/// The events of requests.
extension TransactionStateMachine {
    /// Handles the client's order to send the current request: the first time, or after it was notified of an end.
    ///
    /// - Parameter parse: returns the URL that a text stands for.
    mutating func start(
        parsing parse: (String) throws(CurlError) -> CurlURL = { (text: String) throws(CurlError) in try CurlURL(text) }
    ) -> TransactionAction {
        if isUnderWay { return .proceed }
        isShortcut = redirects > 0
        if let url { return send(to: url) }
        do throws(CurlError) {
            return send(to: try parse(request.url))
        } catch {
            return end(.unreadable(request.url))
        }
    }

    mutating func send(to url: CurlURL) -> TransactionAction {
        self.url = url
        beginExchange()
        state = .requested
        return .send(request, url)
    }

    private mutating func beginExchange(isStored: Bool = false) {
        exchange = ExchangeProgress(isStored: isStored)
        connection.departure = nil
        reasons.formIntersection(.suspended)
    }

    /// Records the expectation of the request that is about to be sent; `nil` if it has none.
    mutating func prepared(expecting expectation: Expectation?) { exchange.expectation = expectation }

    /// Makes `request` the next request and forgets earlier redirects.
    mutating func restart(from request: TransferRequest) {
        self.request = request
        url = nil
        redirects = 0
    }

    /// Handles a stored response that is used in place of a server's.
    mutating func storedResponseFound(_ head: ResponseHead) -> TransactionAction {
        guard let url else { return .proceed }
        switch state {
        case .requested, .ended: break
        case .idle, .deciding, .delivering, .receiving, .discarding, .failing: return .proceed
        }
        beginExchange(isStored: true)
        return deliver(head, at: url, .inCallback)
    }

    /// Handles a request that goes to the network after a stub has read its body.
    mutating func passedToNetwork() {
        let expectation = exchange.expectation
        if awaitsHead { beginExchange() }
        exchange.expectation = expectation
    }

    /// Handles a request that could not be sent.
    mutating func sendingFailed(_ error: TransferError) -> TransactionAction {
        awaitsHead ? end(error) : .proceed
    }

    /// Handles an exhaustible rate limit, for which the transfer may be paused.
    mutating func rateIsLimited() { connection.needsOwn = true }

    /// Handles the order to abort the current exchange.
    mutating func cancel(_ reason: TransferError) -> TransactionAction {
        if case .ended = state { return .proceed }
        state = .failing(reason)
        return .cancelExchange
    }
}

/// The invariants of a transaction.
///
/// 1. *A question belongs to its exchange.* The pending question is the latest, and no other state has one.
/// 2. *A request that is under way has a URL.*
/// 3. *A response from the cache sends nothing.* While it is delivered, no request waits for a head, and no other
///    request follows.
/// 4. *No more redirects are followed than are allowed.*
/// 5. *Every pause ends.* A reason for a pause ends by its owner's call of ``resume(_:)``, by the answer to the pending
///    question, or with the exchange.
extension TransactionStateMachine {
    /// The invariant that does not hold; `nil` where all do. To be read between two events.
    var violation: String? {
        if isUnderWay, url == nil, !isFailing { return "a request is under way to no URL" }
        if reasons.contains(.deciding) { return "a pause for a decision without a question" }
        switch state {
        case .idle, .receiving, .delivering, .failing, .ended: break
        case .requested:
            if exchange.isStored { return "a stored response waits for a head" }
            if redirects > configuration.maximumRedirects { return "too many redirects are followed" }
        case .deciding(let pending, _): return violation(of: pending)
        case .discarding(let continuation):
            guard case .send = continuation else { return nil }
            if exchange.isStored { return "a request follows a stored response" }
            if redirects > configuration.maximumRedirects { return "too many redirects are followed" }
        }
        return nil
    }

    private var isFailing: Bool { if case .failing = state { true } else { false } }

    private func violation(of pending: PendingQuestion) -> String? {
        if pending.number != questions { return "a question is pending that is not the latest" }
        switch pending.question {
        case .redirect, .challenge, .trust:
            return exchange.isStored ? "a stored response leads to another exchange" : nil
        case .response: return nil
        }
    }
}

/// An action that ``TransactionStateMachine`` wants performed. Its performer, ``Transaction``, does nothing else.
indirect enum TransactionAction {
    /// Lets the exchange go on; nothing is to be done.
    case proceed
    /// Refuses the exchange as the result of libcurl's callback;
    /// ``TransactionStateMachine/exchangeEnded(_:)`` follows. Outside of a callback nothing is to be done.
    case refuse
    /// Cancels the exchange; ``TransactionStateMachine/exchangeEnded(_:)`` follows, or
    /// ``TransactionStateMachine/exchangeWasAbsent()`` if there is none.
    case cancelExchange
    /// Ends the pause of the exchange, or delivers the rest of a stored response.
    case resume
    /// Prepares the request and sends it to the URL. ``TransactionStateMachine/storedResponseFound(_:)`` or
    /// ``TransactionStateMachine/sendingFailed(_:)`` may follow.
    case send(TransferRequest, CurlURL)
    /// Remembers that HTTP/2 does not work at an origin, and performs the other action then.
    case avoidHTTP2(origin: String, then: TransactionAction)
    /// Remembers that an origin refuses `Expect: 100-continue`, and refuses the exchange as ``refuse`` does.
    case omitExpectation(origin: String)
    /// Asks the delegate; ``TransactionStateMachine/answered(_:_:)`` or ``TransactionStateMachine/answerDelayed(_:)``
    /// follows.
    case ask(PendingQuestion)
    /// Evaluates the server's certificates by the policy; ``TransactionStateMachine/trustEvaluated(_:isTrusted:)``
    /// follows.
    case evaluate(ServerTrust)
    /// Delivers the head of the final response to the client; ``TransactionStateMachine/headHandled(_:)`` follows.
    case deliverHead(ResponseHead, CurlURL)
    /// Delivers a delegate's decision about the final response to the client;
    /// ``TransactionStateMachine/headHandled(_:)`` follows.
    case deliverDecision(ResponseDisposition, ResponseHead, CurlURL)
    /// Notifies the client of the end.
    case end(TransferError?)
}

/// The use of body bytes, in the direction in which they are to move. Decided for every chunk, so it has no payload.
enum BodyStep {
    /// Passes the bytes to or from the client.
    case pass
    /// Discards received bytes.
    case discard
    /// Moves no bytes until ``TransactionAction/resume``.
    case pause
    /// Ends the exchange.
    case refuse
}

/// A question that a delegate decides.
enum TransactionQuestion {
    /// Whether to follow a redirect, and with which request.
    ///
    /// - Parameters: the redirect response, the proposed request, and its URL.
    case redirect(ResponseHead, TransferRequest, CurlURL)
    /// The response to the challenge of a server or a proxy.
    ///
    /// - Parameters: the challenge, and the response that carries it.
    case challenge(Authorization.Demand, ResponseHead)
    /// Whether the server is trusted. The exchange is aborted if the answer is not immediate; a late consent sends the
    /// request again.
    case trust(ServerTrust)
    /// The use of the final response, whose head the client has received.
    case response(ResponseHead)

    /// The decision if the delegate makes none.
    var fallback: Decision {
        switch self {
        case .redirect(_, let request, _): .redirect(request)
        case .challenge, .trust: .challenge(.performDefaultHandling, nil)
        case .response: .response(.allow)
        }
    }
}

/// A question that was asked and not answered yet.
struct PendingQuestion {
    /// The number by which a late answer to an earlier question is recognised and ignored.
    let number: Int
    let question: TransactionQuestion
}
