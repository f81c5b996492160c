import Curl

/// The times of a stream's steps, for its single entry in the metrics.
struct StreamSteps {
    private let request: TransferRequest
    private(set) var begunAt = MonotonicTime.now()
    /// The duration of name resolution in microseconds since `begunAt`; the next two values have the same origin and
    /// unit.
    private var lookup: Int64?
    private var connectBegan: Int64 = 0
    private var handshakeBegan: Int64 = 0
    private var timing: ExchangeTiming?
    private var firstByte: Int64?

    init(request: TransferRequest) {
        self.request = request
    }

    /// The time since the stream began, in microseconds.
    var elapsed: Int64 { Int64((MonotonicTime.now().nanoseconds - begunAt.nanoseconds) / 1000) }

    mutating func begin() { begunAt = .now() }
    mutating func lookedUp() { lookup = elapsed }
    mutating func connecting() { connectBegan = elapsed }
    mutating func securing() { handshakeBegan = elapsed }
    mutating func received() { if firstByte == nil { firstByte = elapsed } }

    /// Records libcurl's times of a connection that was established or failed.
    mutating func connected(_ timing: ExchangeTiming) { self.timing = timing }

    /// Records the end of the TLS handshake. libcurl measures it from the start of its own transfer.
    mutating func secured(_ timing: ExchangeTiming) {
        guard timing.secure > 0 else { return }
        self.timing?.secure = handshakeBegan - connectBegan + timing.secure
    }

    /// Returns the metrics entry.
    ///
    /// - Returns: `nil` if no connection was attempted, as for exchanges.
    func metrics() -> ExchangeMetrics? {
        guard var timing else { return nil }
        // Later times count from the end of name resolution.
        let waited = lookup ?? 0
        if timing.connect > 0 { timing.connect += connectBegan - waited }
        if timing.secure > 0 { timing.secure += connectBegan - waited }
        timing.firstByte = firstByte.map { max(1, $0 - waited) } ?? 0
        timing.total = elapsed - waited
        // A raw connection carries no HTTP request and is never a reused one.
        timing.requestSent = 0
        timing.httpVersion = nil
        timing.connections = 1
        return ExchangeMetrics(timing, request: request, response: nil, begunAt: begunAt, lookup: lookup)
    }
}
