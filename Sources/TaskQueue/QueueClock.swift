import TaskModel
import Transfer

#if canImport(Glibc)
import Glibc
#endif

/// The time, and waiting for it; tests bring their own.
package struct QueueClock: Sendable {
    /// Milliseconds since 1970: for what is stored and shown.
    package var now: @Sendable () -> Milliseconds
    /// Milliseconds of a clock that no one sets: for rates and spans.
    package var monotonic: @Sendable () -> Milliseconds
    /// Returns after so many milliseconds, or when the Swift task is cancelled.
    package var sleep: @Sendable (Milliseconds) async -> Void
    /// Says each time that someone set ``now``. A stream for each call.
    package var settings: @Sendable () -> AsyncStream<Void>
    /// Seconds that clocks on the walls are ahead of UTC at a moment.
    package var utcOffset: @Sendable (Milliseconds) -> Int

    package init(
        now: @escaping @Sendable () -> Milliseconds, monotonic: @escaping @Sendable () -> Milliseconds,
        sleep: @escaping @Sendable (Milliseconds) async -> Void,
        settings: @escaping @Sendable () -> AsyncStream<Void> = { AsyncStream { _ in } },
        utcOffset: @escaping @Sendable (Milliseconds) -> Int = { LocalClock.utcOffset(at: $0) }
    ) {
        self.now = now
        self.monotonic = monotonic
        self.sleep = sleep
        self.settings = settings
        self.utcOffset = utcOffset
    }

    package static let system = QueueClock(
        now: { milliseconds(CLOCK_REALTIME) },
        monotonic: { milliseconds(CLOCK_MONOTONIC) },
        sleep: { await CancellableSleep.sleep($0) },
        settings: { ClockSettings.stream() })

    private static func milliseconds(_ clock: clockid_t) -> Milliseconds {
        var time = timespec()
        _ = clock_gettime(clock, &time)  // fails for an unknown clock alone
        return Milliseconds(time.tv_sec) * 1000 + Milliseconds(time.tv_nsec) / 1_000_000
    }
}
