import Curl

/// When the steps of a stream were done, for its one entry of the metrics.
struct StreamSteps {
    private let request: TransferRequest
    private var begunAt = MonotonicTime.now()
    /// Microseconds since then.
    private var lookup: Int64?
    private var connectBegan: Int64 = 0
    private var handshakeBegan: Int64 = 0
    private var timing: ExchangeTiming?
    private var firstByte: Int64?

    init(request: TransferRequest) {
        self.request = request
    }

    /// Microseconds.
    var elapsed: Int64 { Int64((MonotonicTime.now().nanoseconds - begunAt.nanoseconds) / 1000) }

    mutating func begin() { begunAt = .now() }
    mutating func lookedUp() { lookup = elapsed }
    mutating func connecting() { connectBegan = elapsed }
    mutating func securing() { handshakeBegan = elapsed }
    mutating func received() { if firstByte == nil { firstByte = elapsed } }

    /// The connection stands, or was given up.
    mutating func connected(_ timing: ExchangeTiming) { self.timing = timing }

    /// libcurl counts the handshake from its own beginning.
    mutating func secured(_ timing: ExchangeTiming) {
        guard timing.secure > 0 else { return }
        self.timing?.secure = handshakeBegan - connectBegan + timing.secure
    }

    /// - Returns: `nil` where it never came to connecting, as for exchanges.
    func metrics() -> ExchangeMetrics? {
        guard var timing else { return nil }
        // What follows counts from the end of the look-up.
        let waited = lookup ?? 0
        if timing.connect > 0 { timing.connect += connectBegan - waited }
        if timing.secure > 0 { timing.secure += connectBegan - waited }
        timing.firstByte = firstByte.map { max(1, $0 - waited) } ?? 0
        timing.total = elapsed - waited
        // Nothing is asked on a raw connection, neither in HTTP nor over a kept one.
        timing.requestSent = 0
        timing.httpVersion = nil
        timing.connections = 1
        return ExchangeMetrics(timing, request: request, response: nil, begunAt: begunAt, lookup: lookup)
    }
}
