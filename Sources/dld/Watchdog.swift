import CSystemd
import Logging
import Synchronization

/// The watchdog of the daemon's parts (systemd.service(5), `WatchdogSec=`).
///
/// systemd is told that the daemon works only after each part has finished its present work and taken up more. If a part
/// does not within the watchdog's time, systemd is told to restart the daemon at once.
struct Watchdog: Sendable {
    /// A part of the daemon.
    struct Part: Sendable {
        let name: String
        /// Returns once the part has finished its present work and taken up more.
        let turn: @Sendable () async -> Void
    }

    let parts: [Part]
    /// The time of the watchdog, while tasks run.
    let timeout: Duration
    /// The time of the watchdog while no task runs. It is long, because each check wakes up all parts.
    static let idleTimeout: Duration = .seconds(20 * 60)

    /// - Returns: `nil` if the service manager expects no sign of life (sd_watchdog_enabled(3)).
    init?(_ parts: [Part]) {
        var microseconds: UInt64 = 0
        guard sd_watchdog_enabled(0, &microseconds) > 0, microseconds > 0 else { return nil }
        self.init(parts, timeout: .microseconds(Int64(clamping: microseconds)))
    }

    init(_ parts: [Part], timeout: Duration) {
        self.parts = parts
        self.timeout = timeout
    }

    /// Returns the time of the watchdog.
    func timeout(isIdle: Bool) -> Duration { isIdle ? max(timeout, Self.idleTimeout) : timeout }

    /// Returns the time between two checks.
    func interval(isIdle: Bool) -> Duration { timeout(isIdle: isIdle) / (isIdle ? 2 : 3) }

    /// The time in which a part must answer. The next check and this time together are less than the watchdog's time,
    /// so that the daemon can name the part before systemd ends it.
    private var patience: Duration { timeout / 2 }

    /// Checks all parts.
    ///
    /// - Returns: the names of the parts that did not answer within the time, in order; none if all work.
    func hangingParts() async -> [String] {
        let (answers, continuation) = AsyncStream.makeStream(of: Int?.self)
        for (index, part) in parts.enumerated() {
            Task {
                await part.turn()
                continuation.yield(index)
            }
        }
        let timer = Task { [patience] in
            try? await Task.sleep(for: patience)
            continuation.yield(nil)
        }
        defer { timer.cancel() }
        var missing = Set(parts.indices)
        for await answer in answers {
            guard let index = answer else { break }
            missing.remove(index)
            if missing.isEmpty { break }
        }
        return missing.sorted().map { parts[$0].name }
    }
}
