package import TaskModel
import Transfer

#if canImport(Glibc)
import Glibc
#endif

/// The clocks and the sleep function that the queue uses. Tests supply their own.
package struct QueueClock: Sendable {
    /// Returns the wall-clock time in milliseconds since 1970. Used for stored and displayed times.
    package var now: @Sendable () -> Milliseconds
    /// Returns the monotonic time in milliseconds. Used for rates and durations.
    package var monotonic: @Sendable () -> Milliseconds
    /// Sleeps for a number of milliseconds, or until the Swift task is cancelled.
    package var sleep: @Sendable (Milliseconds) async -> Void
    /// Returns a new stream that yields after each adjustment of the wall clock.
    package var settings: @Sendable () -> AsyncStream<Void>
    /// Returns the offset of local time from UTC at a moment, in seconds.
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
        _ = clock_gettime(clock, &time)  // fails only for an unknown clock
        return Milliseconds(time.tv_sec) * 1000 + Milliseconds(time.tv_nsec) / 1_000_000
    }
}
