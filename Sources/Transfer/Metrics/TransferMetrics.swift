import Curl

/// Measurements of the exchanges of a task, or of a request over all its tasks.
public struct TransferMetrics: Sendable {
    // Most transfers consist of one exchange, which needs no memory of its own.
    private var first: ExchangeMetrics?
    private var others: [ExchangeMetrics] = []

    /// The exchanges in order: one for each request sent, including redirects and challenges, and one for each request
    /// that was served from the cache.
    public var exchanges: [ExchangeMetrics] {
        get { (first.map { [$0] } ?? []) + others }
        set {
            first = newValue.first
            others = Array(newValue.dropFirst())
        }
    }

    /// Creates metrics without exchanges.
    public init() {}

    /// The exchange that delivered the final response.
    public var last: ExchangeMetrics? { others.last ?? first }
    /// The number of exchanges whose response was a redirect.
    public var redirectCount: Int { exchanges.count { $0.status.map(RedirectRule.isRedirect) ?? false } }

    mutating func add(_ exchange: ExchangeMetrics) {
        if first == nil { first = exchange } else { others.append(exchange) }
    }

    /// Adds the exchanges of a further attempt.
    mutating func add(_ attempt: TransferMetrics) {
        if first == nil { self = attempt } else { others += attempt.exchanges }
    }
}

/// Measurements of one request and its response.
public struct ExchangeMetrics: Sendable {
    private let asked: String
    /// The status code of the response; `nil` if none was received.
    public let status: Int?
    /// The times of the exchange's steps, in microseconds since ``began``; a step that did not occur is `nil`.
    public let timeline: Timeline
    /// The start time in nanoseconds of the monotonic clock (CLOCK_MONOTONIC).
    public let began: UInt64
    /// The ALPN identifier of the protocol: `http/1.0`, `http/1.1`, `h2` or `h3`; `nil` for other protocols and without
    /// a response.
    public let protocolName: String?
    /// The address of the server, or of the proxy.
    public let remoteAddress: String?
    /// The port of the server, or of the proxy.
    public let remotePort: Int?
    /// Whether an existing connection was reused, so that no connection was set up and no TLS handshake took place.
    public let isReusedConnection: Bool
    /// Whether the response came from the cache without a request to the server. ``Timeline/ended`` is then the only
    /// step. If the server was asked to revalidate the stored response, that request is a separate exchange.
    public let isFromCache: Bool
    /// The reason why what is missing was requested over another connection or in another version of HTTP; `nil` if the
    /// exchange did not end for such a reason.
    public internal(set) var departure: String?

    /// The address and port of the server or of the proxy, as in `192.0.2.1:443` and `[2001:db8::1]:80`.
    public var peerAddress: String? { remoteAddress.map { PeerAddress.text($0, port: remotePort) } }

    /// The request's URL without user, password and query values.
    public var url: String { URLRedaction.redact(asked) }

    /// The times of an exchange's steps, in microseconds since ``ExchangeMetrics/began``.
    public struct Timeline: Sendable, Equatable {
        /// The time at which the host name was resolved.
        public var nameLookedUp: Int64?
        /// The time at which the TCP connection was established.
        public var connected: Int64?
        /// The time at which the TLS handshake completed.
        public var secured: Int64?
        /// The time just before the request was sent.
        public var requestBegan: Int64?
        /// The time at which the first byte of the response was received.
        public var firstByte: Int64?
        /// The time at which the exchange ended, successfully or not.
        public var ended: Int64
    }

    init(
        _ timing: ExchangeTiming, request: TransferRequest, response: ResponseHead?, begunAt: MonotonicTime,
        lookup: Int64?, turnWait: Int64 = 0
    ) {
        asked = request.url
        began = begunAt.nanoseconds
        let waited = (lookup ?? 0) + turnWait
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

    /// Creates the metrics of a request that has just been served from the cache.
    init(stored response: ResponseHead, to request: TransferRequest, begunAt: MonotonicTime) {
        self.init(request, status: response.status, begunAt: begunAt, isFromCache: true)
    }

    /// Creates the metrics of an exchange with a ``StubResponder`` that has just ended.
    ///
    /// - Parameter response: the head of its response, if there was one.
    init(stubbed response: ResponseHead?, to request: TransferRequest, begunAt: MonotonicTime) {
        self.init(request, status: response?.status, begunAt: begunAt, isFromCache: false)
    }

    private init(_ request: TransferRequest, status: Int?, begunAt: MonotonicTime, isFromCache: Bool) {
        asked = request.url
        began = begunAt.nanoseconds
        self.status = status
        timeline = Timeline(ended: Int64((MonotonicTime.now().nanoseconds - begunAt.nanoseconds) / 1000))
        protocolName = nil
        remoteAddress = nil
        remotePort = nil
        isReusedConnection = false
        self.isFromCache = isFromCache
    }
}

extension TransferMetrics: CustomStringConvertible, CustomDebugStringConvertible {
    /// The time in microseconds from the beginning of the first exchange to the end of the last one; `nil` without an
    /// exchange.
    var elapsed: Int64? {
        guard let begin = exchanges.first?.began, let last, last.began >= begin else { return nil }
        return Int64(clamping: (last.began - begin) / 1000).addingReportingOverflow(last.timeline.ended).partialValue
    }

    /// The number of exchanges and redirects, and the time from the first to the last, as in
    /// `2 exchanges, 1 redirect, 12.5 ms`.
    public var description: String {
        var parts = [ReadableText.count(Int64(exchanges.count), "exchange")]
        if redirectCount > 0 { parts.append(ReadableText.count(Int64(redirectCount), "redirect")) }
        if let elapsed { parts.append(ReadableText.time(microseconds: elapsed)) }
        return parts.joined(separator: ", ")
    }

    /// The ``description``, and a line for each exchange.
    public var debugDescription: String {
        ([description] + exchanges.map { "    \($0.debugDescription)" }).joined(separator: "\n")
    }
}

extension ExchangeMetrics: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without secrets, the status, and what is known of the connection, as in
    /// `https://example.org/: 200, h2, 192.0.2.1:443, reused connection, 12.5 ms`.
    public var description: String { text(time: ReadableText.time(microseconds: timeline.ended)) }

    /// The ``description`` with the times of all steps.
    public var debugDescription: String { text(time: timeline.description) }

    /// A mirror without children, so that `dump` writes the ``debugDescription``.
    public var customMirror: Mirror { Mirror(self, children: [:]) }

    private func text(time: String) -> String {
        var parts = [status.map(String.init) ?? "no response"]
        if let protocolName { parts.append(protocolName) }
        if let peerAddress { parts.append(peerAddress) }
        if isReusedConnection { parts.append("reused connection") }
        if isFromCache { parts.append("from the cache") }
        return ReadableText.line("\(url): \((parts + [time]).joined(separator: ", "))")
    }
}

extension ExchangeMetrics.Timeline: CustomStringConvertible {
    /// The steps that occurred and their times, as in
    /// `connected 0.4 ms, request began 0.5 ms, first byte 1.2 ms, ended 1.3 ms`.
    public var description: String {
        let steps: [(name: String, time: Int64?)] = [
            ("name looked up", nameLookedUp), ("connected", connected), ("secured", secured),
            ("request began", requestBegan), ("first byte", firstByte), ("ended", ended),
        ]
        return steps.compactMap { step in step.time.map { "\(step.name) \(ReadableText.time(microseconds: $0))" } }
            .joined(separator: ", ")
    }
}
