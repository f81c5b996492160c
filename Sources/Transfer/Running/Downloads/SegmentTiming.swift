/// When a connection sent its requests and received their responses, and how fast it is. Times are monotonic, in
/// milliseconds.
struct SegmentTiming {
    /// When the present request was sent.
    private(set) var requestedAt: Int64 = 0
    /// When the head of the present response came.
    private(set) var respondedAt: Int64?
    /// When the head of the first response came.
    private(set) var firstRespondedAt: Int64?
    /// When bytes of the present response were first noticed.
    private(set) var begunAt: Int64?
    /// Bytes of body received over all responses.
    private(set) var received: Int64 = 0
    private var receivedBefore: Int64 = 0
    /// The throughput, in bytes a second, as far as it is known.
    private(set) var pace = ThroughputMeter()
    /// The number of consecutive responses of less than 4 KiB.
    private var shortResponses = 0

    /// The number of such responses after which the next request is delayed.
    private static let undelayedShortResponses = 16
    /// The number of bytes from which on a response counts.
    private static let smallestResponse: Int64 = 4 << 10
    /// Delays in milliseconds; each is twice the one before.
    private static let firstDelay: Int64 = 50
    private static let longestDelay: Int64 = 2_000
    /// The shortest time, in milliseconds, that a mean rate is taken over.
    private static let shortestMeasure: Int64 = 10

    /// Bytes of the present response.
    var receivedNow: Int64 { received - receivedBefore }

    /// Whether the present response has brought bytes.
    var hasBegun: Bool { begunAt != nil }

    mutating func sent(at now: Int64) {
        receivedBefore = received
        requestedAt = now
        respondedAt = nil
        begunAt = nil
        pace.pause()
    }

    /// Excludes the time until now, in which the request was not sent or its response was not read.
    mutating func postpone(to now: Int64) { if !hasBegun, respondedAt == nil { requestedAt = now } }

    mutating func responded(at now: Int64) {
        respondedAt = now
        firstRespondedAt = firstRespondedAt ?? now
    }

    mutating func receive(_ count: Int) { received += Int64(count) }

    /// Milliseconds from the request to the head of its response, rounded up.
    var setUp: Int64? { respondedAt.map { max(1, $0 - requestedAt) } }

    /// Bytes a second of the present response. Bytes that came within moments say no more than a longer time would.
    func meanRate(at now: Int64) -> Double {
        guard let respondedAt else { return 0 }
        return Double(receivedNow) * 1000 / Double(max(Self.shortestMeasure, now - respondedAt))
    }

    /// The throughput in whole bytes a second: the present one where it is measured, otherwise the mean of the present
    /// response.
    func rate(at now: Int64) -> Int64 {
        let rate = pace.rate > 0 ? pace.rate : meanRate(at: now)
        return rate > 0 ? Int64(min(rate, 1e15)) : 0
    }

    /// Milliseconds for which the connection can be measured: since its first bytes, before them since the request,
    /// less the time that its source is given to respond.
    func watchedTime(at now: Int64, responseTimeout: Int64) -> Int64 {
        now - (begunAt ?? requestedAt + responseTimeout - DownloadSource.firstResponseTimeout)
    }

    /// Measures the throughput.
    ///
    /// - Returns: the milliseconds until the first bytes, where those are seen for the first time.
    mutating func measure(at now: Int64) -> Int64? {
        var responseTime: Int64?
        if begunAt == nil, receivedNow > 0 {
            begunAt = now
            responseTime = now - requestedAt
        }
        pace.record(received, at: now)
        return responseTime
    }

    /// Milliseconds until the next request, after a response has ended: a server that sends next to nothing each time
    /// is not asked as fast as it responds.
    mutating func delayAfterResponse() -> Int64 {
        guard receivedNow < Self.smallestResponse else {
            shortResponses = 0
            return 0
        }
        shortResponses += 1
        guard shortResponses > Self.undelayedShortResponses else { return 0 }
        return min(
            Self.longestDelay, Self.firstDelay << Int64(min(shortResponses - Self.undelayedShortResponses - 1, 16)))
    }
}
