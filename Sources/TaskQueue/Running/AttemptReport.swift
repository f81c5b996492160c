import TaskModel
import Transfer

/// The attempts of one run of a task, as they are stored and shown: one for each attempt of its request.
///
/// A value without I/O. Monotonic times are milliseconds of CLOCK_MONOTONIC, the clock of the engine's metrics.
struct AttemptReport {
    /// The wall-clock time of the start.
    let startedAt: Milliseconds
    /// The monotonic time of the start.
    let began: Milliseconds
    /// The attempts that further ones followed.
    var failed: [FailedAttempt] = []
    /// The exchanges of the last attempt that have ended.
    var exchanges: [ExchangeMetrics] = []
    /// The body bytes of the run.
    var transferred: Int64 = 0

    /// Returns the attempts, the oldest first.
    ///
    /// - Parameters:
    ///   - endedAt: the wall-clock time of the end; `nil` while the run goes on.
    ///   - error: the failure of the last attempt.
    ///   - warning: what is suspicious about the file of the last attempt.
    func attempts(endedAt: Milliseconds?, error: TaskFailure?, warning: String? = nil) -> [TaskAttempt] {
        var attempts: [TaskAttempt] = []
        var (start, counted) = (began, 0 as Int64)
        for attempt in failed {
            let ended = Self.milliseconds(attempt.ended)
            let exchanges = attempt.metrics.exchanges
            if !attempts.isEmpty { start = Self.start(of: exchanges, after: start) }
            attempts.append(
                describe(
                    exchanges, from: start, endedAt: wallClock(max(start, ended)),
                    bytes: attempt.transferredBytes.subtractingClamped(counted),
                    error: RunOutcomePolicy.failure(attempt.error)))
            (start, counted) = (ended, attempt.transferredBytes)
        }
        if !attempts.isEmpty { start = Self.start(of: exchanges, after: start) }
        let end = endedAt.map { max($0, wallClock(start)) }
        var last = describe(
            exchanges, from: start, endedAt: end, bytes: transferred.subtractingClamped(counted), error: error)
        last.warning = warning
        return attempts + [last]
    }

    private func describe(
        _ exchanges: [ExchangeMetrics], from start: Milliseconds, endedAt: Milliseconds?, bytes: Int64,
        error: TaskFailure?
    ) -> TaskAttempt {
        var attempt = TaskAttempt(
            startedAt: wallClock(start), endedAt: endedAt, bytes: max(0, bytes), error: error)
        attempt.note = exchanges.lazy.compactMap(\.departure).first
        guard let main = Self.main(of: exchanges) else { return attempt }
        attempt.address = main.peerAddress
        attempt.httpVersion = Self.version(main.protocolName)
        attempt.status = main.status
        attempt.firstByte = Self.step(main.timeline.firstByte, of: main, from: start)
        // A redirect to the same server uses the connection of the exchange before it.
        for exchange in exchanges where exchange.began <= main.began && exchange.peerAddress == main.peerAddress {
            attempt.name = Self.step(exchange.timeline.nameLookedUp, of: exchange, from: start) ?? attempt.name
            attempt.connect = Self.step(exchange.timeline.connected, of: exchange, from: start) ?? attempt.connect
            attempt.tls = Self.step(exchange.timeline.secured, of: exchange, from: start) ?? attempt.tls
        }
        return attempt
    }

    /// Returns the exchange that an attempt is described by: of those whose response is neither a redirect nor a
    /// challenge, the one that began first. The others are further connections of the download.
    private static func main(of exchanges: [ExchangeMetrics]) -> ExchangeMetrics? {
        exchanges.filter { !intermediate.contains($0.status ?? 0) }.min { $0.began < $1.began } ?? exchanges.last
    }

    private static let intermediate: Set<Int> = [301, 302, 303, 307, 308, 401, 407]

    private static func version(_ name: String?) -> String? {
        switch name {
        case "http/1.0": "1.0"
        case "http/1.1": "1.1"
        case "h2": "2"
        case "h3": "3"
        default: nil
        }
    }

    // MARK: Times

    private static func start(of exchanges: [ExchangeMetrics], after time: Milliseconds) -> Milliseconds {
        max(time, exchanges.lazy.map { milliseconds($0.began) }.min() ?? time)
    }

    private static func step(
        _ time: Int64?, of exchange: ExchangeMetrics, from start: Milliseconds
    ) -> Milliseconds? {
        time.map { time in
            max(0, milliseconds(exchange.began).addingClamped(time / 1_000).subtractingClamped(start))
        }
    }

    private static func milliseconds(_ nanoseconds: UInt64) -> Milliseconds { Int64(nanoseconds / 1_000_000) }

    private func wallClock(_ monotonic: Milliseconds) -> Milliseconds {
        startedAt.addingClamped(max(0, monotonic.subtractingClamped(began)))
    }
}
