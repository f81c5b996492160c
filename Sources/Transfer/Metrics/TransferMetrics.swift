import Curl

/// What the exchanges of a task, or of a request over all its tasks, took.
public struct TransferMetrics: Sendable {
    /// One for each request that went out, redirects and challenges included, and for each that a stored answer was
    /// given to, in their order.
    public var exchanges: [ExchangeMetrics] = []

    /// Of no exchange.
    public init() {}

    /// Of the exchange that brought the final answer.
    public var last: ExchangeMetrics? { exchanges.last }
    /// Exchanges whose answer was a redirect.
    public var redirectCount: Int { exchanges.count { $0.status.map(RedirectRule.isRedirect) ?? false } }
}

/// What one request with its answer took.
public struct ExchangeMetrics: Sendable {
    private let asked: String
    /// Of the answer; `nil` where none came.
    public let status: Int?
    /// How its attempts' steps follow one another, in microseconds since ``began``; `nil` for one that was not taken.
    public let timeline: Timeline
    /// Nanoseconds of the clock that counts from the machine's start (CLOCK_MONOTONIC).
    public let began: UInt64
    /// `http/1.1`, `h2`, `h3`: as in ALPN; `nil` for other protocols and without an answer.
    public let protocolName: String?
    /// The server's address, or the proxy's.
    public let remoteAddress: String?
    /// The server's port, or the proxy's.
    public let remotePort: Int?
    /// Whether it went over a connection that was there before: no connecting, no TLS.
    public let isReusedConnection: Bool
    /// The answer was a stored one, and nobody was asked: no step but the end was taken. Where a server was asked first
    /// whether it is still right, that is an exchange of its own.
    public let isFromCache: Bool

    /// Without user, password and what its query says.
    public var url: String { URLRedaction.redact(asked) }

    /// The moments of an exchange, in microseconds.
    public struct Timeline: Sendable, Equatable {
        /// The name had an address.
        public var nameLookedUp: Int64?
        /// TCP was up.
        public var connected: Int64?
        /// TLS was in force.
        public var secured: Int64?
        /// The request was about to be sent.
        public var requestBegan: Int64?
        /// The answer's first byte was there.
        public var firstByte: Int64?
        /// The exchange was over, for better or worse.
        public var ended: Int64
    }

    init(
        _ timing: ExchangeTiming, request: TransferRequest, response: ResponseHead?, begunAt: MonotonicTime,
        lookup: Int64?
    ) {
        asked = request.url
        began = begunAt.nanoseconds
        let waited = lookup ?? 0
        func moment(_ value: Int64) -> Int64? { value > 0 ? value + waited : nil }
        let isReused = timing.connections == 0
        timeline = Timeline(
            nameLookedUp: lookup, connected: isReused ? nil : moment(timing.connect),
            secured: isReused ? nil : moment(timing.secure), requestBegan: moment(timing.requestSent),
            firstByte: moment(timing.firstByte), ended: timing.total + waited)
        status = timing.firstByte > 0 ? response?.status : nil
        protocolName =
            switch timing.httpVersion {
            case .http10: "http/1.0"
            case .http11: "http/1.1"
            case .http2: "h2"
            case .http3: "h3"
            case nil: nil
            }
        remoteAddress = timing.remoteAddress
        remotePort = timing.remoteAddress == nil ? nil : timing.remotePort
        isReusedConnection = isReused && timing.requestSent > 0
        isFromCache = false
    }

    /// Of a stored answer, which has been given by now.
    init(stored response: ResponseHead, to request: TransferRequest, begunAt: MonotonicTime) {
        asked = request.url
        began = begunAt.nanoseconds
        status = response.status
        timeline = Timeline(ended: Int64((MonotonicTime.now().nanoseconds - begunAt.nanoseconds) / 1000))
        protocolName = nil
        remoteAddress = nil
        remotePort = nil
        isReusedConnection = false
        isFromCache = true
    }
}
