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
